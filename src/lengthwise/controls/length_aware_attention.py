"""Length-aware attention: attention that is equally sharp for few keys and for many (Zhang, Gu, Zhang & Feng 2023).

The entropy of a softmax grows with the number of its terms, so attention over a longer text is flatter than what the
model was trained with. The logits of each query are therefore scaled by

    max(ln l, 0.1) / ln ι        l: keys that the query can see; ι: the average length in training

so that the entropy stays near that of training. In causal self-attention l is t at step t, in training as in decoding
with a KV cache. ι is a number for each kind of attention: the average source length for `encoder` and `cross`, half the
average target length for `decoder`. The paper takes the average over an epoch; here it is a moving average over the
training steps, which is stored with the model.

    ι = 32:  8 keys → 0.60,  32 keys → 1,  256 keys → 1.6
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from .base import Control

KINDS = ("encoder", "cross", "decoder")
_LEAST = 0.1  # of ln l: one key would otherwise have the factor 0
_SHORTEST = 2.0  # the least average length: ln 1 = 0 cannot divide
_MOMENTUM = 0.01  # the weight of one training step in the average


class LengthAwareAttention(Control):
    """Scales the queries of attention by the number of keys that they can see.

    attention   which attention is scaled: encoder, cross, decoder (also that of a decoder-only model)
    variant     "ratio": max(ln l, 0.1) / ln ι
                "log": max(ln l, 0.1), without ι
                "beyond": as "ratio", but 1 up to ι: only texts longer than the average of training are affected
    average     ι of each kind, where it is known; training sets it
    """

    name = "length_aware_attention"
    changes_attention = True
    needs_length = False

    def __init__(
        self,
        attention: Sequence[str] = KINDS,
        variant: Literal["ratio", "log", "beyond"] = "ratio",
        average: dict[str, float] | None = None,
    ) -> None:
        super().__init__()
        if not attention or not set(attention) <= set(KINDS):
            raise ValueError(f"attention must be some of {', '.join(KINDS)}; got {', '.join(attention) or 'none'}")
        if variant not in ("ratio", "log", "beyond"):
            raise ValueError(f"variant must be ratio, log or beyond; got {variant!r}")
        if unknown := set(average or {}) - set(KINDS):
            raise ValueError(f"average has the lengths of {', '.join(KINDS)}; got {', '.join(sorted(unknown))}")
        self.attention, self.variant, self.average = tuple(attention), variant, average
        known = [float((average or {}).get(kind, math.nan)) for kind in KINDS]
        self.register_buffer("lengths", torch.tensor(known))  # (kinds,) ι, NaN until it is known
        self.lengths: Tensor

    def observe(self, source: float, target: float) -> None:
        """Update ι with the mean lengths, in tokens, of the sources and targets of one training step.

        ι is a moving average over about a hundred steps, so it follows the lengths that are drawn. It is changed in
        place: a CUDA graph refers to it by its address. The target of a decoder-only model is its whole row.
        """
        found = torch.tensor([max(_SHORTEST, length) for length in (source, source, target / 2)])
        found = found.to(self.lengths.device, non_blocking=True)
        self.lengths.copy_(torch.where(self.lengths.isnan(), found, self.lengths.lerp(found, _MOMENTUM)))

    def query_scale(self, kind: str, visible: Tensor) -> Tensor | None:
        """Return the factor of each query, given the keys that it can see; None if this kind is left as it is."""
        if kind not in self.attention:
            return None
        logs = visible.clamp(min=1).float().log()
        if self.variant == "log":
            return logs.clamp(min=_LEAST)
        base = self.lengths[KINDS.index(kind)].float().log()
        scale = logs.clamp(min=_LEAST) / base.to(logs.device)
        if self.variant == "beyond":
            scale = scale.clamp(min=1)
        return torch.where(scale.isnan(), torch.ones_like(scale), scale)  # ι is not known yet: the plain model
