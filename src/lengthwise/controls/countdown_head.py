"""The countdown head: a small network after the decoder's last layer that receives how many units remain.

A length that is added to the decoder's input has to pass through all layers before it can change a choice of tokens.
Small models learnt from it only where to stop (docs/LOG.md). The countdown head follows the last layer. It receives the
last hidden state and the units that remain, and is trained to raise the probability of tokens after which the text can
still end in time. The pretrained model below it can stay frozen.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, rms_norm, silu

from ..length.countdown import STATES, countdown_state
from .base import Control, Signal, unit_names


class CountdownHead(Control):
    """A small network after the decoder, with learnt vectors for each remaining count. Untrained, it is the identity.

        h' = h + choice[s] + outer · silu(gain[s] ⊙ (inner · rms_norm(h)) + shift[s]);  s: limit, unit, what remains

    unit       what is counted, or several units: then each row of a batch has its own
    at_most    a length can also be an upper limit, before which a text may end
    hidden     hidden units of the network

    Each count below 16 has its own state; larger ones share eight states per power of two, up to 120.
    """

    name = "countdown_head"
    edits_hidden = True
    can_shift = True
    needs_length = False

    def __init__(self, unit: str | Sequence[str] = "chars", at_most: bool = False, hidden: int = 512) -> None:
        super().__init__()
        self.units = unit_names(unit)
        self.unit = self.units[0] if len(self.units) == 1 else self.units
        self.at_most, self.hidden = at_most, hidden
        if hidden < 1:
            raise ValueError(f"a countdown head needs hidden units; got {hidden}")
        self.learnt = nn.ParameterDict()

    def on_attach(self, row_norm: float, dim: int) -> None:
        states = len(self.units) * (1 + self.at_most) * STATES
        if not self.learnt:
            self.learnt["inner"] = nn.Parameter(torch.randn(self.hidden, dim) / math.sqrt(dim))
            self.learnt["gain"] = nn.Parameter(torch.ones(states, self.hidden))
            self.learnt["shift"] = nn.Parameter(torch.randn(states, self.hidden) / 2)
            self.learnt["outer"] = nn.Parameter(torch.zeros(dim, self.hidden))
            self.learnt["choice"] = nn.Parameter(torch.zeros(states, dim))
        if (width := self.learnt["inner"].shape[1]) != dim:
            raise ValueError(f"this countdown head was trained for a model of width {width}; this one has {dim}")

    def edit_hidden(self, signal: Signal, hidden: Tensor) -> Tensor:
        states, learnt = self._states(signal), self.learnt
        gain, shift, choice = (embedding(states, learnt[name]) for name in ("gain", "shift", "choice"))
        inner = linear(rms_norm(hidden.to(gain), hidden.shape[-1:]), learnt["inner"])  # (batch, time, hidden)
        change = choice + linear(silu(inner * gain + shift), learnt["outer"])  # (batch, time, dim)
        return hidden + (change * signal.placement_mask("answer").unsqueeze(-1)).to(hidden)

    def _states(self, signal: Signal) -> Tensor:
        """Return the state of each step, from its kind of limit, its unit and its remaining units: (batch, time)."""
        kinds = torch.zeros_like(signal.length) if signal.unit is None else signal.unit
        if self.at_most and signal.at_most is not None:
            kinds = kinds + len(self.units) * signal.at_most
        return kinds.unsqueeze(-1) * STATES + countdown_state(signal.length.unsqueeze(-1) - signal.position)
