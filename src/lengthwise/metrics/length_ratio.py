"""Length ratios: how long is an output compared with its source or its reference?

Length ratios are means over sentences, not ratios of sums (Lakew et al. 2019). Compliance is the share of translations
about as long as their source. This file knows no budgets; see `length_error.py`.
"""

import numpy as np

from .tally import Finish, Tally, mean, mean_of
from .texts import Array, Texts


def length_ratio(texts: Texts, _: str = "", *, to: str = "srcs", finish: Finish = mean) -> Tally:
    """Return output length / length of the source or reference (of several references, their mean length)."""
    lengths, others = texts.measured(texts.hyps, texts.unit), _others(texts, to)
    if not others.all():
        row = int(np.flatnonzero(others == 0)[0])
        raise ValueError(f"there is no ratio to an empty text; row {row} of {to} has 0 {texts.unit}; leave it out")
    ratios = lengths / others
    aggregate = finish.__name__.replace("_", "-")
    signature = f"length-ratio|to:{to}|of:sentences|agg:{aggregate}|{texts.unit_signature(texts.unit)}"
    return Tally(signature, ratios[:, None], finish, ratios)


def compliance(texts: Texts, percent: str = "10") -> Tally:
    """Return the share of outputs whose length is within ± `percent` % of the source's, spaces included."""
    lengths, sources = (texts.measured(column, texts.unit) for column in (texts.hyps, texts.srcs or ()))
    signature = f"compliance|pm:{percent}%|short:counted|{texts.unit_signature(texts.unit)}"
    return mean_of(_complies(lengths, sources, percent), signature)


def compliance_isometric(texts: Texts, percent: str = "10") -> Tally:
    """Return the same share by the rule of the isometric translation task (IWSLT 2022).

    Spaces are not counted, and a pair passes if its source or its output has fewer than 10 characters.
    """
    lengths, sources = (texts.measured(column, "chars-nospace") for column in (texts.hyps, texts.srcs or ()))
    passes = _complies(lengths, sources, percent) | (np.minimum(lengths, sources) < 10)
    signature = f"compliance|pm:{percent}%|short:pass<10|{texts.unit_signature('chars-nospace')}"
    return mean_of(passes, signature)


def _complies(lengths: Array, sources: Array, percent: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    if not percent.isdecimal() or not 1 <= int(percent) <= 100:
        raise ValueError(f"compliance is within a whole percentage, 1 to 100; got {percent!r}")
    # Multiplied out: 11 is within 10 % of 10, without rounding errors.
    return np.abs(lengths - sources) * 100 <= int(percent) * sources


def _others(texts: Texts, to: str) -> Array:
    if to == "srcs":
        return texts.measured(texts.srcs or (), texts.unit)
    return np.array([texts.measured(refs, texts.unit).mean() for refs in texts.refs or ()])
