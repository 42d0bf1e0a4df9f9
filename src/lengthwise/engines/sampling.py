"""Seeded sampling: each row of a batch has its own seed, so a text does not depend on the other rows.

`generate` samples from torch's global random state, which rows of a batch and threads of a program share. Here each row
has its own uniform numbers, drawn before decoding: the same seed gives the same text in any batch, except where
rounding differs. Scores are numpy arrays, or torch tensors, which `torch_sampling.py` samples from.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, converter

Floats = NDArray[np.float64]


def uniforms(seeds: Sequence[int], steps: int) -> Floats:
    """Return uniform numbers in [0, 1) for each row, from its own generator: (rows, steps).

    The numbers are those of torch's CPU generator with the same seed: 53 bits of two outputs of MT19937.
    """
    found = np.empty((len(seeds), steps))
    for row, seed in enumerate(seeds):
        random = np.random.RandomState(seed & 0xFFFFFFFF).randint(0, 1 << 32, 2 * steps, dtype=np.uint32)
        pairs = random.astype(np.uint64).reshape(steps, 2)
        found[row] = ((pairs[:, 0] << 32 | pairs[:, 1]) & ((1 << 53) - 1)) * 2.0**-53
    return found


class SeededSampler:
    """Samples a batch step by step, each row with its own seed."""

    def __init__(
        self, seeds: list[int], steps: int, *, temperature: float = 1.0, top_p: float = 1.0, top_k: int | None = None
    ) -> None:
        self.uniforms, self.temperature, self.top_p, self.top_k = uniforms(seeds, steps), temperature, top_p, top_k

    def select(self, rows: NDArray[np.int64]) -> None:
        """Keep these rows in this order."""
        self.uniforms = self.uniforms[rows]

    def __call__(self, scores: Array, step: int) -> Array:
        """Return the tokens of this step, counted from 0: (rows,)."""
        uniform = self.uniforms[:, step]
        options: dict[str, Any] = {"temperature": self.temperature, "top_p": self.top_p}
        if isinstance(scores, np.ndarray):
            draws = zip(scores, uniform, strict=True)
            return np.array([sample(row, one, top_k=self.top_k, **options) for row, one in draws])
        from . import torch_sampling

        if self.top_k:  # masked, not gathered: tokens stay in the order of their ids, which the draw depends on
            least = scores.topk(min(self.top_k, scores.shape[1])).values[:, -1:]
            scores = scores.masked_fill(scores < least, -np.inf)
        return torch_sampling.sample(scores, converter(scores)(uniform[:, None]), **options).squeeze(1)


def sample(scores: NDArray[np.float32], uniform: float, *, temperature: float, top_p: float, top_k: int | None) -> int:
    """Return one token, drawn from the `top_k` best that make up `top_p` (0: greedy); scores (vocabulary,).

    As `torch_sampling.sample`, `uniform` selects the token by the inverse of the cumulative distribution, in the order
    of the ids.
    """
    best = scores.max()
    if top_p == 0 or best == -np.inf:
        return int(scores.argmax())
    tokens = np.arange(len(scores))
    if top_k and top_k < len(scores):
        tokens = np.flatnonzero(scores >= np.partition(scores, -top_k)[-top_k])
    shares = np.exp((scores[tokens] - best) / np.float32(temperature))
    if top_p < 1:
        # All tokens below this bound together have less than 1 - top_p: only the others need to be sorted.
        total = shares.sum(dtype=np.float64)
        some = shares > (1 - top_p) / len(shares) * total
        tokens, shares = tokens[some], shares[some]
        order = np.argsort(shares, kind="stable")[::-1]
        ranked = shares[order].astype(np.float64)
        inside = np.sort(order[np.cumsum(ranked) - ranked < top_p * total])
        tokens, shares = tokens[inside], shares[inside]
    below = np.cumsum(shares, dtype=np.float64)
    drawn = np.searchsorted(below, uniform * below[-1], side="right")
    return int(tokens[min(drawn, len(tokens) - 1, np.flatnonzero(shares)[-1])])
