"""Length errors: how far are outputs from the length that was asked for?

Errors are distances to the budget's target; overruns and violations refer to its limits. All are in the budget's unit.
This file knows lengths and budgets; it does not know where the lengths come from.
"""

from collections.abc import Sequence

import numpy as np

from .tally import Tally, mean_of
from .texts import Texts


def variance(texts: Texts, _: str = "") -> Tally:
    """Return the mean of (length − target)², called variance by Takase & Okazaki 2019: 74 75 77 75 for 75 → 1.25."""
    return mean_of((texts.written - texts.targets) ** 2, _signature("variance", texts))


def mae(texts: Texts, _: str = "") -> Tally:
    """Return the mean of |length − target|."""
    return mean_of(np.abs(texts.written - texts.targets), _signature("mae", texts))


def relative_error(texts: Texts, _: str = "") -> Tally:
    """Return the mean of |length − target| / target."""
    return mean_of(np.abs(texts.written - texts.targets) / texts.targets, _signature("relative-error", texts))


def exact(texts: Texts, _: str = "") -> Tally:
    """Return the share of outputs that have exactly the target length."""
    return mean_of(texts.written == texts.targets, _signature("exact", texts))


def within(texts: Texts, tolerance: str) -> Tally:
    """Return the share of outputs at most `tolerance` units away from the target."""
    if not tolerance.isdecimal():
        raise ValueError(
            f"within needs a whole number of {texts.budget_unit}, for example 'within:5'; got {tolerance!r}"
        )
    near = np.abs(texts.written - texts.targets) <= int(tolerance)
    return mean_of(near, _signature(f"within|pm:{tolerance}", texts))


def overrun(texts: Texts, _: str = "") -> Tally:
    """Return the share of outputs longer than their budget allows; "at least" has no such limit."""
    over = [b.high is not None and length > b.high for b, length in zip(texts.budgets, texts.written, strict=True)]
    return mean_of(over, _signature("overrun", texts))


def violation(texts: Texts, _: str = "") -> Tally:
    """Return the share of outputs outside the limits of their budget, on either side."""
    out = [not budget.fits(int(length)) for budget, length in zip(texts.budgets, texts.written, strict=True)]
    return mean_of(out, _signature("violation", texts))


def bins(targets: Sequence[float], *, width: int = 100, edges: Sequence[int] | None = None) -> dict[str, list[int]]:
    """Return rows by target length: "1-100", "101-200", ...; or up to each of `edges`. Empty bins are left out.

    >>> bins([40, 120, 100], width=100), bins([5, 20, 99], edges=[10, 50])
    ({'1-100': [0, 2], '101-200': [1]}, {'1-10': [0], '11-50': [1], '51-': [2]})
    """
    if edges is None:
        if width < 1:
            raise ValueError(f"bins must be at least 1 wide; got {width}")
        edges = range(width, int(max(targets, default=0)) + width, width)
    if list(edges) != sorted(set(edges)) or (len(edges) and edges[0] < 1):
        raise ValueError(f"edges must rise from 1 or more; got {list(edges)}")
    places = np.searchsorted(edges, targets)  # the first edge that is not below the target
    lows = [1, *(edge + 1 for edge in edges)]
    labels = [f"{low}-{high}" for low, high in zip(lows, [*edges, ""], strict=True)]
    return {labels[place]: np.flatnonzero(places == place).tolist() for place in sorted(set(places.tolist()))}


def _signature(name: str, texts: Texts) -> str:
    given = "" if texts.lengths is None else "|lengths:given"
    return f"{name}|agg:mean{given}|{texts.unit_signature(texts.budget_unit)}"
