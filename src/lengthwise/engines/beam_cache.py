"""A KV cache in numpy whose rows share sources: rows of one source are query positions over one set of columns.

Each step appends a column for every row of a source. A row sees the columns of its own tokens, by a mask. So forking
and reordering the rows of a source, as beam search does in each step, changes masks and copies nothing. Columns that no
row sees are removed when the buffers are full.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float32]

_HIDDEN = -1e9  # added to the logits of columns that a row must not see
_LEAST = 32  # columns of the first buffers


def padding_mask(sizes: Integers, width: int) -> Floats:
    """Return the mask of sources of these sizes, padded to `width` tokens: (sources, 1, 1, width)."""
    return np.where(np.arange(width) < sizes[:, None], 0, _HIDDEN).astype(np.float32)[:, None, None]


class BeamCache:
    """Keys and values: `buffers` (2 · layers, sources, heads, capacity, size), of which `used` columns are filled.

    Row n belongs to the source `source[n]`, where it is the query position `slot[n]`.
    """

    def __init__(self, layers: int, sources: int, heads: int, size: int, capacity: int = _LEAST) -> None:
        self.buffers: Floats = np.zeros((2 * layers, sources, heads, capacity, size), np.float32)
        self.used = 0
        self.source: Integers = np.arange(sources)
        self._seen = np.zeros((sources, capacity), np.bool_)  # (rows, capacity)
        self._place()
        self.binding: Any = None  # what the engine has made for these buffers; None after they were replaced

    def _place(self) -> None:
        """Number the rows of each source."""
        order = np.argsort(self.source, kind="stable")
        sources = self.source[order]
        self.slot = np.empty_like(order)
        self.slot[order] = np.arange(len(order)) - np.searchsorted(sources, sources)
        self.slots = int(self.slot.max(initial=0)) + 1

    @property
    def sources(self) -> int:
        return self.buffers.shape[1]

    # ---- one pass

    def step_mask(self) -> Floats:
        """Return the mask of a step with one token per row: (sources, 1, slots, capacity + slots)."""
        self._reserve(self.slots)
        capacity = self._seen.shape[1]
        mask = np.full((self.sources, 1, self.slots, capacity + self.slots), _HIDDEN, np.float32)
        mask[self.source, 0, self.slot, :capacity] = np.where(self._seen, 0, _HIDDEN)
        slots = np.arange(self.slots)
        mask[:, 0, slots, capacity + slots] = 0
        return mask

    def append_step(self, new: Floats) -> None:
        """Store the keys and values of one token per row: (2 · layers, sources, heads, slots, size)."""
        self.buffers[:, :, :, self.used : self.used + self.slots] = new
        self._seen[np.arange(len(self.slot)), self.used + self.slot] = True
        self.used += self.slots

    def text_mask(self, time: int) -> Floats:
        """Return the mask of the first tokens of one row per source, each with those before it."""
        capacity = self._seen.shape[1]
        mask = np.full((1, 1, time, capacity + time), _HIDDEN, np.float32)
        mask[0, 0, :, capacity:][np.tri(time, dtype=np.bool_)] = 0
        return np.ascontiguousarray(np.broadcast_to(mask, (self.sources, *mask.shape[1:])))

    def append_text(self, new: Floats, sizes: Integers) -> None:
        """Store the first tokens of one row per source, of which `sizes` (sources,) are not padding."""
        time = new.shape[3]
        self._reserve(time)
        self.buffers[:, :, :, :time] = new
        self._seen[:, :time] = np.arange(time) < sizes[:, None]
        self.used = time

    # ---- rows and columns

    def select(self, rows: Integers) -> Integers | None:
        """Keep these rows in this order; return the sources that are kept if some are dropped."""
        self.source, self._seen = self.source[rows], self._seen[rows]
        kept: Integers | None = None
        found = np.flatnonzero(np.bincount(self.source))  # np.unique imports numpy.ma
        if 4 * len(found) <= 3 * self.sources:  # a copy for every source that ends would cost more than it saves
            kept, self.source = found, np.searchsorted(found, self.source)
            # Indexing with an array can return another memory layout, which onnxruntime would copy.
            self.buffers, self.binding = np.ascontiguousarray(self.buffers[:, kept]), None
        self._place()
        return kept

    def _reserve(self, columns: int) -> None:
        """Make room for so many new columns."""
        capacity = self._seen.shape[1]
        if self.used + columns <= capacity:
            return
        self._remove_unseen()
        if self.used + columns <= 0.75 * capacity:
            return
        wider = max(2 * capacity, 2 * columns)
        shape = [*self.buffers.shape[:3], wider, self.buffers.shape[4]]
        buffers, seen = np.zeros(shape, np.float32), np.zeros((len(self._seen), wider), np.bool_)
        buffers[:, :, :, : self.used], seen[:, :capacity] = self.buffers[:, :, :, : self.used], self._seen
        self.buffers, self._seen, self.binding = buffers, seen, None

    def _remove_unseen(self) -> None:
        """Move the columns that rows see to the front of the buffers."""
        seen = np.zeros((self.sources, self._seen.shape[1]), np.bool_)
        np.logical_or.at(seen, self.source, self._seen)
        most = int(seen.sum(1).max(initial=0))
        if most >= self.used:
            return
        order = np.argsort(~seen, axis=1, kind="stable")[:, :most]  # (sources, most)
        self.buffers[:, :, :, :most] = np.take_along_axis(self.buffers, order[None, :, None, :, None], 3)
        self._seen[:, :most] = np.take_along_axis(self._seen, order[self.source], 1)
        self._seen[:, most:] = False
        self.used = most
