"""Where the rows of a batch stand: how much each has written, and what it is in the middle of.

Read off all ids at once (a beam search reorders rows, so nothing can be kept), or carried on by one token (rows that
stay in place): a dozen operations on a few integers instead of a count over everything written. It decides nothing.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ..length.meter import Meter

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


class _Tables:
    """A meter's tables for numpy, which takes a fraction of torch's time for as few numbers as a batch has rows."""

    def __init__(self, meter: Meter) -> None:
        self.prices, self.lead, self.trail = (t.cpu().numpy() for t in (meter.prices, meter.lead, meter.trail))
        self.blank, self.white, self.delicate = (t.cpu().numpy() for t in (meter.blank, meter.white, meter.delicate))
        self.utf8 = meter.utf8.cpu().numpy()
        self.joins, self.opens = (None if t is None else t.cpu().numpy() for t in (meter.joins, meter.opens))
        self.spaced = np.array([piece[:1] == b" " for piece in meter.pieces])
        self.solid = np.array([_solid(piece) for piece in meter.pieces])


def _solid(piece: bytes) -> bool:
    """Is its last character ASCII, and no white space?"""
    return b" " < piece[-1:] < b"\x7f"


@lru_cache(maxsize=32)
def _tables_of(meter: Meter) -> _Tables:
    return _Tables(meter)


class LengthState:
    """Each (rows,):"""

    used: Integers  # units, as if more followed
    settled: Integers  # units if it ended here
    begun: Booleans  # something is there but white space
    open: Booleans  # inside a word, where words are counted
    character: Integers  # the UTF-8 state, 0 between characters

    def __init__(self, meter: Meter, ids: Tensor, skip: Integers | None = None) -> None:
        """`ids` (rows, time), on the CPU. `skip` (rows,): columns at the beginning that are no part of the text."""
        self.meter, self._tables = meter, _tables_of(meter)
        self.columns: list[Integers] = [column.numpy() for column in ids.unbind(1)]
        rows = len(ids)
        self._skip = np.zeros(rows, np.int64) if skip is None else skip
        self.used, self.settled, self.character = (np.zeros(rows, np.int64) for _ in range(3))
        self.begun, self.open, self._delicate = (np.zeros(rows, np.bool_) for _ in range(3))
        # What stands before a space that follows an ASCII character is counted for good: no unit joins anything over
        # such a gap. Of each row: the column after its last gap, and the units before it.
        self._gap, self._before_gap = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        if not self.columns:
            return
        if self._skip.any():
            self._join(
                [LengthState(meter, row[first:].unsqueeze(0)) for row, first in zip(ids, self._skip, strict=True)]
            )
            return
        running = meter.costs(ids).cumsum(1)  # (rows, time)
        written = ~meter.blank[ids]
        last = self.width - 1 - written.flip(1).int().argmax(1, keepdim=True)  # the last token that is not blank
        settled = (running.gather(1, last) - meter.trail[ids.gather(1, last)]).squeeze(1).clamp(min=0)
        self.used, self.settled = running[:, -1].numpy().copy(), settled.numpy()
        self.begun = (~meter.white[ids]).any(1).numpy()
        if meter.opens is not None:
            self.open = meter.opens[ids[:, -1]].numpy()
        self.character = meter.character(ids).numpy()
        self._delicate = meter.delicate[ids].any(1).numpy()
        self._recount()

    def _join(self, rows: list["LengthState"]) -> None:
        """Stands where each of these does, one row each."""
        for name in ("used", "settled", "character", "begun", "open", "_delicate"):
            setattr(self, name, np.concatenate([getattr(row, name) for row in rows]))

    @property
    def width(self) -> int:
        """Columns read."""
        return len(self.columns)

    @property
    def tokens(self) -> Integers:
        """Tokens written: (rows,)."""
        return self.width - self._skip

    def advance(self, last: Tensor) -> None:
        """Carries on by one token a row, `last` (rows,), on the CPU."""
        tables, token = self._tables, last.numpy().copy()  # it may be a view of everything written so far
        blank = tables.blank[token]
        cost = tables.prices[token]
        if self.meter.unit.name != "tokens":
            self._mark_gaps(token)
            cost = cost * (self.begun | ~blank) - tables.lead[token] * ~(self.begun | blank)
        if tables.joins is not None and tables.opens is not None:
            cost = cost - (tables.joins[token] & self.open & ~blank)
            self.open = tables.opens[token] & ~blank
        self.columns.append(token)
        self.used = self.used + cost
        self.settled = np.where(blank, self.settled, self.used - tables.trail[token])
        self.begun = self.begun | ~tables.white[token]
        if self.meter.splits_characters:
            self.character = np.maximum(tables.utf8[self.character, token], 0)
        self._delicate = self._delicate | tables.delicate[token]
        self._recount()

    def _mark_gaps(self, token: Integers) -> None:
        """Rows in which `token` puts a space behind an ASCII character start afresh."""
        if self.columns:
            gap = self._tables.spaced[token] & self._tables.solid[self.columns[-1]]
            self._gap = np.where(gap, self.width, self._gap)
            self._before_gap = np.where(gap, self.used, self._before_gap)
            self._delicate = self._delicate & ~gap

    def _recount(self) -> None:
        """Rows in which tokens flow into each other are measured as text, from their last gap on."""
        for row in self._delicate.nonzero()[0].tolist():
            gap = int(self._gap[row])
            written = self.written(row, gap)
            # A letter, one unit in all of them, stands for what is before the gap: its space is no leading one.
            after_gap = gap > self._skip[row]
            before, written = (int(self._before_gap[row]) - 1, b"x" + written) if after_gap else (0, written)
            self.used[row] = self.settled[row] = before + self.meter.measure(written)
            if not _solid(written):
                self.settled[row] = before + self.meter.measure(written, settled=True)

    def written(self, row: int, since: int = 0) -> bytes:
        """What the row's tokens write, from column `since` on."""
        return self.meter.spell([int(column[row]) for column in self.columns[max(since, self._skip[row]) :]])
