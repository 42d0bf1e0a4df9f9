"""Token choice: the next token of each row within the hard budget, and what the model's scores say of it.

Rows that have ended are dropped when they are a quarter of all. A listener receives the tokens of its row, and can end
it. If a text must have an exact length, the few tokens after which a full stop would give it that length are tried
beside the chosen one: each in a fork of the row, which ends with the full stop. A fork costs one forward pass. A list
item needs no full stop. A text that could end now with a list item or a table row, or by closing its code, is kept
without a pass.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, converter, library, to_numpy
from ..constraint.mask import LengthConstraint
from ..constraint.mixed import MixedConstraint
from ..engines.base import Engine
from ..engines.sampling import SeededSampler
from ..scoring.completeness import TokenScores, agreement
from .endings import MIN_AGREEMENT
from .loops import LoopGuard
from .requests import Listener

FORKS = 4  # of a row in each step, at most
FORK_TOKENS = 2048  # of a row and its forks together, at most: a text that long seldom needs them, and they take memory
KEPT_FORKS = 2  # with a full stop, of a row in all, and items that could end in a step: each end is judged by a pass
KEPT_ITEMS = (
    8  # that could end, of a row in all: where tokens cost nothing, such as spaces, many steps are near the end
)
_LEAST = math.log(MIN_AGREEMENT)


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
        self.starts: Sequence[int] = ()  # how many tokens are before the first one of each row; none: no forks
        self.closes_blocks = False  # whether texts that end with a list item or a closing fence are recorded as forks
        self._listeners = {place: one for place, one in enumerate(listeners) if one is not None}
        self._tell = tell  # whether listeners receive the tokens
        self._eos, self._pad = engine.eos, engine.pad
        self._ends: Array = None  # (ends,)
        self._rows: Array = None  # (rows,) 0, 1, 2, ...
        self._going: NDArray[np.bool_] = np.zeros(0, np.bool_)  # (rows,) whether the row has not ended
        self._closing: NDArray[np.bool_] = np.zeros(0, np.bool_)  # (rows,) whether the row ends with its next token
        self._spans: list[_Span] = []
        self._forks: list[_Fork] = []
        self._sources: NDArray[np.int64] | None = None  # (rows,) if rows were added: which row each of them continues
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
        self._spans[-1].add(token, (own, made, best, top, end))
        self._remember()
        chosen = to_numpy(token)  # a GPU is waited for here, once in a step
        self._going = before & ~np.isin(chosen, self._eos)
        if self.closes_blocks:
            self._close_blocks(chosen, scores, before)
        if self.starts:
            chosen = self._fork(chosen, scores, kept, before)
        self.steps += 1
        self.done = not self._going.any()
        self.constraint.update(chosen)
        if self.guard is not None:
            self.guard.update(np.where(self._going, chosen, -1))
        return self.last

    @property
    def last(self) -> Array:
        """The tokens of the last step, (rows,)."""
        return self._spans[-1].tokens[-1]

    def rearranged(self) -> NDArray[np.int64] | None:
        """Return which rows of the last step are continued, forks among them; None if they are the same rows.

        Rows that have ended are dropped if they are a quarter of all, or if there are forks. Such a row costs as much
        as another, but `Rows.select` copies the KV cache of those that are left.
        """
        sources, self._sources = self._sources, None
        going = self._going
        if going.all() or (sources is None and 4 * going.sum() > 3 * len(going)):
            return sources
        rows, convert = going.nonzero()[0], converter(self._rows)
        self._select(rows)
        span = self._spans[-1]
        self._spans.append(_Span(span.places[rows], [span.tokens[-1][convert(rows)]], []))
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
        self, chosen: NDArray[np.int64], scores: Array, kept: Array, before: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Add a row for each other token after which a full stop may end a row; return the tokens of all rows.

        `before`: whether each row had not ended before this step.
        """
        rows, tokens = self.constraint.closings(scores, kept, _LEAST, FORKS)
        if not rows:
            return chosen
        places = self._spans[-1].places
        tried: list[tuple[int, int]] = []
        taken = Counter[int]()
        for row, other in zip(rows, tokens, strict=True):
            if not before[row] or other == chosen[row]:
                continue
            taken[row] += 1
            if (1 + taken[row]) * (self.starts[places[row]] + self.steps) <= FORK_TOKENS:
                tried.append((row, other))
        if not tried:
            return chosen
        convert, span = converter(scores), self._spans[-1]
        sources, others = np.array(tried).T
        first = len(self._spans[0].places) + len(self._forks)
        for place, (row, other) in enumerate(tried, first):
            _, _, best, top, end = (float(column[row]) for column in span.scores[-1])
            known = float(scores[row, other]), top, best, top, end
            self._forks.append(_Fork(place, int(span.places[row]), self.steps, other, known))
        self._sources = np.concatenate([np.arange(len(before)), sources])
        self._select(self._sources)
        self._closing = np.arange(len(self._sources)) >= len(before)
        chosen = np.concatenate([chosen, others])
        places = np.concatenate([span.places, np.arange(first, first + len(tried))])
        self._spans.append(_Span(places, [convert(chosen)], []))
        self._rows = convert(np.arange(len(places)))
        self._going = np.concatenate([self._going, np.ones(len(tried), np.bool_)])
        return chosen

    def _close_blocks(self, chosen: NDArray[np.int64], scores: Array, before: NDArray[np.bool_]) -> None:
        """Record a fork of each row that could end here with a list item or a closing fence. It takes no pass.

        `before`: whether each row had not ended before this step, and is no fork.
        """
        span = self._spans[-1]
        rows, fence = self.constraint.closable_code(scores, _LEAST)
        found = [(row, fence, float(scores[row, fence]), 1) for row in rows if chosen[row] != fence]
        found += [(row, self._eos[0], 0.0, 0) for row in self.constraint.line_ends(scores)]
        last = self.constraint.block_closings(scores, _LEAST, KEPT_FORKS)
        found += [(row, other, float(scores[row, other]), 1) for row, other in zip(*last, strict=True)]
        for row, other, own, tokens in found:
            if not before[row]:
                continue
            place = len(self._spans[0].places) + len(self._forks)
            _, _, best, top, end = (float(column[row]) for column in span.scores[-1])
            known = own, top, best, top, end
            self._forks.append(_Fork(place, int(span.places[row]), self.steps, other, known, tokens, other == fence))

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
        self._closing = np.zeros(rows, np.bool_)
        self._going = np.ones(rows, np.bool_)
        self._ends, self._rows = convert(np.array(self._eos)), convert(np.arange(rows))

    # ---- what was chosen

    @property
    def texts(self) -> list[list[int]]:
        """The tokens that were chosen, of all rows and then of `forks`, padded after their ends."""
        texts: list[list[int]] = self._recorded[0][self._places].tolist()
        return texts

    @property
    def token_scores(self) -> TokenScores:
        """The scores of the tokens that were chosen; 0 where a row has been dropped."""
        own, made, best, top, end = self._recorded[1][:, self._places]
        return TokenScores(agreement(own, made, best, top), np.exp(end - best), own - best)

    @cached_property
    def forks(self) -> list["_Fork"]:
        """The forks that end in a block, and those whose full stop the model accepts.

        Of full stops, the likeliest `KEPT_FORKS` of a row count, of items the likeliest `KEPT_ITEMS`. Of the blocks of
        code that a row could have closed, the last counts, unless the row has closed it later.
        """
        tokens, (own, _, best, *_) = self._recorded
        fences = {fork.origin: fork for fork in self._forks if fork.fence}
        blocks = [one for one in fences.values() if not (tokens[one.origin, one.step :] == one.token).any()]
        items = {fork: fork.scores[0] - fork.scores[2] for fork in self._forks if fork.tokens == 1 and not fork.fence}
        blocks += sorted(_likeliest(items, KEPT_ITEMS), key=lambda fork: fork.place)
        blocks += {fork.origin: fork for fork in self._forks if fork.tokens == 0}.values()
        stopped = ~np.isin(tokens, self._eos)
        closed: dict[_Fork, float] = {}
        for fork in self._forks:
            if fork.tokens == 2 and stopped[fork.place, fork.step + 1 : fork.step + 2].any():
                closed[fork] = float((own - best)[fork.place, fork.step + 1])
        accepted = {fork: likely for fork, likely in closed.items() if likely >= _LEAST}
        return blocks + _likeliest(accepted, KEPT_FORKS)

    @property
    def _places(self) -> list[int]:
        """The places of all rows and then of `forks`."""
        return [*range(len(self._spans[0].places)), *(fork.place for fork in self.forks)]

    @cached_property
    def _recorded(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The tokens of all places, (places, steps), and their scores, (5, places, steps). Read after the last step."""
        shape = len(self._spans[0].places) + len(self._forks), self.steps
        tokens, scores = np.full(shape, self._pad), np.zeros((5, *shape), np.float32)
        at = 0
        for span in filter(lambda span: span.scores, self._spans):
            columns, lib = slice(at, at := at + len(span.scores)), library(span.tokens[0])
            tokens[span.places, columns] = to_numpy(lib.stack(span.tokens[-len(span.scores) :], 1))
            for kind, column in enumerate(zip(*span.scores, strict=True)):
                scores[kind, span.places, columns] = to_numpy(lib.stack(column, 1))
        for fork in self._forks:
            place, step, end = fork.place, fork.step, fork.step + fork.tokens
            tokens[place, :step], scores[:, place, :step] = tokens[fork.origin, :step], scores[:, fork.origin, :step]
            tokens[place, step], scores[:, place, step] = fork.token, fork.scores
            tokens[place, end:], scores[4, place, end:] = self._eos[0], -np.inf
        return tokens, scores


@dataclass
class _Span:
    """Consecutive steps with the same rows: what was chosen in each. `places`: of the rows among all rows."""

    places: NDArray[np.int64]
    tokens: list[Array]  # of each step, (rows,); a later span begins with those of the last step before it
    scores: list[tuple[Array, ...]]  # of each step

    def add(self, token: Array, scores: tuple[Array, ...]) -> None:
        self.tokens.append(token)
        self.scores.append(scores)


@dataclass(frozen=True)
class _Fork:
    """A row that continues `origin` with another token in this step. Both are places among all rows."""

    place: int
    origin: int
    step: int
    token: int
    scores: tuple[float, ...]  # of the token, as in a span
    tokens: int = 2  # with the full stop; 1 if `token` ends an item, a row or code, 0 if the text ends before it
    fence: bool = False  # whether `token` closes a block of code


def _likeliest(forks: dict[_Fork, float], most: int) -> list[_Fork]:
    """Return the forks with the largest values, at most `most` of each row, the largest first."""
    kept, taken = [], Counter[int]()
    for fork in sorted(forks, key=lambda fork: -forks[fork]):
        if taken[fork.origin] < most:
            taken[fork.origin] += 1
            kept.append(fork)
    return kept


def only(token: Array, scores: Array) -> Array:
    """Return scores that leave one token of each row."""
    found = library(scores).full_like(scores, -np.inf)
    found[converter(scores)(np.arange(len(found))), token] = 0.0
    return found
