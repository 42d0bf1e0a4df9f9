"""What every control is: a way of telling a model how long its text should be.

A control may edit the source text (`prefix`), add vectors to the decoder's input (`encode`), change what the decoder
says before it becomes a choice of tokens (`steer`), or several of these. It knows counts and vectors; it does not know
which model it is joined to (`attachment.py`) nor how tokens are counted (`meter.py`).
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor, nn

from ..length.units import unit_named

# The first column that carries the signal, counted from the first token of the answer; None: the prompt carries it too.
PLACEMENTS: dict[str, int | None] = {"decoder": -1, "answer": -1, "response": 0, "whole": None}


@dataclass(frozen=True)
class Signal:
    """Where each row of a batch stands. A step reads one token and predicts the next.

    budget 5, tokens of 2, 2 and 1 units: position 0 2 4 5, so what remains is 5 3 1 0, and 0 is where the text ends.
    """

    position: Tensor  # (batch, time) units written before the token that this step predicts; in a prompt below 0
    length: Tensor  # (batch,) units asked for
    column: Tensor  # (batch, time) 0 where the first token of the answer is read, -1 where it is predicted
    live: Tensor  # (batch, time) False on padding
    unit: Tensor | None = None  # (batch,) which of the control's units these are; None: the first
    at_most: Tensor | None = None  # (batch,) the length is a limit, and less will do; None: it is not

    def carriers(self, placement: str) -> Tensor:
        """Which rows carry the signal: (batch, time)."""
        first = PLACEMENTS[placement]
        return self.live if first is None else self.live & (self.column >= first)

    def last(self, width: int) -> "Signal":
        """The signal of the last `width` steps: a cache has read the others."""
        cut = slice(self.position.shape[1] - width, None)
        return replace(self, position=self.position[:, cut], column=self.column[:, cut], live=self.live[:, cut])


def units_named(unit: str | Sequence[str]) -> tuple[str, ...]:
    """The names of a unit or of several different ones."""
    units = tuple(unit_named(name).name for name in ([unit] if isinstance(unit, str) else unit))
    if not units or len(set(units)) < len(units):
        raise ValueError(f"unit is a unit or several different ones; got {unit!r}")
    return units


class Control(nn.Module):
    """One way of telling. A subclass keeps every argument of its constructor as an attribute of the same name."""

    name: ClassVar[str]
    units: tuple[str, ...] = ()  # counts what the decoder writes, in one of these units
    tokens: tuple[str, ...] = ()  # special tokens that the tokenizer and the embedding need
    positions: str = "add"  # "replace" silences the decoder's own positions
    edits_hidden: bool = False  # whether it has a `steer`

    def config(self) -> dict[str, Any]:
        """What `CONTROLS` needs to build this control again, ready for JSON."""
        arguments = list(inspect.signature(type(self).__init__).parameters)[1:]
        values = {name: getattr(self, name) for name in arguments}
        return {"control": self.name} | {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def prefix(self, text: str, target: int, unit: str, tokenizer: Any = None) -> str:
        """The source text as this control wants it, for an output of `target` units (of `tokenizer`)."""
        return text

    def settle(self, row_norm: float, dim: int) -> None:
        """Called once, when joined to a model whose embedding rows have this root mean square norm."""

    def encode(self, signal: Signal, inputs: Tensor) -> Tensor | None:
        """Vectors to add to the decoder's `inputs`: (batch, time, dim), or None."""
        return None

    def edit_hidden(self, signal: Signal, hidden: Tensor) -> Tensor:
        """The decoder's last `hidden` states (batch, time, dim), which the output layer reads, changed."""
        return hidden
