"""Mixtures: several streams as one, in given proportions and in an order that depends on a seed.

The order depends only on the seed, the sources and the buffer. To resume a mixture, it is run again and the items
already consumed are skipped.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


def mix(
    sources: Sequence[tuple[Callable[[], Iterable[T]], float]],
    seed: int = 0,
    *,
    endless: bool = False,
    buffer: int = 10_000,
    consumed: int = 0,
) -> Iterator[T]:
    """Return the items of `sources`, each (a function that opens a stream, weight), in proportion to the weights.

    Each stream is shuffled within a `buffer` of its items (1: not at all). `endless`: a stream that ends is opened
    again and shuffled differently; otherwise each item comes once. The first `consumed` items are skipped.
    """
    if not sources:
        raise ValueError("nothing to mix: give at least one source and its weight")
    for number, (_, weight) in enumerate(sources, 1):
        if not 0 < weight < math.inf:
            raise ValueError(f"a weight must be above 0; got {weight!r} for source {number}")
    if buffer < 1 or consumed < 0:
        raise ValueError(f"buffer must be at least 1 and consumed at least 0; got {buffer} and {consumed}")
    streams = [_opened(make, f"{seed}/{number}", buffer, endless) for number, (make, _) in enumerate(sources, 1)]
    mixed = _interleaved(streams, [weight for _, weight in sources], Random(f"{seed}/mix"))
    return itertools.islice(mixed, consumed, None)


def _interleaved(streams: list[Iterator[T]], weights: list[float], random: Random) -> Iterator[T]:
    # Streams are drawn at random: in strict turns, every second process of a run could get only one of two sources.
    while streams:
        # Only random() gives the same numbers in every version of Python; the methods built on it may not.
        point, index = random.random() * sum(weights), 0
        while index < len(weights) - 1 and point >= weights[index]:
            point, index = point - weights[index], index + 1
        try:
            yield next(streams[index])
        except StopIteration:
            del streams[index], weights[index]


def _opened(make: Callable[[], Iterable[T]], seed: str, buffer: int, endless: bool) -> Iterator[T]:
    for epoch in itertools.count():
        empty = True
        for item in shuffled(make(), buffer, Random(f"{seed}/{epoch}")):
            empty = False
            yield item
        if not endless:
            return
        if empty:
            raise ValueError(f"source {seed.rpartition('/')[2]} has no items in epoch {epoch}; it cannot be endless")


def shuffled(items: Iterable[T], buffer: int, random: Random) -> Iterator[T]:
    """Shuffle a stream in the memory of `buffer` items: each new item replaces a random one, which is yielded."""
    waiting: list[T] = []
    for item in items:
        if len(waiting) < buffer:
            waiting.append(item)
            continue
        index = int(random.random() * buffer)
        yield waiting[index]
        waiting[index] = item
    while waiting:
        index = int(random.random() * len(waiting))
        waiting[index], waiting[-1] = waiting[-1], waiting[index]
        yield waiting.pop()
