"""Length ratios: how long is an output compared with its source or its reference?

Length ratios are means over sentences, not ratios of sums (Lakew et al. 2019).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .tally import Finish, Tally, mean, mean_of
from .texts import Texts


def length_ratio(texts: Texts, _: str = "", *, to: str = "srcs", finish: Finish = mean) -> Tally:
    """Return the output length / length of the source or reference; of several references, their mean length."""
    column: Sequence[Any] = texts.refs or () if to == "refs" else [(src,) for src in texts.srcs or ()]
    others = np.array([texts.measured(of_one, texts.unit).mean() for of_one in column])
    if not others.all():
        row = int(np.flatnonzero(others == 0)[0])
        raise ValueError(f"a ratio to an empty text is undefined; row {row} of {to} has 0 {texts.unit}; leave it out")
    ratios, rule = texts.measured(texts.hyps, texts.unit) / others, finish.__name__.replace("_", "-")
    signature = f"length-ratio|to:{to}|of:sentences|agg:{rule}|{texts.unit_signature(texts.unit)}"
    return Tally(signature, ratios[:, None], finish, ratios)


def compliance(texts: Texts, percent: str = "10", *, isometric: bool = False) -> Tally:
    """Return the share of outputs whose length is within ± `percent` % of the source's, spaces included.

    `isometric`: the rule of the isometric translation task (IWSLT 2022). Spaces are not counted, and a pair passes if
    its source or its output has fewer than 10 characters.
    """
    if not percent.isdecimal() or not 1 <= int(percent) <= 100:
        raise ValueError(f"compliance needs a whole percentage from 1 to 100; got {percent!r}")
    unit, short = ("chars-nospace", "pass<10") if isometric else (texts.unit, "counted")
    lengths, sources = (texts.measured(column, unit) for column in (texts.hyps, texts.srcs or ()))
    # Multiplied out: 11 is within 10 % of 10, without rounding errors.
    passes = np.abs(lengths - sources) * 100 <= int(percent) * sources
    if isometric:
        passes |= np.minimum(lengths, sources) < 10
    return mean_of(passes, f"compliance|pm:{percent}%|short:{short}|{texts.unit_signature(unit)}")
