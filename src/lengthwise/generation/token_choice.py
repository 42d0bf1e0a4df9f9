"""Token choice: the next token of each row within the hard budget, and what the model's scores say of it.

Rows that have ended are dropped when they are a quarter of all. A listener receives the tokens of its row, and can end
it. If a text must have an exact length, the few tokens after which a full stop would give it that length are tried
beside the chosen one: each in a fork of the row, which ends with the full stop. A fork costs one forward pass. A list
item needs no full stop. A text that could end now with a list item or a table row, or by closing its code, is kept
without a pass.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, converter, library, to_numpy
from ..constraint.closings import Closings
from ..constraint.mask import LengthConstraint
from ..constraint.mixed import MixedConstraint
from ..engines.base import Engine
from ..engines.sampling import SeededSampler
from ..scoring.completeness import agreement
from .choice_record import KEPT_FORKS, LEAST_LIKELY, ChoiceRecord, StepScores
from .loops import LoopGuard
from .requests import Listener

# In each step, at most this number of forks of a row are tried.
FORKS = 4
# A row and its forks have at most this number of tokens together: longer texts seldom need forks, and they take memory.
FORK_TOKENS = 2048


class TokenChoice:
    """Chooses the next token of each row within the constraint, and records the unmasked and masked scores.

    The guard comes first: its scores count as the model's own, so a text that leaves a loop is not forced.
    `closings`: finds the ends that are recorded as forks; none are without it. `starts`: how many tokens are before the
    first one of each row, if rows can be forked to try a full stop; empty if they cannot.
    """

    def __init__(
        self,
        engine: Engine,
        constraint: LengthConstraint | MixedConstraint,
        sampler: SeededSampler | None,
        listeners: Sequence[Listener | None] = (),
        tell: bool = True,
        guard: LoopGuard | None = None,
        *,
        closings: Closings | None = None,
        starts: Sequence[int] = (),
    ) -> None:
        self.constraint, self.sampler, self.guard = constraint, sampler, guard
        self.record = ChoiceRecord(engine.eos, engine.pad)
        self.done = False  # every row has ended
        self._closings, self._starts = closings, starts
        self._listeners = {place: one for place, one in enumerate(listeners) if one is not None}
        self._tell = tell  # whether listeners receive the tokens
        self._eos, self._pad = engine.eos, engine.pad
        self._ends: Array = None  # (ends,)
        self._rows: Array = None  # (rows,) 0, 1, 2, ...
        self._going: NDArray[np.bool_] = np.zeros(0, np.bool_)  # (rows,) whether the row has not ended
        self._closing: NDArray[np.bool_] = np.zeros(0, np.bool_)  # (rows,) whether the row ends with its next token
        self._sources: NDArray[np.int64] | None = None  # (rows,) if rows were added: which row each of them continues
        self._told: dict[int, tuple[list[int], list[float]]] = {place: ([], []) for place in self._listeners}

    def __call__(self, scores: Array) -> Array:
        """Return the next tokens, (rows,), and append them to the state."""
        lib = library(scores)
        if not self.record.steps:
            self._to_device(scores)
        closed = self._closed()
        if self.guard is not None:
            scores = self.guard.apply(scores)
        kept = self.constraint.apply(scores)
        token = kept.argmax(1) if self.sampler is None else self.sampler(kept, self.record.steps)
        closing = converter(scores)(self._closing) if self._closing.any() else None  # seldom: it is copied to a GPU
        if closing is not None:
            token = lib.where(closing, self.constraint.stops(kept), token)
        if self.done:  # the engine's search is still running
            token = lib.full_like(token, self._eos[0])
        if closed:
            token[closed] = self._eos[0]
        if not self._going.all():
            token = lib.where(converter(scores)(self._going), token, self._pad)
        own, best, top = scores[self._rows, token], lib.amax(scores, 1), lib.amax(kept, 1)
        made, before = kept[self._rows, token], self._going
        if closing is not None:  # a fork's full stop was not chosen by score
            made, before = lib.where(closing, top, made), before & ~self._closing
        end = lib.amax(scores[:, self._ends], 1)
        self.record.add(token, StepScores(own, made, best, top, end))
        self._remember()
        chosen = to_numpy(token)  # a GPU is waited for here, once in a step (and in steering, near the end)
        self._going = before & ~np.isin(chosen, self._eos)
        if self._closings is not None:
            self._close_blocks(self._closings, chosen, scores, before)
            if self._starts:
                chosen = self._fork(self._closings, chosen, scores, kept, before)
        self.done = not self._going.any()
        self.constraint.update(chosen)
        if self.guard is not None:
            self.guard.update(np.where(self._going, chosen, -1))
        return self.last

    @property
    def last(self) -> Array:
        """The tokens of the last step, (rows,)."""
        return self.record.tokens

    def rearranged(self) -> NDArray[np.int64] | None:
        """Return which rows of the last step are continued, forks among them; None if they are the same rows.

        Rows that have ended are dropped if they are a quarter of all, or if there are forks. Such a row costs as much
        as another, but `Rows.select` copies the KV cache of those that are left.
        """
        sources, self._sources = self._sources, None
        going = self._going
        if going.all() or (sources is None and 4 * going.sum() > 3 * len(going)):
            return sources
        rows = going.nonzero()[0]
        self._select(rows)
        self.record.select(rows)
        self._going, self._rows = going[rows], self._rows[: len(rows)]
        return rows if sources is None else sources[rows]

    def _select(self, rows: NDArray[np.int64]) -> None:
        """Keep these rows of the state in this order; a row that is given twice is forked."""
        self.constraint.select(rows)
        if self.sampler is not None:
            self.sampler.select(rows)
        if self.guard is not None:
            self.guard.select(rows)
        self._closing = self._closing[rows]

    def _fork(
        self, closings: Closings, chosen: NDArray[np.int64], scores: Array, kept: Array, before: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Add a row for each other token after which a full stop may end a row; return the tokens of all rows.

        `before`: whether each row had not ended before this step.
        """
        rows, tokens = closings.before_full_stop(scores, kept, LEAST_LIKELY, FORKS)
        if not rows:
            return chosen
        record, tried, taken = self.record, list[tuple[int, int]](), Counter[int]()
        for row, other in zip(rows, tokens, strict=True):
            if not before[row] or other == chosen[row]:
                continue
            taken[row] += 1
            length = self._starts[record.places[row]] + record.steps - 1
            if (1 + taken[row]) * length <= FORK_TOKENS:
                tried.append((row, other))
        if not tried:
            return chosen
        sources, others = np.array(tried).T
        places = [record.fork(row, other, float(scores[row, other])) for row, other in tried]
        self._sources = np.concatenate([np.arange(len(before)), sources])
        self._select(self._sources)
        self._closing = np.arange(len(self._sources)) >= len(before)
        chosen, convert = np.concatenate([chosen, others]), converter(scores)
        record.extend(places, convert(chosen))
        self._rows = convert(np.arange(len(chosen)))
        self._going = np.concatenate([self._going, np.ones(len(tried), np.bool_)])
        return chosen

    def _close_blocks(
        self, closings: Closings, chosen: NDArray[np.int64], scores: Array, before: NDArray[np.bool_]
    ) -> None:
        """Record a fork of each row that could end here with a list item or a closing fence. It takes no pass.

        `before`: whether each row had not ended before this step, and is no fork.
        """
        rows, fence = closings.of_code(scores, LEAST_LIKELY)
        found = [(row, fence, float(scores[row, fence]), 1) for row in rows if chosen[row] != fence]
        found += [(row, self._eos[0], 0.0, 0) for row in closings.line_ends(scores)]
        last = closings.of_blocks(scores, LEAST_LIKELY, KEPT_FORKS)
        found += [(row, other, float(scores[row, other]), 1) for row, other in zip(*last, strict=True)]
        for row, other, own, tokens in found:
            if before[row]:
                self.record.fork(row, other, own, tokens, other == fence)

    def _closed(self) -> list[int]:
        """Give the listeners their tokens, and return the rows that they end."""
        if not self._listeners:
            return []
        going, found = self._going.tolist(), []
        for row, place in enumerate(self.record.places.tolist()):
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
        last, chosen = self.record.scores, self.record.tokens.tolist()
        agreed = agreement(*map(to_numpy, (last.own, last.made, last.best, last.top)))
        for row, place in enumerate(self.record.places.tolist()):
            if place in self._told:
                ids, values = self._told[place]
                ids.append(chosen[row])
                values.append(float(agreed[row]))

    def _to_device(self, scores: Array) -> None:
        """Make the state of the rows in the library and on the device of the scores."""
        convert, rows = converter(scores), len(scores)
        self.record.begin(rows)
        self._closing = np.zeros(rows, np.bool_)
        self._going = np.ones(rows, np.bool_)
        self._ends, self._rows = convert(np.array(self._eos)), convert(np.arange(rows))


def only(token: Array, scores: Array) -> Array:
    """Return scores that leave one token of each row."""
    found = library(scores).full_like(scores, -np.inf)
    found[converter(scores)(np.arange(len(found))), token] = 0.0
    return found
