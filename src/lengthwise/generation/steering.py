"""Steering: raise the scores of likely tokens after which a sentence or an item probably ends where the text must end.

    score(x) += strength · (log p(x) - log Σ P(y) p(y)),  y: the likeliest tokens, P: their probabilities

p(x): the probability, by the future discriminator, that a sentence, an item or a table row ends after x as many units
later as are then left; the sum over all ends that a window allows. Only near the end of a text, since farther away all
tokens are alike. A block of code is closed as well, if it can be.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..arrays import Array, converter, library, to_numpy
from ..constraint.mask import UNLIMITED, LengthConstraint
from ..constraint.mixed import MixedConstraint
from ..constraint.token_costs import FENCE
from ..engines.base import Engine
from ..engines.future_discriminator import FutureDiscriminator
from ..length.meter import Integers
from ..length.sentences import finished
from .choice_record import LEAST_LIKELY

STRENGTH = 3.0
CANDIDATES = 20  # the likeliest tokens of a row; no other is steered
# Per unit: how many units before the end it begins. Farther away all tokens have nearly the same probability.
REACH = {"tokens": 24, "words": 20, "chars": 96}
# Per unit: with so many units left, at least and at most, a block of code is closed so that a sentence follows it.
ROOM = {"tokens": (10, 32), "words": (6, 24), "chars": (40, 128)}
_FLOOR = 1e-4  # of a probability


class Steering:
    """Steers the rows of a batch. `constraint`: their hard budget, from which what remains is read."""

    def __init__(
        self, engine: Engine, discriminator: FutureDiscriminator, constraint: LengthConstraint | MixedConstraint
    ) -> None:
        self._engine, self._discriminator, self._constraint = engine, discriminator, constraint

    def apply(self, scores: Array, hidden: Array) -> Array:
        """Return the scores (rows, vocabulary), steered. `hidden`: the last hidden state of each row, (rows, width)."""
        for rows, part in self._parts():
            scores = self._code_closed(part, rows, scores)
            near = self._near(part)
            if not len(near):
                continue
            own = converter(scores)(np.asarray(rows)[near])
            top = _likeliest(scores[own], CANDIDATES)
            bonus = self._bonus(part, near, scores[own[:, None], top], top, hidden[own])
            scores = _added(scores, own[:, None], top, bonus)
        return scores

    def _parts(self) -> Iterator[tuple[Any, LengthConstraint]]:
        """Yield the rows of each unit that the discriminator knows."""
        for rows, part in self._constraint.parts:
            if part.meter.unit.name in self._discriminator.units:
                yield rows, part

    def _code_closed(self, part: LengthConstraint, rows: Any, scores: Array) -> Array:
        """Return the scores, where the fence is the likeliest token if it may close a block of code; see `ROOM`.

        The model must give the fence a fiftieth of the likeliest token's probability: it closes no open function.
        """
        fence, left, (least, most) = part.costs.fence, part.high - part.state.used, ROOM[part.meter.unit.name]
        if fence is None:
            return scores
        near = (least <= left) & (left <= most) & part.state.fenced
        for row in (near & part.costs.ends_line[part.state.last]).nonzero()[0].tolist():
            own = converter(scores)(np.asarray(rows)[[row]])
            short = float((scores[own].max() - scores[own, fence])[0])
            if 0 < short <= -LEAST_LIKELY and finished(part.text(row) + FENCE):
                scores = _added(scores, own, fence, short + 1)
        return scores

    def _near(self, part: LengthConstraint) -> Integers:
        """Return the rows of this part that are near their maximum."""
        left = part.high - part.state.used
        reach = min(self._discriminator.reach, REACH[part.meter.unit.name])
        near: Integers = ((part.high < UNLIMITED) & (left >= 0) & (left <= reach)).nonzero()[0]
        return near

    def _bonus(self, part: LengthConstraint, near: Integers, likely: Array, top: Array, hidden: Array) -> Array:
        """Return what is added to the scores of the candidates `top`: (rows, candidates). `likely`: their scores."""
        lib, convert = library(likely), converter(likely)
        tokens = to_numpy(top)
        after = part.state.used[near, None] + _costs(part, near, tokens)
        r = np.arange(self._discriminator.reach + 1)
        allowed = r >= (part.low[near, None] - after)[..., None]
        allowed &= r <= (part.high[near, None] - after)[..., None]
        found = self._discriminator.probabilities(hidden, self._engine.embedded(top), part.meter.unit.name)
        p = (found * convert(allowed)).sum(-1).clip(_FLOOR, 1.0)
        share = lib.exp(likely - lib.amax(likely, 1)[:, None])
        share = share / share.sum(1)[:, None]
        bonus = STRENGTH * (lib.log(p) - lib.log((share * p).sum(1))[:, None])
        return bonus * convert(~np.isin(tokens, self._engine.eos))


def _costs(part: LengthConstraint, rows: Integers, tokens: Integers) -> Integers:
    """Return the units that each token adds to its row, which has begun: (rows, tokens)."""
    meter = part.meter
    tokens = tokens.clip(max=len(meter.cost) - 1)  # a model may have more tokens than its tokenizer
    found = meter.cost[tokens]
    if meter.joins is not None:
        found = found - (meter.joins[tokens] & part.state.in_word[rows, None])
    return found


def _likeliest(scores: Array, count: int) -> Array:
    """Return the ids of the likeliest tokens of each row, in any order: (rows, count)."""
    count = min(count, scores.shape[1])
    if isinstance(scores, np.ndarray):
        return np.argpartition(-scores, count - 1, axis=1)[:, :count]
    return scores.topk(count, 1).indices


def _added(scores: Array, rows: Array, tokens: Array, bonus: Array) -> Array:
    """Return the scores plus the bonus of these tokens; the scores that were given stay as they are."""
    found = scores + 0
    found[rows, tokens] += bonus
    return found
