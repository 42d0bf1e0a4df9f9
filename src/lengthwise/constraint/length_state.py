"""LengthState: the length of each row of a batch, and whether it is inside a word or a character.

The state is computed from all ids at once, or advanced by one token per row with a dozen operations on a few integers.
Rows can be added, forked, dropped and reordered.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from ..length.meter import Booleans, Integers, Meter

Rows = Sequence[int] | Integers | slice
ALL = slice(None)


class LengthState:
    """The state of the texts so far. Each array is (rows,)."""

    used: Integers  # units so far, if more text follows
    used_at_end: Integers  # units if the text ends here
    begun: Booleans  # whether the text has a character that is not white space
    in_word: Booleans  # whether it ends inside a word, if words are counted
    utf8_state: Integers  # 0 between characters
    tokens: Integers  # tokens written
    last: Integers  # the last token; -1 if there is none
    fenced: Booleans  # whether the text has a backtick or a tilde, without which it has no block of code

    _ARRAYS = (
        *("used", "used_at_end", "begun", "in_word", "utf8_state", "tokens", "last", "fenced"),
        *("_dependent", "_gap", "_before_gap"),
    )

    def __init__(self, meter: Meter, rows: int) -> None:
        """Make the state of `rows` empty texts."""
        self.meter = meter
        self.ids: list[list[int]] = [[] for _ in range(rows)]
        self.used, self.used_at_end, self.utf8_state, self.tokens = (np.zeros(rows, np.int64) for _ in range(4))
        self.begun, self.in_word, self.fenced = (np.zeros(rows, np.bool_) for _ in range(3))
        self.last = np.full(rows, -1)
        self._dependent = np.zeros(rows, np.bool_)  # whether the cost of a token since the last gap depends on others
        # A gap is a space that follows an ASCII character. No unit joins characters across it, so the count before it
        # is final. Per row: the index of the last gap in the ids, and the units before it.
        self._gap, self._before_gap = np.zeros(rows, np.int64), np.zeros(rows, np.int64)

    @classmethod
    def of(cls, meter: Meter, ids: Sequence[Sequence[int]] | Integers) -> "LengthState":
        """Return the state of rows that have written `ids`: (rows, time), or rows of different lengths."""
        if len({len(row) for row in ids}) > 1:
            state = cls(meter, 0)
            state._append(cls.of(meter, [row]) for row in ids)
            return state
        state = cls(meter, len(ids))
        if len(ids) and len(ids[0]):
            state._read(np.asarray(ids))
        return state

    def _read(self, ids: Integers) -> None:
        meter, (rows, width) = self.meter, ids.shape
        running = meter.token_costs(ids).cumsum(1)  # (rows, time)
        filled = np.arange(rows), width - 1 - (~meter.blank[ids])[:, ::-1].argmax(1)  # the last token that is not blank
        self.ids = ids.tolist()
        self.tokens, self.last = np.full(rows, width), ids[:, -1].copy()
        self.used, self.used_at_end = running[:, -1].copy(), (running[filled] - meter.trail[ids[filled]]).clip(min=0)
        self.begun = np.any(~meter.white[ids], 1)
        self.fenced = np.any(meter.vocabulary.fences[ids], 1)
        if meter.opens is not None:
            self.in_word = meter.opens[self.last]
        self.utf8_state = meter.character(ids)
        self._dependent = np.any(meter.context_dependent[ids], 1)
        self._recount()

    def __len__(self) -> int:
        return len(self.ids)

    def advance(self, tokens: Integers, rows: Rows = ALL) -> None:
        """Append one token to each row, or to each of these `rows`."""
        meter, tokens = self.meter, np.asarray(tokens)
        blank, cost, begun = meter.blank[tokens], meter.cost[tokens], self.begun[rows]
        if meter.unit.name != "tokens":
            self._mark_gaps(tokens, rows)
            cost = cost * (begun | ~blank) - meter.lead[tokens] * ~(begun | blank)
        if meter.joins is not None and meter.opens is not None:
            cost = cost - (meter.joins[tokens] & self.in_word[rows] & ~blank)
            self.in_word[rows] = meter.opens[tokens] & ~blank
        self.used[rows] += cost
        self.used_at_end[rows] = np.where(blank, self.used_at_end[rows], self.used[rows] - meter.trail[tokens])
        self.begun[rows] = begun | ~meter.white[tokens]
        self.fenced[rows] |= meter.vocabulary.fences[tokens]
        if meter.splits_characters:
            self.utf8_state[rows] = np.maximum(meter.utf8[self.utf8_state[rows], tokens], 0)
        self._dependent[rows] |= meter.context_dependent[tokens]
        self.tokens[rows] += 1
        self.last[rows] = tokens
        for row, token in zip(np.arange(len(self))[rows].tolist(), tokens.tolist(), strict=True):
            self.ids[row].append(token)
        self._recount()

    def _mark_gaps(self, tokens: Integers, rows: Rows) -> None:
        """Store the gap of each row in which its token starts with a space and follows an ASCII character."""
        gap = self.meter.spaced[tokens] & self.meter.solid[self.last[rows]] & (self.tokens[rows] > 0)
        self._gap[rows] = np.where(gap, self.tokens[rows], self._gap[rows])
        self._before_gap[rows] = np.where(gap, self.used[rows], self._before_gap[rows])
        self._dependent[rows] &= ~gap

    def _recount(self) -> None:
        """Measure the text since the last gap of the rows in which a cost depends on its neighbours."""
        for row in self._dependent.nonzero()[0].tolist():
            gap = int(self._gap[row])
            before, written = 0, self.written(row, gap)
            if gap:  # "x" replaces the text before the gap, so that its space counts; it is one unit long in all units
                before, written = int(self._before_gap[row]) - 1, b"x" + written
            self.used[row] = self.used_at_end[row] = before + self.meter.measure(written)
            if self.meter.end_counts_less(written):
                self.used_at_end[row] = before + self.meter.measure(written, ended=True)

    def written(self, row: int, since: int = 0) -> bytes:
        """Return the bytes of this row's tokens from index `since`."""
        return self.meter.spell(self.ids[row][since:])

    # ---- add, drop and reorder rows

    def select(self, rows: Sequence[int] | Integers) -> None:
        """Keep these rows in this order. A row that is given twice is forked; one that is not given is dropped."""
        rows = np.asarray(rows, np.int64)
        self.ids = [self.ids[row].copy() for row in rows]
        for name in self._ARRAYS:
            setattr(self, name, getattr(self, name)[rows])

    def add(self, ids: Sequence[Sequence[int]]) -> None:
        """Append one row for each of these texts, given as token ids."""
        self._append([LengthState.of(self.meter, ids)])

    def _append(self, states: Iterable["LengthState"]) -> None:
        states = [self, *states]
        self.ids = [ids for state in states for ids in state.ids]
        for name in self._ARRAYS:
            setattr(self, name, np.concatenate([getattr(state, name) for state in states]))
