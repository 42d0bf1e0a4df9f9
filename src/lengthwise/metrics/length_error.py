"""Length errors: how far are outputs from the budget's target, and how many are outside its limits?"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .tally import Tally, mean_of
from .texts import Texts

ERRORS: dict[str, Callable[[Texts], ArrayLike]] = {  # one number per text: (n,)
    "variance": lambda texts: (texts.written - texts.targets) ** 2,  # Takase & Okazaki 2019: 74 75 77 75 for 75 → 1.25
    "mae": lambda texts: np.abs(texts.written - texts.targets),
    "relative-error": lambda texts: np.abs(texts.written - texts.targets) / texts.targets,
    "exact": lambda texts: texts.written == texts.targets,
    "overrun": lambda texts: texts.written > [b.high or np.inf for b in texts.budgets],  # "at least" has no high
    "violation": lambda texts: [not b.fits(int(n)) for b, n in zip(texts.budgets, texts.written, strict=True)],
}


def length_error(texts: Texts, _: str = "", *, name: str) -> Tally:
    """Return the mean of one of `ERRORS`; the mean of a condition is the share of outputs that meet it."""
    return mean_of(ERRORS[name](texts), _signature(name, texts))


def within(texts: Texts, tolerance: str) -> Tally:
    """Return the share of outputs at most `tolerance` units away from the target."""
    if not tolerance.isdecimal():
        raise ValueError(f"'within' needs a whole number of {texts.budget_unit}, as in 'within:5'; got {tolerance!r}")
    near = np.abs(texts.written - texts.targets) <= int(tolerance)
    return mean_of(near, _signature(f"within|pm:{tolerance}", texts))


def bins(targets: Sequence[float], *, width: int = 100, edges: Sequence[int] | None = None) -> dict[str, list[int]]:
    """Return the rows of each bin of target lengths, `width` wide or up to each of `edges`, without empty bins.

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
    labels = [f"{below + 1}-{high}" for below, high in zip([0, *edges], [*edges, ""], strict=True)]
    return {labels[place]: np.flatnonzero(places == place).tolist() for place in sorted(set(places.tolist()))}


def _signature(name: str, texts: Texts) -> str:
    given = "" if texts.lengths is None else "|lengths:given"
    return f"{name}|agg:mean{given}|{texts.unit_signature(texts.budget_unit)}"
