"""LengthConstraint: the hard budget of a batch of rows, for any engine.

With any model and search (greedy, sampling, beams), a row never exceeds its maximum, does not end before its minimum,
and does not end inside a UTF-8 character. Only if no token is allowed does a row end early. Near its maximum a row is
steered towards a sentence end.

Scores are torch tensors on any device or numpy arrays; torch is not imported. Counting is done on the CPU, on a few
integers per row. Only the masks are as wide as the vocabulary. In most steps every token fits and all rows share one.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, converter, library, to_numpy
from ..length.fences import in_block, in_code
from ..length.meter import Booleans, Integers, Meter
from ..length.sentences import finished
from .length_state import ALL, LengthState, Rows
from .token_costs import BANNED, State, TokenCosts, token_costs_of

Limits = Iterable[int | None]  # None: no limit

UNLIMITED = BANNED - 1

# Per unit: how far before the maximum full stops get a bonus, and the shortest further sentence that may be started.
_LANDING = {"tokens": (16, 6), "words": (12, 4), "words-cjk": (12, 4)}  # others: (64, 20)
_FAVOUR = 4.0  # nats for a full stop with which a row reaches its maximum
_DISFAVOUR = 12.0  # nats subtracted from a full stop after which the text may not end and no whole sentence would fit
_LAST_TOKENS = 4  # with so few tokens left, a character must not stay incomplete
LIKELY_END = math.log(0.1)  # an end is allowed if it has at least this share of the likeliest token's probability
_LIKELY_PIECE = math.log(0.5)  # the same for a token that continues the last word that fits
_FULL_STOP = re.compile(r"[.!?…]")


class LengthConstraint:
    """Keeps every row of a batch inside `low[row] <= length <= high[row]`, counted by `meter`.

    `eos`: the ids that end a text. `limit`: the maximum number of tokens per row. `written`: the ids of a text that a
    row continues; they count for its length and its limit. With `finish`, the last unit is kept for a full stop. In
    each step, `apply` masks the scores and `update` receives the chosen tokens.
    """

    def __init__(
        self,
        meter: Meter,
        low: Limits,
        high: Limits | None,
        *,
        eos: Sequence[int],
        limit: Limits | None = None,
        finish: bool = True,
        written: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.meter, self.finish, self.eos = meter, finish, np.array(eos)
        self.low = _numbers(low)
        rows = len(self.low)
        self.high, self.limit = (_numbers([None] * rows if limits is None else limits) for limits in (high, limit))
        self._texts, self._written = rows, [[]] * rows if written is None else written
        self.state = LengthState.of(meter, self._written)
        self.costs = token_costs_of(meter, finish)
        self._landing, self._shortest = _LANDING.get(meter.unit.name, (64, 20))
        self._tables: dict[Any, _Tables] = {}

    # ---- one step

    def apply(self, scores: Array) -> Array:
        """Return the scores (rows, vocabulary) with the tokens that are not allowed at minus infinity.

        Near the maximum, full stops get a bonus, or a penalty where the text may not end after them.
        """
        tables = self._tables_for(scores)
        lib, at, low = tables.lib, self.state, self.low
        best, ends = lib.amax(scores, 1), scores[:, tables.eos]  # (rows,), (rows, ends)
        left, units_left, state = self.limit - at.tokens, self.high - at.used, self.costs.state(at)
        may_end = (at.used_at_end >= low) & at.begun & (at.utf8_state == 0)
        stopped = self.costs.is_full_stop[at.last] & (at.tokens > 0) & self.finish
        over = self._enough(units_left, stopped & may_end) | (left < 1)
        units_left = np.where(over, -1, units_left)  # nothing more fits

        kept = lib.minimum(scores, tables.caps(state, units_left))  # one pass, and a copy
        if len(code := self._rows_in_code(units_left)):  # code gets no full stop, so nothing is kept for it
            index, raw = tables.convert(code), self._tables_for(scores, finish=False)
            kept[index] = lib.minimum(scores[index], raw.caps(state[code], units_left[code]))
            self._ban_glued_fences(kept, tables, code)
        self._ban_too_late(kept, tables, left, over)
        last_word = (units_left == 0) & (state == State.IN_WORD)
        if self.meter.opens is not None and last_word.any():  # a longer word costs nothing: allow likely tokens
            self._ban_unlikely(kept, tables, scores, best, last_word.nonzero()[0])
        if (bonus := self._bonus(units_left, code)) is not None:
            stops = kept[:, tables.plain_stops]
            stops += tables.convert(bonus)
            kept[:, tables.plain_stops] = stops
        sure = (may_end & stopped if self.finish else may_end) | (units_left < 0)
        if (sure | may_end).any():
            bar = np.where(sure, -np.inf, np.where(may_end, LIKELY_END, np.inf)).astype(np.float32)
            likely = ends >= (best + tables.convert(bar))[:, None]
            kept[:, tables.eos] = lib.where(likely, ends, -math.inf)
        # If no token is left, the text ends; measuring it later shows that it does not fit.
        end = kept[:, self.eos[0]]
        kept[:, self.eos[0]] = lib.where(lib.amax(kept, 1) == -math.inf, lib.zeros_like(end), end)
        return kept

    def __call__(self, ids: Array, scores: Array) -> Array:
        """Like `apply`, for a search that does not report how it reorders rows: the state is computed from `ids`.

        `ids` (rows, time) follow `written`. Each text that the constraint was made for has the same number of rows.
        """
        rows, each = len(self.low), len(ids) // self._texts
        if rows != len(ids):
            self.select(np.arange(self._texts).repeat(each) * (rows // self._texts))
        texts: Any = to_numpy(ids)
        if any(map(len, self._written)):
            texts = [[*self._written[row // each], *new] for row, new in enumerate(texts.tolist())]
        self.state = LengthState.of(self.meter, texts)
        return self.apply(scores)

    def update(self, tokens: Array, rows: Rows = ALL) -> None:
        """Append the chosen tokens, one for each row, or for each of these `rows`."""
        self.state.advance(to_numpy(tokens), rows)

    def full_stops(self, tokens: Array) -> Array:
        """Return which of these tokens are full stops, as an array of the same library and shape."""
        known = self.costs.is_full_stop
        return converter(tokens)(known)[tokens.clip(max=len(known) - 1)]  # a model may have ids beyond its tokenizer's

    # ---- what a search for endings reads, see `closings.py`

    @property
    def parts(self) -> Sequence[tuple[Sequence[int], "LengthConstraint"]]:
        """The rows of each constraint among those of the scores: all rows belong to this one."""
        return [(range(len(self.low)), self)]

    def text(self, row: int) -> str:
        """Return what this row has written, without an incomplete character at its end."""
        return self.state.written(row).decode("utf-8", "ignore")

    def writes_code(self, row: int) -> bool:
        """Return whether this row is inside a block of code."""
        return bool(self.state.fenced[row]) and in_code(self.text(row))

    def stops(self, kept: Array) -> Array:
        """Return the likeliest full stop that each row allows, or the end of the text if it allows none: (rows,)."""
        tables = self._tables_for(kept)
        scores = kept[:, tables.plain_stops]
        found = tables.plain_stops[scores.argmax(1)]
        allowed = tables.lib.amax(scores, 1) > -math.inf
        return tables.lib.where(allowed, found, tables.lib.full_like(found, int(self.eos[0])))

    # ---- parts of a step

    def _tables_for(self, scores: Array, finish: bool | None = None) -> "_Tables":
        costs = self.costs if finish is None else token_costs_of(self.meter, finish)
        key = scores.shape[1], scores.dtype, getattr(scores, "device", None), costs
        if key not in self._tables:
            self._tables[key] = _Tables(costs, self.eos, scores)
        return self._tables[key]

    def _rows_in_code(self, units_left: Integers) -> Integers:
        """Return the rows that near their maximum are inside a block of code."""
        near = (units_left >= 0) & (units_left <= self._landing + self._shortest) & self.finish
        rows = (near & self.state.fenced).nonzero()[0].tolist()
        return np.array([row for row in rows if self.writes_code(row)], np.int64)

    def _enough(self, units_left: Integers, stopped: Booleans) -> Booleans:
        """Return which of the rows that have `stopped` are finished texts without space for another sentence: (rows,).

        A row without a maximum ends at its first finished sentence after the minimum. A row whose last word has two
        full stops ends as well, or a word such as "a.b.c.d" would not end: a longer word costs nothing.
        """
        enough = stopped & ((units_left < self._shortest) | (self.high == UNLIMITED))
        for row in enough.nonzero()[0].tolist():  # once per sentence
            text = self.text(row)
            endless = units_left[row] == 0 and len(_FULL_STOP.findall(text.split()[-1])) > 1
            enough[row] = endless or finished(text)
        return enough

    def _ban_too_late(self, kept: Array, tables: "_Tables", left: Integers, over: Booleans) -> None:
        """Ban the tokens after which too few are left to complete a character or to reach the minimum."""
        late = (self.costs.near_too_late(self.state, left, self.low) | (left <= _LAST_TOKENS)) & ~over
        if late.any():
            rows = late.nonzero()[0]
            banned = self.costs.too_late(self.state, left, self.low, rows)[:, : kept.shape[1]]
            tables.ban(kept, tables.convert(rows), tables.convert(banned))

    def _ban_unlikely(self, kept: Array, tables: "_Tables", scores: Array, best: Array, rows: Integers) -> None:
        """Ban the tokens of these rows that are neither full stops nor nearly as likely as the likeliest token."""
        index = tables.convert(rows)
        unlikely = scores[index] < (best[index] + _LIKELY_PIECE)[:, None]
        tables.ban(kept, index, unlikely & ~tables.is_full_stop)

    def _ban_glued_fences(self, kept: Array, tables: "_Tables", code: Integers) -> None:
        """Ban fences inside a line where they close no code: they are cheaper than a new line and a fence."""
        for row in code.tolist():
            text = self.text(row)
            if text.rpartition("\n")[2].strip(" \t>") and in_block(text):
                kept[row, tables.glued] = -math.inf

    def _bonus(self, units_left: Integers, code: Integers) -> NDArray[np.float32] | None:
        """Return nats for each plain full stop, (rows, stops), or None if all are 0; 0 in the rows of `code`.

        Above 0 where the text may end after it near the maximum, below 0 where no whole sentence would fit after it.
        """
        if not self.finish or units_left.min() > self._landing + self._shortest:
            return None
        cost = self.costs.stop_costs  # (stops,)
        after = units_left[:, None] - cost
        may_end = self.state.used[:, None] + cost >= self.low[:, None]
        stump = ~may_end & (after > 0) & (after < self._shortest)
        nearness = (1 - after.astype(np.float32) / np.float32(self._landing)).clip(0, 1)
        bonus = (_FAVOUR * nearness * may_end - _DISFAVOUR * stump).astype(np.float32)
        bonus[code] = 0
        return bonus if bonus.any() else None

    # ---- add, drop and reorder rows

    def select(self, rows: Array) -> None:
        """Keep these rows in this order. A row that is given twice is forked; one that is not given is dropped."""
        rows = to_numpy(rows).astype(np.int64)  # an empty list becomes an array of floats
        self.low, self.high, self.limit = self.low[rows], self.high[rows], self.limit[rows]
        self.state.select(rows)

    def add(self, low: Limits, high: Limits, limit: Limits, written: Sequence[Sequence[int]]) -> None:
        """Append rows, described as for the constructor."""
        pairs = (self.low, low), (self.high, high), (self.limit, limit)
        self.low, self.high, self.limit = (np.concatenate([old, _numbers(new)]) for old, new in pairs)
        self.state.add(written)


class _Tables:
    """The constants of a step as arrays of the scores' library, device, number format and width."""

    def __init__(self, costs: TokenCosts, eos: Integers, scores: Array) -> None:
        self.convert = converter(scores)
        self.lib = library(scores)
        by_state = _widened(costs.by_state, scores.shape[1], BANNED)
        by_state[:, eos] = BANNED  # `apply` allows ends
        self.by_state, self.eos = self.convert(by_state), self.convert(eos)
        self.is_full_stop = self.convert(_widened(costs.is_full_stop[None], scores.shape[1], False))
        self.plain_stops, self.largest = self.convert(costs.plain_stops), costs.largest
        self.glued = self.convert(costs.glued[costs.glued < scores.shape[1]])
        self._banned, self._free = (self.lib.full_like(scores[0], value) for value in (-math.inf, math.inf))
        self._caps: dict[tuple[int, int], Array] = {}

    def caps(self, state: Integers, units_left: Integers) -> Array:
        """Return plus infinity where a token fits, minus infinity elsewhere: (rows, vocabulary).

        (vocabulary,) if the same tokens fit in all rows, as in most steps.
        """
        ample = units_left >= self.largest  # costs differ inside and outside a word, but the same tokens are banned
        state = np.where(ample & (state == State.IN_WORD), State.BETWEEN, state)
        keys = list(zip(state.tolist(), np.minimum(units_left, self.largest).tolist(), strict=True))
        if len(set(keys)) == 1:
            return self._cap(keys[0])
        if self.lib is np:
            return np.stack([self._cap(key) for key in keys])
        over = self.by_state[self.convert(state)] > self.convert(np.minimum(units_left, self.largest))[:, None]
        return self.lib.where(over, self._banned, self._free)  # not stacked: hundreds of rows would be as many kernels

    def _cap(self, key: tuple[int, int]) -> Array:
        if key not in self._caps:
            state, units_left = key
            self._caps[key] = self.lib.where(self.by_state[state] > units_left, self._banned, self._free)
        return self._caps[key]

    def ban(self, kept: Array, rows: Array, banned: Array) -> None:
        """Set the `banned` tokens, (len(rows), vocabulary or less), of these `rows` of `kept` to minus infinity."""
        width = banned.shape[1]
        kept[rows, :width] = self.lib.where(banned, self._banned[:width], kept[rows, :width])


def _widened(table: NDArray[Any], width: int, value: Any) -> NDArray[Any]:
    """Return a copy with `width` columns: embeddings may be larger or smaller than the tokenizer."""
    wide = np.full((len(table), width), value, table.dtype)
    wide[:, : table.shape[1]] = table[:, :width]
    return wide


def _numbers(limits: Limits) -> Integers:
    return np.array([UNLIMITED if limit is None else min(int(limit), UNLIMITED) for limit in limits], np.int64)
