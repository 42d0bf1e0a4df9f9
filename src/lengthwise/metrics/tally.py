"""Tally: the sufficient statistics of a metric, one row per text, from which score, interval and tests are computed.

A metric counts once. Its value, its interval and every comparison are arithmetic on those counts. A resample is a row
of weights (how often each text is drawn), and `finish` turns counts and weights into numbers, many resamples at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from .score import Comparison, Score
from .texts import Array, Texts

Finish = Callable[[Array, Array], Array]  # counts (n, k), weights (draws, n) -> (draws,)
Test = Literal["bootstrap", "randomisation"]
_CELLS = 1 << 22  # weights held at a time: 32 MiB


class NotApplicable(ValueError):
    """The metric cannot be computed for these texts. `score` skips it, unless it was named."""


@dataclass(frozen=True)
class Tally:
    """The counts of one metric. `per_item`: the value of each text alone, if the metric has one."""

    signature: str
    counts: Array  # (n, k)
    finish: Finish
    per_item: Array | None = None  # (n,)
    resampled: bool = True  # False: the counts of one text depend on the other texts, so there is no interval

    def value(self) -> float:
        """Return the value of the metric, with every text counted once."""
        return float(self.finish(self.counts, np.ones((1, len(self.counts))))[0])


@dataclass(frozen=True)
class Metric:
    """How a metric counts, and what it needs. An argument follows its name and a colon: "within:5"."""

    tally: Callable[[Texts, Any], Tally]
    needs: tuple[str, ...] = ()  # fields of Texts
    takes: str = ""  # what the argument is; empty: no argument
    default: str = ""  # the argument if none is given
    usual: bool = True  # False: computed only if named
    load: Callable[[str], Any] | None = None  # loads the model that the argument names; `tally` receives it, or None


def mean_of(values: ArrayLike, signature: str) -> Tally:
    """Return the tally of a plain mean of one value per text."""
    column = np.asarray(values, dtype=np.float64)
    return Tally(signature, column[:, None], mean, column)


def mean(counts: Array, weights: Array) -> Array:
    return weights @ counts[:, 0] / weights.sum(axis=1)


def ratio_of(counts: Array, signature: str) -> Tally:
    """Return the tally of a ratio of sums; counts (n, 2): the part and the whole of each text."""
    return Tally(signature, counts, ratio_of_sums, _ratios(*counts.T))


def ratio_of_sums(counts: Array, weights: Array) -> Array:
    """Return the sum of the first column / the sum of the second; 0 if the second is 0."""
    return _ratios(*(weights @ counts).T)


def _ratios(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def population_std(counts: Array, weights: Array) -> Array:
    """Return the standard deviation. Values are centred first: with large squares, the difference loses precision."""
    centred = counts[:, 0] - counts[:, 0].mean()
    total = weights.sum(axis=1)
    first, second = weights @ centred / total, weights @ centred**2 / total
    return np.sqrt(np.maximum(second - first**2, 0))


def median(counts: Array, weights: Array) -> Array:
    """Return the middle of the drawn values, or the mean of the two middle ones."""
    order = np.argsort(counts[:, 0])
    reached = weights[:, order].cumsum(axis=1)
    half = weights.sum(axis=1, keepdims=True) / 2
    lower, upper = (reached >= half).argmax(axis=1), (reached > half).argmax(axis=1)
    values = counts[order, 0]
    return (values[lower] + values[upper]) / 2


def bootstrap_weights(n: int, samples: int, seed: int) -> Iterator[Array]:
    """Yield how often each of n texts is drawn in each resample, (some, n) at a time."""
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS // n)
    for start in range(0, samples, step):
        rows = min(step, samples - start)
        drawn = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def as_score(name: str, tally: Tally, samples: int = 1000, seed: int = 0) -> Score:
    """Return the value with its 95 % interval (bootstrap percentiles); `samples=0`: no interval."""
    n, interval, signature = len(tally.counts), None, tally.signature
    if samples and n > 1 and tally.resampled:
        draws = bootstrap_weights(n, samples, seed)
        interval = _percentiles(np.concatenate([tally.finish(tally.counts, weights) for weights in draws]))
        signature += f"|bs:{samples}|rs:{seed}"
    per_item = None if tally.per_item is None else tally.per_item.tolist()
    return Score(name, tally.value(), signature, interval, per_item, n)


def as_comparison(
    name: str, a: Tally, b: Tally, test: Test = "bootstrap", samples: int = 1000, seed: int = 0
) -> Comparison:
    """Return the paired test of b against a on the same texts: a bootstrap interval and a two-sided p.

    bootstrap: with the observed difference d, p is the share of resampled differences x with |x − d| ≥ |d|.
    randomisation: p is the share of differences x with |x| ≥ |d| if each pair is swapped with probability 1/2.
    """
    if len(a.counts) != len(b.counts):
        raise ValueError(f"both systems must be scored on the same texts; got {len(a.counts)} and {len(b.counts)}")
    if not (a.resampled and b.resampled):
        raise ValueError(f"{name} has no paired test: its counts of one text depend on the other texts")
    if test not in (known := get_args(Test)) or samples < 1:
        raise ValueError(f"test must be {' or '.join(known)}, with at least 1 sample; got {test!r}, {samples}")
    value_a, value_b, n = a.value(), b.value(), len(a.counts)
    delta = value_b - value_a
    draws = bootstrap_weights(n, samples, seed)
    deltas = np.concatenate([b.finish(b.counts, weights) - a.finish(a.counts, weights) for weights in draws])
    deviations = np.abs(deltas - delta if test == "bootstrap" else _swapped(a, b, samples, seed))
    # An equal difference counts as larger: a system compared with itself must not be significant.
    p = (int((deviations >= abs(delta) - 1e-12).sum()) + 1) / (samples + 1)
    signature = f"{a.signature}|paired:{test}|bs:{samples}|rs:{seed}"
    return Comparison(name, value_a, value_b, delta, _percentiles(deltas), p, signature, n)


def _swapped(a: Tally, b: Tally, samples: int, seed: int) -> Array:
    """Return the differences (samples,) if each pair of outputs is swapped with probability 1/2."""
    pooled, n = np.concatenate([a.counts, b.counts]), len(a.counts)
    rng, step = np.random.default_rng(seed), max(1, _CELLS // (2 * n))
    found = []
    for start in range(0, samples, step):
        swap = rng.integers(2, size=(min(step, samples - start), n)).astype(np.float64)
        now, then = np.hstack([swap, 1 - swap]), np.hstack([1 - swap, swap])
        found.append(b.finish(pooled, now) - b.finish(pooled, then))
    return np.concatenate(found)


def _percentiles(values: Array) -> tuple[float, float]:
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
