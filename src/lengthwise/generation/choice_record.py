"""Choice record: the tokens that were chosen in each step, their scores, and the forks of rows.

Rows are dropped and added while a batch is decoded. Here each row keeps its place: first the rows of the first step,
then the forks. What is chosen, and which forks are tried, is decided in `token_choice.py`.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, converter, library, to_numpy
from ..scoring.completeness import Floats, TokenScores, agreement
from .endings import MIN_AGREEMENT

# A row keeps at most this number of forks that end with a full stop, and in each step at most this number of tokens
# that could end an item: every end is judged by a pass.
KEPT_FORKS = 2
# A row keeps at most this number of items that could end. There are more of them than of full stops, because many steps
# are near the end where tokens cost nothing, such as spaces.
KEPT_ITEMS = 8
# A token is tried if the log of its probability over that of the likeliest token is at least this, and a full stop is
# accepted from there on.
LEAST_LIKELY = math.log(MIN_AGREEMENT)


class StepScores(NamedTuple):
    """The scores of the tokens that were chosen in a step: arrays (rows,), or numbers for one token."""

    own: Any  # the model's score of the chosen token
    made: Any  # its score after masking
    best: Any  # the model's best score
    top: Any  # the best score after masking
    end: Any  # the model's best score of an end token


class Fork(NamedTuple):
    """A row that continues `origin` with another token in this step. Both are places."""

    place: int
    origin: int
    step: int
    token: int
    scores: StepScores  # of the token
    tokens: int  # with the full stop 2; 1 if `token` ends an item, a row or code, 0 if the text ends before it
    fence: bool  # whether `token` closes a block of code


@dataclass
class _Span:
    """Consecutive steps with the same rows: what was chosen in each. `places`: of the rows."""

    places: NDArray[np.int64]
    tokens: list[Array]  # of each step, (rows,); a later span begins with those of the last step before it
    scores: list[StepScores]  # of each step


class ChoiceRecord:
    """What was chosen in each step. `begin` receives the number of rows of the first step."""

    def __init__(self, eos: Sequence[int], pad: int) -> None:
        self._eos, self._pad = eos, pad
        self._spans: list[_Span] = []
        self._forks: list[Fork] = []
        self.steps = 0

    # ---- while the batch is decoded

    def begin(self, rows: int) -> None:
        """Start with this number of rows."""
        self._spans.append(_Span(np.arange(rows), [], []))

    def add(self, token: Array, scores: StepScores) -> None:
        """Append a step: the token of each row, and its scores."""
        self._spans[-1].tokens.append(token)
        self._spans[-1].scores.append(scores)
        self.steps += 1

    @property
    def places(self) -> NDArray[np.int64]:
        """The place of each row of the last step, (rows,)."""
        return self._spans[-1].places

    @property
    def tokens(self) -> Array:
        """The tokens of the last step, (rows,)."""
        return self._spans[-1].tokens[-1]

    @property
    def scores(self) -> StepScores:
        """The scores of the last step, (rows,)."""
        return self._spans[-1].scores[-1]

    def select(self, rows: NDArray[np.int64]) -> None:
        """Continue these rows only."""
        self._spans.append(_Span(self.places[rows], [self.tokens[converter(self.tokens)(rows)]], []))

    def fork(self, row: int, token: int, own: float, tokens: int = 2, fence: bool = False) -> int:
        """Record a fork of this row with another token in the last step, and return its place.

        `own`: the model's score of the token, which is not masked. `tokens` and `fence`: see `Fork`.
        """
        place = len(self._spans[0].places) + len(self._forks)
        step = self.scores
        best, top, end = float(step.best[row]), float(step.top[row]), float(step.end[row])
        scores = StepScores(own, top, best, top, end)
        self._forks.append(Fork(place, int(self.places[row]), self.steps - 1, token, scores, tokens, fence))
        return place

    def extend(self, places: Sequence[int], tokens: Array) -> None:
        """Continue the forks with these places beside the rows. `tokens`: of the rows and the forks in this step."""
        self._spans.append(_Span(np.concatenate([self.places, places]), [tokens], []))

    # ---- after the last step

    @property
    def texts(self) -> list[list[int]]:
        """The tokens that were chosen, of all rows and then of `forks`, padded after their ends."""
        texts: list[list[int]] = self._recorded[0][self._kept].tolist()
        return texts

    @property
    def token_scores(self) -> TokenScores:
        """The scores of the tokens that were chosen; 0 where a row has been dropped."""
        own, made, best, top, end = self._recorded[1][:, self._kept]
        return TokenScores(agreement(own, made, best, top), np.exp(end - best), own - best)

    @cached_property
    def forks(self) -> list[Fork]:
        """The forks that end in a block, and those whose full stop the model accepts.

        Of full stops, the likeliest `KEPT_FORKS` of a row count, of items the likeliest `KEPT_ITEMS`. Of the blocks of
        code that a row could have closed, the last counts, unless the row has closed it later.
        """
        tokens, scores = self._recorded
        likely = StepScores(*scores).own - StepScores(*scores).best
        fences = {fork.origin: fork for fork in self._forks if fork.fence}
        blocks = [one for one in fences.values() if not (tokens[one.origin, one.step :] == one.token).any()]
        items = {
            fork: fork.scores.own - fork.scores.best for fork in self._forks if fork.tokens == 1 and not fork.fence
        }
        blocks += sorted(_likeliest(items, KEPT_ITEMS), key=lambda fork: fork.place)
        blocks += {fork.origin: fork for fork in self._forks if fork.tokens == 0}.values()
        stopped = ~np.isin(tokens, self._eos)
        closed: dict[Fork, float] = {}
        for fork in self._forks:
            if fork.tokens == 2 and stopped[fork.place, fork.step + 1 : fork.step + 2].any():
                closed[fork] = float(likely[fork.place, fork.step + 1])
        accepted = {fork: value for fork, value in closed.items() if value >= LEAST_LIKELY}
        return blocks + _likeliest(accepted, KEPT_FORKS)

    @property
    def _kept(self) -> list[int]:
        """The places of all rows and then of `forks`."""
        return [*range(len(self._spans[0].places)), *(fork.place for fork in self.forks)]

    @cached_property
    def _recorded(self) -> tuple[NDArray[np.int64], Floats]:
        """The tokens of all places, (places, steps), and the five scores of each, (5, places, steps)."""
        shape = len(self._spans[0].places) + len(self._forks), self.steps
        tokens, scores = np.full(shape, self._pad), np.zeros((len(StepScores._fields), *shape), np.float32)
        ends = StepScores(*scores).end  # a view
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
            tokens[place, end:], ends[place, end:] = self._eos[0], -np.inf
        return tokens, scores


def _likeliest(forks: dict[Fork, float], most: int) -> list[Fork]:
    """Return the forks with the largest values, at most `most` of each row, the largest first."""
    kept, taken = [], Counter[int]()
    for fork in sorted(forks, key=lambda fork: -forks[fork]):
        if taken[fork.origin] < most:
            taken[fork.origin] += 1
            kept.append(fork)
    return kept
