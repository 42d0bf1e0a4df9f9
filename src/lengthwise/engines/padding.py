"""Pad rows of token ids of different lengths to one length."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor


def padded(rows: Sequence[Sequence[int]], pad: int, side: str = "right", width: int = 0) -> tuple[Tensor, Tensor]:
    """Return the ids of the rows, padded on this side, and a mask that is 1 where there is a token.

    Both are (rows, longest), or (rows, `width`) if that is more. All ids are copied at once: a tensor for each of a
    thousand rows takes longer than a step of a small model on a GPU.
    """
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    columns = np.arange(max(width, sizes.max(initial=0)))
    mask = columns < sizes[:, None] if side == "right" else columns >= len(columns) - sizes[:, None]
    ids = np.full(mask.shape, pad)
    ids[mask] = np.fromiter(chain.from_iterable(rows), np.int64, int(sizes.sum()))
    return torch.from_numpy(ids), torch.from_numpy(mask.astype(np.int64))
