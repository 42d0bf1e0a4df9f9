"""Rounds: what is compared runs in turns, so that a busy machine slows down all of it; ratios are taken per round."""

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Spread(NamedTuple):
    """The lowest, the median and the highest of several figures."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, figures: list[float]) -> "Spread":
        return cls(min(figures), statistics.median(figures), max(figures))


@dataclass(frozen=True)
class Clock:
    """Seconds of the wall, or, for a busy machine, CPU seconds of this process."""

    busy: bool = False

    @property
    def name(self) -> str:
        return "CPU time, one thread" if self.busy else "wall time"

    def now(self) -> float:
        return time.process_time() if self.busy else time.perf_counter()

    def timed(self, run: Callable[[], T]) -> tuple[float, T]:
        """Return the seconds that `run` takes, and what it returns."""
        began = self.now()
        result = run()
        return self.now() - began, result


def one_thread() -> None:
    """Make libraries that are imported later, and commands that are started later, use one thread."""
    os.environ["OMP_NUM_THREADS"] = "1"


def in_turns(runs: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Return what each of `runs` returns in each round. Every second round has the reverse order."""
    found: dict[str, list[T]] = {name: [] for name in runs}
    for n in range(rounds):
        for name in list(runs)[:: -1 if n % 2 else 1]:
            found[name].append(runs[name]())
    return found


def times_as_fast(ours: list[float], theirs: list[float]) -> Spread:
    """Return how many times as fast as `theirs` we are, from the seconds of each round."""
    return Spread.of([their / our for our, their in zip(ours, theirs, strict=True)])
