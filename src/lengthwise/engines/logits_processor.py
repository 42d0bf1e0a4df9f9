"""The hard budget as a LogitsProcessor for `generate` of transformers: beam search, and calls of a user's own.

It recomputes the state of every row from its ids in each step, so beams may be reordered freely. A thin adapter: what
is allowed is decided in `constraint/mask.py`.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from transformers import LogitsProcessor

from ..constraint.length_state import LengthState
from ..constraint.mask import LengthConstraint
from ..length.meter import Meter


class LengthBudgetLogitsProcessor(LogitsProcessor):  # type: ignore[misc]  # transformers is untyped
    """Keeps every row inside `low[row] <= length <= high[row]`, counted by `meter`; None in `high`: no maximum.

    `start`: the column of the first written token (the prompt's width; 1 after a decoder's start token). A row's text
    begins `skip[row]` columns later. `eos`: the ids that end a text. `limit`: the tokens that a row may write at most.
    With `finish` the last unit of the room is kept for a full stop. Limits are given once for each text; a text has as
    many rows as beams or returned sequences.
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
        skip: Iterable[int] | None = None,
    ) -> None:
        self.constraint = LengthConstraint(meter, low, high, eos=eos, limit=limit, finish=finish)
        self.start, self.texts = start, len(self.constraint.low)
        self.skip = np.zeros(self.texts, np.int64) if skip is None else np.array([int(columns) for columns in skip])

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if input_ids.shape[1] < self.start:  # a language token is forced here; it is no text
            return scores
        rows, each = len(self.constraint.low), len(input_ids) // self.texts
        if rows != len(input_ids):
            self.constraint.select(np.arange(self.texts).repeat(each) * (rows // self.texts))
        ids = input_ids[:, self.start :].cpu().numpy()
        self.constraint.state = LengthState.of(self.constraint.meter, ids, self.skip.repeat(each))
        return self.constraint.apply(scores)
