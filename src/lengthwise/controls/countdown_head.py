"""A planner: the next token is chosen with the end in sight.

A length that is joined to the decoder's input has to come through all layers before it can change a choice; what a
small model made of that is in docs/LOG.md: it learnt where to stop, and no more. The planner sits behind the last
layer. It reads what the model is about to say and what remains to be written, and is trained to shift the choice
towards tokens after which a text can still end in time. Everything below it, the pretrained model itself, may stay as
it is. It does not know tokens: positions come counted.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, rms_norm, silu

from .base import Control, Signal, units_named

_FAR = 127  # counts beyond are as this one: none is further than those in training
_STATES = 40  # buckets up to there; from 120 on, in the last one, the end is far


class CountdownHead(Control):
    """A small network behind the decoder, with a learnt state for what remains. It starts silent.

    unit       what is counted, or several units: then each row of a batch has its own
    at_most    a length may also be a limit, below which a text may end by itself
    hidden     hidden units of the network

    Counts below 16 have a state each, those above it share eight an octave; from 120 on, the end is far.
    """

    name = "planner"
    kind = "difference"  # it counts what remains, as that encoding does
    edits_hidden = True

    def __init__(self, unit: str | Sequence[str] = "chars", at_most: bool = False, hidden: int = 512) -> None:
        super().__init__()
        self.units = units_named(unit)
        self.unit = self.units[0] if len(self.units) == 1 else self.units
        self.at_most, self.hidden = at_most, hidden
        if hidden < 1:
            raise ValueError(f"a planner needs hidden units; got {hidden}")
        self.learnt = nn.ParameterDict()

    def settle(self, row_norm: float, dim: int) -> None:
        states = len(self.units) * (1 + self.at_most) * _STATES
        if not self.learnt:
            self.learnt["inner"] = nn.Parameter(torch.randn(self.hidden, dim) / math.sqrt(dim))
            self.learnt["gain"] = nn.Parameter(torch.ones(states, self.hidden))
            self.learnt["shift"] = nn.Parameter(torch.randn(states, self.hidden) / 2)
            self.learnt["outer"] = nn.Parameter(torch.zeros(dim, self.hidden))
            self.learnt["choice"] = nn.Parameter(torch.zeros(states, dim))
        if (width := self.learnt["inner"].shape[1]) != dim:
            raise ValueError(f"this planner has learnt for a model of width {width}; this one has {dim}")

    def edit_hidden(self, signal: Signal, hidden: Tensor) -> Tensor:
        states, learnt = self._states(signal), self.learnt
        gain, shift, choice = (embedding(states, learnt[name]) for name in ("gain", "shift", "choice"))
        read = linear(rms_norm(hidden.to(gain), hidden.shape[-1:]), learnt["inner"])  # (batch, time, hidden)
        moved = choice + linear(silu(read * gain + shift), learnt["outer"])  # (batch, time, dim)
        return hidden + (moved * signal.carriers("answer").unsqueeze(-1)).to(hidden)

    def _states(self, signal: Signal) -> Tensor:
        """By kind, unit and what remains: (batch, time)."""
        kinds = torch.zeros_like(signal.length) if signal.unit is None else signal.unit
        if self.at_most and signal.at_most is not None:
            kinds = kinds + len(self.units) * signal.at_most
        return kinds.unsqueeze(-1) * _STATES + bucket(signal.length.unsqueeze(-1) - signal.position)


def bucket(remains: Tensor) -> Tensor:
    """The state of a count: 0 … 15 → 0 … 15, 16 and 17 → 16, 31 → 23, 32 … 35 → 24, …, 120 and more → 39."""
    remains = remains.clamp(min=0, max=_FAR)
    octave = (remains >= 16).long() + (remains >= 32) + (remains >= 64)
    return 8 * octave + (remains >> octave)
