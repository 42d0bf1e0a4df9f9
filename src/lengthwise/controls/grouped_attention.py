"""Group attention: each sentence of a document attends to itself (G-Transformer, Bao, Zhang, Teng, Chen & Luo 2021).

In the lower layers a token attends only to tokens of its own sentence: in the encoder, in the decoder, and from target
sentence k to source sentence k. In the top layers a gate mixes that with attention to the whole document:

    g = sigmoid(W [local; global] + b),    out = g ⊙ local + (1 − g) ⊙ global

Sentences are counted by a separator token, which in the source belongs to the sentence that it ends. A decoder step
belongs to the sentence of the token that it predicts: the step that reads a separator predicts the first token of the
next sentence. A decoder step beyond the last source sentence attends to the whole source.

    source  a b <sep> c </s>          decoder input  <s> A <sep> B C
            0 0   0   1  1                            0  0   1   1 1

Our simplification: both branches have the same projections of queries, keys, values and outputs, so that a pretrained
model can take it; the paper's have their own. So the gate comes before the output projection. It starts at 1/2. With
one sentence on each side both branches are the same, and the model is the plain model. With `gate_rank` W is a product
of two thin matrices, so that the gates of an adapter are small.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from .base import Control

_KINDS = ("encoder", "cross", "decoder")


class GroupedAttention(Control):
    """Limits attention to the sentence, in the lower layers wholly and in the top ones by a gate that is learnt.

    global_layers   how many layers at the top of encoder and decoder have the gate
    separator       the token between sentences; added to the model if it has no such token
    gate_rank       rank of the weights of a gate; default: full
    """

    name = "grouped_attention"
    changes_attention = True
    needs_length = False
    groups_sentences = True

    def __init__(self, global_layers: int = 2, separator: str = "<sep>", gate_rank: int | None = None) -> None:
        super().__init__()
        if global_layers < 0:
            raise ValueError(f"global_layers must be at least 0; got {global_layers}")
        if not separator or separator != separator.strip():
            raise ValueError(f"separator must be a token without spaces; got {separator!r}")
        if gate_rank is not None and gate_rank < 1:
            raise ValueError(f"gate_rank must be at least 1; got {gate_rank}")
        self.global_layers, self.separator, self.tokens = global_layers, separator, (separator,)
        self.gate_rank = gate_rank
        self.gates = nn.ParameterDict()

    def on_attach(self, row_norm: float, dim: int) -> None:
        for gate in [f"{kind}_{above}" for kind in _KINDS for above in range(self.global_layers)]:
            if gate not in self.gates:
                self.gates[gate] = nn.Parameter(torch.zeros(dim, self.gate_rank or 2 * dim))
                self.gates[f"{gate}_bias"] = nn.Parameter(torch.zeros(dim))
                if self.gate_rank:
                    self.gates[f"{gate}_inner"] = nn.Parameter(torch.randn(self.gate_rank, 2 * dim) * dim**-0.5)
            if (width := len(self.gates[gate])) != dim:
                raise ValueError(f"these gates were trained for a model of width {width}; this one has {dim}")

    def sentences(self, ids: Tensor, side: str) -> Tensor:
        separators = (ids == self.token_ids[0]).long()
        return separators.cumsum(1) - (separators if side == "source" else 0)

    def attend(self, kind: str, above: int, local: Callable[[], Tensor], whole: Callable[[], Tensor]) -> Tensor:
        if above >= self.global_layers:
            return local()
        weight, bias = self.gates[f"{kind}_{above}"], self.gates[f"{kind}_{above}_bias"]
        near, far = local(), whole()  # (batch, time, heads, size)
        both = torch.cat([near.flatten(2), far.flatten(2)], -1).to(weight.dtype)
        if self.gate_rank:
            both = linear(both, self.gates[f"{kind}_{above}_inner"])
        gate = torch.sigmoid(linear(both, weight, bias)).view(near.shape)
        return torch.lerp(far, near, gate.to(near.dtype))
