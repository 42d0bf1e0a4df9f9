"""A KV cache in numpy for rows of different lengths, which an engine updates in place.

Keys and values of a row fill the first columns of its buffer. A step writes one column per row and copies nothing; only
`select` and a buffer that is full cause copies.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Columns that are free after a buffer was made larger. A repair decodes fewer tokens, so the many rows that it forks
# from one prompt are not copied again. A copy every 160 steps takes little beside the steps, which read all of it.
_GROWTH = 160
_SPARE = 8  # slots beyond those that are needed


class KVCache:
    """Keys and values of a batch: `buffers` (2 · layers, rows, heads, capacity, size), `used` (rows,) tokens."""

    can_fork = True

    def __init__(self, layers: int, rows: int, heads: int, size: int) -> None:
        self.buffers: NDArray[np.float32] = np.zeros((2 * layers, rows, heads, 0, size), np.float32)
        self.used = np.zeros(rows, np.int64)
        self.binding: Any = None  # what the engine has made for these buffers; None after they were replaced

    @property
    def capacity(self) -> int:
        return self.buffers.shape[3]

    def reserve(self, tokens: int) -> None:
        """Make room for so many tokens in each row, and a few more, so that copies are rare."""
        if tokens <= self.capacity:
            return
        shape, filled = list(self.buffers.shape), int(self.used.max(initial=0))
        shape[3] = tokens + _GROWTH
        wider = np.zeros(shape, np.float32)
        wider[:, :, :, :filled] = self.buffers[:, :, :, :filled]
        self.buffers, self.binding = wider, None

    def select(self, rows: NDArray[np.int64]) -> None:
        """Keep these rows in this order. A row that is named twice is forked."""
        # Only what is filled is copied, and of it only rows that move, unless there are more rows than before. Indexing
        # with an array could return another memory layout, which onnxruntime would copy instead of updating it.
        layers, count, *shape = self.buffers.shape
        filled, old = int(self.used[rows].max(initial=0)), self.buffers
        moved = [(place, int(row)) for place, row in enumerate(rows) if place != row]
        self.used, self.binding = self.used[rows], None
        if len(rows) > count:
            self.buffers, held = np.zeros((layers, len(rows), *shape), np.float32), {}
            moved = list(enumerate(rows.tolist()))
        else:
            self.buffers = old[:, : len(rows)]
            overwritten = {row for _, row in moved} & {place for place, _ in moved}
            held = {row: old[:, row, :, :filled].copy() for row in overwritten}
        for place, row in moved:
            self.buffers[:, place, :, :filled] = held[row] if row in held else old[:, row, :, :filled]

    def row(self, row: int) -> "KVCache":
        """Return a cache of one row that has its buffers in common with this one; its length is its own."""
        layers, _, heads, _, size = self.buffers.shape
        one = KVCache(layers // 2, 1, heads, size)
        one.buffers, one.used = self.buffers[:, row : row + 1], self.used[row : row + 1].copy()
        return one


class SlotCache(KVCache):
    """A KV cache whose rows come and go one by one: each change copies one row. There are more slots than rows."""

    def __init__(self, layers: int, heads: int, size: int) -> None:
        super().__init__(layers, 0, heads, size)
        self._slots = self.buffers

    def add(self, cache: KVCache, row: int) -> None:
        """Append a copy of a row of this or another cache."""
        rows, filled = len(self.used), int(cache.used[row])
        self._fit(rows + 1, filled)
        self._slots[:, rows, :, :filled] = cache.buffers[:, row, :, :filled]
        self.used = np.append(self.used, filled)
        self._show()

    def remove(self, row: int) -> None:
        """Remove a row; the last one takes its place."""
        last = len(self.used) - 1
        if row != last:
            filled = self.used[row] = self.used[last]
            self._slots[:, row, :, :filled] = self._slots[:, last, :, :filled]
        self.used = self.used[:last]
        if not last:
            self._slots = self._slots[:, :0, :, :0].copy()  # free the memory
        self._show()

    def reserve(self, tokens: int) -> None:
        self._fit(len(self.used), tokens)
        if self.buffers.base is not self._slots:
            self._show()

    def _fit(self, rows: int, tokens: int) -> None:
        """Make room for so many rows and tokens, or less room if a long row or many rows have left."""
        layers, slots, heads, capacity, size = self._slots.shape
        longest = max(tokens, int(self.used.max(initial=0)))
        enough = rows <= slots <= rows + 3 * _SPARE
        if enough and longest <= capacity <= 2 * (longest + _GROWTH):
            return
        old, shape = self._slots, (layers, slots if enough else rows + _SPARE, heads, longest + _GROWTH, size)
        self._slots = np.zeros(shape, np.float32)  # pages that are not written take no memory
        for row, filled in enumerate(self.used.tolist()):
            self._slots[:, row, :, :filled] = old[:, row, :, :filled]

    def _show(self) -> None:
        self.buffers, self.binding = self._slots[:, : len(self.used)], None
