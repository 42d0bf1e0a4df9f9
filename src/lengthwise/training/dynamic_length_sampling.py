"""Dynamic length sampling (Zhang et al. 2023): draw how many sentences of a document make one example.

Zhang, Gu, Zhang & Feng 2023: a model trained on documents of one length fails at others, so the lengths are drawn in
each epoch, short ones first (DLS). Also here: their baseline, multi-resolution (MR), and `prefix`, which gives one text
many lengths. Except for `prefix`, the functions work on numbers of tokens.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from random import Random

import torch
from torch import Tensor

from ..length.sentences import finished_ends

Segment = range  # of sentences of a document


def length_probabilities(maximum: int, temperature: float) -> Tensor:
    """Return p_l ∝ exp(−l/T) for l = 1..maximum, as a softmax: the weights themselves underflow from l = 710 on.

    T = 1, 8 lengths → 0.63 0.23 0.09 0.03 …; a large T makes them equal.
    """
    lengths = torch.arange(1, maximum + 1, dtype=torch.float64)
    # Relative to the first: at T = e^-19 the quotients themselves overflow.
    return torch.log_softmax((1 - lengths) / max(temperature, 1e-300), 0).exp()


def temperature(time: float, gamma: float) -> float:
    """Return T = e^(time − γ); `time` is the epoch, from 1, or a fraction of it."""
    return math.exp(min(time - gamma, 700.0))


def drawn_lengths(maximum: int, temperature: float, random: Random) -> Iterator[int]:
    """Yield lengths without end. (Only `Random.random` is the same in every version of Python.)"""
    reached = list(accumulate(length_probabilities(maximum, temperature).tolist()))
    while True:
        yield min(bisect_right(reached, random.random() * reached[-1]) + 1, maximum)


def cut(sources: Sequence[int], targets: Sequence[int], lengths: Iterator[int]) -> list[Segment]:
    """Return consecutive segments of whole sentences, each as long as its drawn length allows on both sides.

    A sentence that is longer than the drawn length is a segment of its own. Sentences of 9, 15, 25, 8 tokens with the
    lengths 35, 1, 12 → 9 + 15, 25, 8.
    """
    segments: list[Segment] = []
    start = 0
    while start < len(sources):
        limit, end = next(lengths), start + 1
        while end < len(sources) and max(sum(sources[start : end + 1]), sum(targets[start : end + 1])) <= limit:
            end += 1
        segments.append(range(start, end))
        start = end
    return segments


def prefix(text: str, uniform: float) -> str:
    """Return `text` up to one of its sentence ends, by a draw from [0, 1).

    The draw is squared: half of the texts end in the first quarter of the ends, because short texts are cheaper. Of
    "One. Two. Three." 58 % are "One.", 24 % "One. Two.", 18 % the whole text.
    """
    ends = [end for end in finished_ends(text) if end < len(text)]
    drawn = int(uniform**2 * (len(ends) + 1))
    return text[: ends[drawn]] if drawn < len(ends) else text


def resolutions(sources: Sequence[int], targets: Sequence[int], maximum: int) -> list[Segment]:
    """Return the document in 1, 2, 4, 8 … equal parts down to single sentences, without parts above `maximum` (MR).

    Four sentences → all four, two and two, each alone.
    """
    found: dict[Segment, None] = {}
    for power in range(len(sources).bit_length() + 1):
        count = min(2**power, len(sources))
        for start, end in pairwise(len(sources) * n // count for n in range(count + 1)):
            if end - start == 1 or max(sum(sources[start:end]), sum(targets[start:end])) <= maximum:
                found[range(start, end)] = None
    return list(found)
