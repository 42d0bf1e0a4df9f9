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
_MORE_ROWS = 32  # rows that a block has beyond those that are needed, at most
_SPARE = 8  # slots beyond those that are needed


class KVCache:
    """Keys and values of a batch: `buffers` (2 · layers, rows, heads, capacity, size), `used` (rows,) tokens.

    They are the first rows of a block that may have more. Rows that were forked from one prompt have its tokens in
    common, so these are copied only into a row of the block that does not have them.
    """

    can_fork = True

    def __init__(self, layers: int, rows: int, heads: int, size: int) -> None:
        self.buffers: NDArray[np.float32] = np.zeros((2 * layers, rows, heads, 0, size), np.float32)
        self.used = np.zeros(rows, np.int64)
        self.binding: Any = None  # what the engine has made for these buffers; None after they were replaced
        self._block = self.buffers
        # Of each row of the block: the number of its prompt, whose tokens it has; -1: of none. Of each prompt: its
        # tokens. They are known from the first fork on.
        self._prompt, self._tokens = np.zeros(0, np.int64), np.zeros(0, np.int64)

    @property
    def capacity(self) -> int:
        return self.buffers.shape[3]

    def reserve(self, tokens: int) -> None:
        """Make room for so many tokens in each row, and a few more, so that copies are rare."""
        if tokens > self.capacity:
            self._replace(self._block.shape[1], tokens + _GROWTH)

    def _replace(self, rows: int, capacity: int) -> None:
        """Move what is stored to a new block. Its memory is taken as it is written."""
        layers, count, heads, _, size = self.buffers.shape
        filled = int(self.used.max(initial=0))
        self._block = np.zeros((layers, rows, heads, capacity, size), np.float32)
        self._block[:, :count, :, :filled] = self.buffers[:, :, :, :filled]
        self.buffers, self.binding = self._block[:, :count], None
        self._prompt = np.append(self._prompt[:count], np.full(rows - count, -1))

    def select(self, rows: NDArray[np.int64]) -> None:
        """Keep these rows in this order. A row that is named twice is forked."""
        # Indexing with an array could return another memory layout, which onnxruntime would copy instead of updating
        # it. So rows that move are copied one by one, and the others stay.
        if not len(self._tokens):
            self._tokens = self.used.copy()
            self._prompt = np.append(np.arange(len(self.used)), np.full(self._block.shape[1] - len(self.used), -1))
        if len(rows) > self._block.shape[1]:
            self._replace(max(len(rows), min(2 * len(self.used), len(self.used) + _MORE_ROWS)), self.capacity)
        block, moves = self._block, list[tuple[int, int, slice]]()
        for place, row in enumerate(rows.tolist()):
            if place != row:
                same = self._prompt[place] == self._prompt[row]
                moves.append((place, row, slice(self._tokens[self._prompt[row]] if same else 0, self.used[row])))
        overwritten = {place for place, _, _ in moves}
        held = {
            row: block[:, row, :, : self.used[row]].copy()
            for row in dict.fromkeys(r for _, r, _ in moves)
            if row in overwritten
        }
        prompts = self._prompt.copy()
        for place, row, columns in moves:
            source = held[row] if row in held else block[:, row]
            block[:, place, :, columns] = source[:, :, columns]
            self._prompt[place] = prompts[row]
        self.used, self.buffers, self.binding = self.used[rows], block[:, : len(rows)], None

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
