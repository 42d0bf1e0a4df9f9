"""MixedConstraint: the hard budget of a batch whose rows count in several units.

Each unit has its own `LengthConstraint`, which sees only its rows.
"""

from collections.abc import Sequence

import numpy as np

from ..arrays import Array, to_numpy
from .mask import LengthConstraint


class MixedConstraint:
    """Applies each constraint to its rows. `parts`: the rows and their constraint; every row is in one of them."""

    def __init__(self, parts: Sequence[tuple[list[int], LengthConstraint]]) -> None:
        self.parts: Sequence[tuple[Sequence[int], LengthConstraint]] = parts
        self._texts = sum(len(rows) for rows, _ in parts)

    def apply(self, scores: Array) -> Array:
        """Return the scores (rows, vocabulary) with the tokens that are not allowed at minus infinity."""
        kept = scores + 0
        for rows, part in self.parts:
            kept[rows] = part.apply(scores[rows])
        return kept

    def __call__(self, ids: Array, scores: Array) -> Array:
        """Like `apply`, for a search that reorders the rows of each text; `ids` (rows, time) are the texts so far."""
        kept, each = scores + 0, len(scores) // self._texts
        for texts, part in self.parts:
            rows = (np.array(texts)[:, None] * each + np.arange(each)).ravel().tolist()
            kept[rows] = part(ids[rows], scores[rows])
        return kept

    def update(self, tokens: Array) -> None:
        """Append the chosen tokens, one for each row."""
        for rows, part in self.parts:
            part.update(tokens[rows])

    def select(self, rows: Array) -> None:
        """Keep these rows in this order."""
        order, parts = to_numpy(rows).tolist(), []
        for own, part in self.parts:
            places = {row: place for place, row in enumerate(own)}
            part.select([places[row] for row in order if row in places])
            if kept := [place for place, row in enumerate(order) if row in places]:
                parts.append((kept, part))
        self.parts = parts

    def stops(self, kept: Array) -> Array:
        """Return the likeliest full stop that each row allows, or the end of the text if it allows none: (rows,)."""
        return self.parts[0][1].stops(kept)  # depends on the tokenizer only

    def full_stops(self, tokens: Array) -> Array:
        """Return which of these tokens are full stops, as an array of the same library and shape."""
        return self.parts[0][1].full_stops(tokens)  # depends on the tokenizer only
