"""Token choice: the next token of each row within the hard budget, and what the model's scores say of it.

Rows that have ended are dropped when they are half of all. A listener receives the tokens of its row, and can end it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, converter, library, to_numpy
from ..constraint.mask import LengthConstraint
from ..constraint.mixed import MixedConstraint
from ..engines.base import Engine
from ..engines.sampling import SeededSampler
from ..scoring.completeness import TokenScores, agreement
from .loops import LoopGuard
from .requests import Listener


class TokenChoice:
    """Chooses the next token of each row within the constraint, and records the unmasked and masked scores.

    The guard comes first: its scores count as the model's own, so a text that leaves a loop is not forced.
    """

    def __init__(
        self,
        engine: Engine,
        constraint: LengthConstraint | MixedConstraint,
        sampler: SeededSampler | None,
        listeners: Sequence[Listener | None] = (),
        tell: bool = True,
        guard: LoopGuard | None = None,
    ) -> None:
        self.constraint, self.sampler, self.guard = constraint, sampler, guard
        self._listeners = {place: one for place, one in enumerate(listeners) if one is not None}
        self._tell = tell  # whether listeners receive the tokens
        self._eos, self._pad = engine.eos, engine.pad
        self._ends: Array = None  # (ends,)
        self._rows: Array = None  # (rows,) 0, 1, 2, ...
        self._going: Array = None  # (rows,) whether the row has not ended
        self._spans: list[_Span] = []
        self._told: dict[int, tuple[list[int], list[float]]] = {place: ([], []) for place in self._listeners}
        self.steps = 0
        self.done = False  # every row has ended

    def __call__(self, scores: Array) -> Array:
        """Return the next tokens, (rows,), and append them to the state."""
        lib = library(scores)
        if not self._spans:
            self._to_device(scores)
        closed = self._closed()
        if self.guard is not None:
            scores = self.guard.apply(scores)
        kept = self.constraint.apply(scores)
        token = kept.argmax(1) if self.sampler is None else self.sampler(kept, self.steps)
        if self.done:  # the engine's search is still running
            token = lib.full_like(token, self._eos[0])
        if closed:
            token[closed] = self._eos[0]
        token = lib.where(self._going, token, self._pad)
        own, made = scores[self._rows, token], kept[self._rows, token]
        end = lib.amax(scores[:, self._ends], 1)
        self._spans[-1].add(token, (own, made, lib.amax(scores, 1), lib.amax(kept, 1), end))
        self._remember()
        self._going = self._going & ~lib.isin(token, self._ends)
        self.steps += 1
        self.done = not self._going.any()
        self.constraint.update(token)
        if self.guard is not None:
            self.guard.update(np.where(to_numpy(self._going), to_numpy(token), -1))
        return token

    @property
    def last(self) -> Array:
        """The tokens of the last step, (rows,)."""
        return self._spans[-1].tokens[-1]

    def drop_ended(self) -> NDArray[np.int64] | None:
        """Drop the rows that have ended, if they are half of all, and return those that are left; else None.

        A row that has ended costs as much as another, but `Rows.select` copies the KV cache of those that are left.
        """
        going = to_numpy(self._going)
        if 2 * going.sum() > len(going):
            return None
        rows, convert = going.nonzero()[0], converter(self._going)
        self.constraint.select(rows)
        if self.sampler is not None:
            self.sampler.select(rows)
        if self.guard is not None:
            self.guard.select(rows)
        span = self._spans[-1]
        self._spans.append(_Span(span.places[rows], [span.tokens[-1][convert(rows)]], []))
        self._going, self._rows = self._going[convert(rows)], self._rows[: len(rows)]
        return rows

    def _closed(self) -> list[int]:
        """Give the listeners their tokens, and return the rows that they end."""
        if not self._listeners:
            return []
        going, found = self._going.tolist(), []
        for row, place in enumerate(self._spans[-1].places.tolist()):
            listener = self._listeners.get(place)
            if listener is None or not going[row]:
                continue
            if self._tell and not listener.closed:
                listener.put(*self._told[place])
            if listener.closed:
                found.append(row)
        return found

    def _remember(self) -> None:
        """Keep the tokens of the last step for the listeners."""
        if not self._listeners or not self._tell:
            return
        span = self._spans[-1]
        agreed, chosen = agreement(*map(to_numpy, span.scores[-1][:4])), span.tokens[-1].tolist()
        for row, place in enumerate(span.places.tolist()):
            if place in self._told:
                ids, values = self._told[place]
                ids.append(chosen[row])
                values.append(float(agreed[row]))

    def _to_device(self, scores: Array) -> None:
        """Make the state of the rows in the library and on the device of the scores."""
        convert, rows = converter(scores), len(scores)
        self._spans.append(_Span(np.arange(rows), [], []))
        self._ends, self._rows, self._going = (
            convert(array) for array in (np.array(self._eos), np.arange(rows), np.ones(rows, np.bool_))
        )

    @property
    def texts(self) -> list[list[int]]:
        """The tokens that were chosen, of all rows, padded after their ends."""
        found = np.full((len(self._spans[0].places), self.steps), self._pad)
        for columns, span in self._columns():
            tokens = span.tokens[-len(span.scores) :]
            found[span.places, columns] = to_numpy(library(tokens[0]).stack(tokens, 1))
        texts: list[list[int]] = found.tolist()
        return texts

    @property
    def token_scores(self) -> TokenScores:
        """The scores of the tokens that were chosen; 0 where a row has been dropped."""
        found = np.zeros((5, len(self._spans[0].places), self.steps), np.float32)
        for columns, span in self._columns():
            for kind, column in enumerate(zip(*span.scores, strict=True)):
                found[kind, span.places, columns] = to_numpy(library(column[0]).stack(column, 1))
        own, made, best, top, end = found
        return TokenScores(agreement(own, made, best, top), np.exp(end - best), own - best)

    def _columns(self) -> Iterator[tuple[slice, "_Span"]]:
        """Yield the steps of each span, and the span."""
        at = 0
        for span in self._spans:
            yield slice(at, at := at + len(span.scores)), span


@dataclass
class _Span:
    """Consecutive steps with the same rows: what was chosen in each. `places`: of the rows among all rows."""

    places: NDArray[np.int64]
    tokens: list[Array]  # of each step, (rows,); a later span begins with those of the last step before it
    scores: list[tuple[Array, ...]]  # of each step

    def add(self, token: Array, scores: tuple[Array, ...]) -> None:
        self.tokens.append(token)
        self.scores.append(scores)


def only(token: Array, scores: Array) -> Array:
    """Return scores that leave one token of each row."""
    found = library(scores).full_like(scores, -np.inf)
    found[converter(scores)(np.arange(len(found))), token] = 0.0
    return found
