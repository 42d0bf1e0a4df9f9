"""From documents to segments: how many sentences stand together in one example.

Zhang, Gu, Zhang & Feng 2023: a model that has seen documents of one length only fails at others, so lengths are drawn
anew in each epoch, short ones first (dynamic length sampling, DLS). Also their rival, multi-resolution (MR).
Also `prefix`: one text at many lengths. But for that, works on numbers of tokens; what the sentences say, and who
counts, is no matter here.
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
    """p_l ∝ exp(−l/T) for l = 1..maximum, as a softmax: the weights themselves underflow from l = 710 on.

    T = 1, 8 lengths → 0.63 0.23 0.09 0.03 …; a large T makes them equal.
    """
    lengths = torch.arange(1, maximum + 1, dtype=torch.float64)
    # Relative to the first: at T = e^-19 the quotients themselves are beyond counting.
    return torch.log_softmax((1 - lengths) / max(temperature, 1e-300), 0).exp()


def temperature(time: float, gamma: float) -> float:
    """T = e^(time − γ); `time` is the epoch, from 1, or any clock that ticks as slowly."""
    return math.exp(min(time - gamma, 700.0))


def drawn_lengths(maximum: int, temperature: float, random: Random) -> Iterator[int]:
    """Lengths without end. Of `Random` only random() is the same in every version of Python."""
    reached = list(accumulate(length_probabilities(maximum, temperature).tolist()))
    while True:
        yield min(bisect_right(reached, random.random() * reached[-1]) + 1, maximum)


def cut(sources: Sequence[int], targets: Sequence[int], lengths: Iterator[int]) -> list[Segment]:
    """Runs of whole sentences, each as long as its drawn length allows on both sides; no overlap, nothing left out.

    A sentence that is longer than the drawn length stands alone. Sentences of 9, 15, 25, 8 tokens with the lengths
    35, 1, 12 → 9 + 15, 25, 8.
    """
    segments: list[Segment] = []
    start = 0
    while start < len(sources):
        limit = next(lengths)
        end, source, target = start + 1, sources[start], targets[start]
        while end < len(sources) and source + sources[end] <= limit and target + targets[end] <= limit:
            source, target, end = source + sources[end], target + targets[end], end + 1
        segments.append(range(start, end))
        start = end
    return segments


def prefix(text: str, chance: float) -> str:
    """`text` up to one of its sentence ends, the first ones more often: a shorter text that is finished, too.

    Half of them are from the first quarter of the ends (`chance` squared): short texts are as many lengths as long
    ones, and cheaper. Of "One. Two. Three." 58 % are "One.", 24 % "One. Two.", 18 % the whole.
    """
    ends = [end for end in finished_ends(text) if end < len(text)]
    drawn = int(chance**2 * (len(ends) + 1))
    return text[: ends[drawn]] if drawn < len(ends) else text


def resolutions(sources: Sequence[int], targets: Sequence[int], maximum: int) -> list[Segment]:
    """The document in 1, 2, 4, 8 … equal parts down to single sentences, as far as the parts fit (MR).

    Four sentences → all four, two and two, each alone. A part that is longer than `maximum` is left to finer cuts.
    """
    found: dict[Segment, None] = {}
    parts = 1
    while True:
        count = min(parts, len(sources))
        bounds = [len(sources) * n // count for n in range(count + 1)]
        for start, end in pairwise(bounds):
            if end - start == 1 or max(sum(sources[start:end]), sum(targets[start:end])) <= maximum:
                found[range(start, end)] = None
        if count == len(sources):
            return list(found)
        parts *= 2
