"""Closings: find where rows could end within their budgets, although the model has chosen other tokens.

An end is a full stop, the last token of a list item, a table row or a signature, or the fence of a block of code.
`generation/token_choice.py` tries these ends beside the text that the model writes.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from ..arrays import Array, to_numpy
from ..length.blocks import may_end_block
from ..length.fences import in_code
from ..length.meter import Integers
from ..length.sentences import finished
from .mask import LIKELY_END, LengthConstraint
from .mixed import MixedConstraint
from .token_costs import FENCE, token_costs_of

Found = tuple[list[int], list[int]]  # rows and, for each of them, a token

# With more units left, a row is not closed by a single token and a full stop.
_LAST_UNITS = 16
# Code is closed before the model closes it only if this share of the maximum has been used.
_LEAST_USED = 2 / 3


class Closings:
    """Finds the possible ends of the rows of a constraint, which advances them.

    The `scores` (rows, vocabulary) are those before masking. `least`: the log of a token's probability over that of the
    likeliest one, at least. `most`: the number of tokens for each row, at most.
    """

    def __init__(self, constraint: LengthConstraint | MixedConstraint) -> None:
        self._constraint = constraint

    def before_full_stop(self, scores: Array, kept: Array, least: float, most: int) -> Found:
        """Return rows and tokens after each of which a full stop gives the row its length, the likeliest first.

        Only for rows of an exact length. `kept`: what the constraint's `apply` returned for the `scores`.
        """
        rows: list[int] = []
        tokens: list[int] = []
        for own, part in self._constraint.parts:
            for row, found in _exact_tokens(own, part, scores, least, full_stop=True):
                allowed = to_numpy(kept[own[row]])[found] > -math.inf
                found = found[part.costs.ends_word[found] & allowed][:most]
                rows += [own[row]] * len(found)
                tokens += found.tolist()
        return rows, tokens

    def of_blocks(self, scores: Array, least: float, most: int) -> Found:
        """Return rows and tokens that end an item, a table row or a signature at an exact length, the likeliest first.

        Words are left out: their last one may be longer, see `line_ends`. So are tokens that end in white space, which
        the text loses, or inside a character.
        """
        rows: list[int] = []
        tokens: list[int] = []
        for own, part in self._constraint.parts:
            if part.meter.opens is not None:
                continue
            for row, found in _exact_tokens(own, part, scores, least, full_stop=False):
                if not len(found) or part.state.tokens[row] >= part.limit[row]:
                    continue
                written = part.state.written(row)
                closing = (token for token in found.tolist() if _closes_block(part, written, token))
                some = list(islice(closing, most))
                rows += [own[row]] * len(some)
                tokens += some
        return rows, tokens

    def line_ends(self, scores: Array) -> list[int]:
        """Return the rows that have their exact length where a block or a signature ends: a new line is likely."""
        rows = []
        for own, part in self._constraint.parts:
            at, newlines = part.state, part.costs.newlines
            here = (part.low == part.high) & (at.used_at_end == part.high) & (at.used == part.high) & at.begun
            here &= (at.utf8_state == 0) & ~part.costs.is_full_stop[at.last] & part.finish
            for row in here.nonzero()[0].tolist() if len(newlines) else ():
                likely = to_numpy(scores[own[row]])
                if likely[newlines].max() - likely.max() >= LIKELY_END and may_end_block(part.text(row)):
                    rows.append(own[row])
        return rows

    def of_code(self, scores: Array, least: float) -> tuple[list[int], int]:
        """Return the rows whose block of code a closing fence would end now, within the budget, and that token.

        The row itself need not choose the fence.
        """
        rows, token = [], -1
        for own, part in self._constraint.parts:
            at, fence = part.state, part.costs.fence
            if fence is None or not part.finish:
                continue
            token, length = fence, at.used + part.meter.cost[fence]
            least_length = np.maximum(part.low, (_LEAST_USED * part.high).astype(np.int64))
            fits = (least_length <= length) & (length <= part.high) & (at.tokens < part.limit)
            for row in (fits & at.begun & at.fenced & part.costs.ends_line[at.last]).nonzero()[0].tolist():
                likely = scores[own[row]]
                if float(likely[fence]) < float(likely.max()) + least:
                    continue
                if in_code(text := part.text(row)) and finished(text + FENCE):
                    rows.append(own[row])
        return rows, token


def _exact_tokens(
    own: Sequence[int], part: LengthConstraint, scores: Array, least: float, *, full_stop: bool
) -> Iterator[tuple[int, Integers]]:
    """Yield each row near its exact length with the likely tokens that cost what is left of it, the likeliest first.

    `own`: where the rows of `part` are among the scores. `full_stop`: the costs reserve a unit for one.
    """
    near = _near_exact_end(part)
    if not near:
        return
    costs = part.costs if full_stop else token_costs_of(part.meter, False)
    state, left = costs.state(part.state), part.high - part.state.used
    for row in near:
        likely = to_numpy(scores[own[row]])
        cost = costs.by_state[state[row], : len(likely)]  # a model may have more or fewer tokens than its tokenizer
        found = ((cost == left[row]) & (likely[: len(cost)] >= likely.max() + least)).nonzero()[0]
        yield row, found[np.argsort(-likely[found], kind="stable")]


def _near_exact_end(part: LengthConstraint) -> list[int]:
    """Return the rows of an exact length that a full stop could soon end; none if the tokenizer has no full stop.

    Rows with a window are left out: a stream may have released a sentence end in it already.
    """
    if not len(part.costs.plain_stops):
        return []
    at, left = part.state, part.high - part.state.used
    near = (part.low == part.high) & (left > 0) & (left <= _LAST_UNITS)
    rows = (near & part.finish & at.begun & (at.utf8_state == 0)).nonzero()[0].tolist()
    return [row for row in rows if not part.writes_code(row)]


def _closes_block(part: LengthConstraint, written: bytes, token: int) -> bool:
    """Return whether the written text ends in a whole list item, table row or signature after this token."""
    piece = part.meter.pieces[token]
    if part.costs.is_full_stop[token] or piece[-1:].isspace() or part.meter.utf8[0][token]:
        return False
    return may_end_block((written + piece).decode("utf-8", "ignore"))
