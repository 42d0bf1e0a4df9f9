"""The hard budget as a LogitsProcessor for transformers' `generate`: for beam search, and for use in your own code.

It recomputes the state of every row from its ids in each step, so beams may be reordered freely. The mask
itself is computed in `constraint/mask.py`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from transformers import LogitsProcessor

from ..constraint.mask import LengthConstraint
from ..length.meter import Meter


class LengthBudgetLogitsProcessor(LogitsProcessor):  # type: ignore[misc]  # transformers is untyped
    """Keeps every row inside `low[row] <= length <= high[row]`, counted by `meter`; None in `high`: no maximum.

    `start`: the column of the first new token (the prompt's width; 1 after a decoder's start token). `eos`: the ids
    that end a text. `limit`: the tokens that a row may have at most. `written`: the ids of a text that a row continues.
    With `finish`, the last unit is kept for a full stop. Limits are given once for each text; a text has as many rows
    as beams or returned sequences.
    """

    def __init__(
        self,
        meter: Meter,
        low: Iterable[int],
        high: Iterable[int | None] | None,
        *,
        start: int,
        eos: list[int],
        limit: Iterable[int | None] | None = None,
        finish: bool = True,
        written: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.constraint = LengthConstraint(meter, low, high, eos=eos, limit=limit, finish=finish, written=written)
        self.start = start

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if input_ids.shape[1] < self.start:  # a language token is forced here; it is not part of the text
            return scores
        return self.constraint(input_ids[:, self.start :], scores)
