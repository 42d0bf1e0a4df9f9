"""Length statistics of a corpus: source lengths, target lengths and their ratio, in characters."""

from array import array
from collections.abc import Callable, Iterable

import numpy as np

from .document import Document

_PERCENTILES = {"min": 0, "5 %": 5, "median": 50, "95 %": 95, "max": 100}


def length_statistics(documents: Iterable[Document], progress: Callable[[], None]) -> dict[str, dict[str, float]]:
    """Return percentiles and the mean of "source", "target" and "target/source"; call `progress` for each document."""
    sides = array("L"), array("L")  # compact: a corpus may have millions of segments
    for document in documents:
        for pair in document.segments:
            for side, text in zip(sides, pair, strict=True):
                side.append(len(text.strip()))
        progress()
    source, target = (np.array(side, dtype=np.float64) for side in sides)
    found: dict[str, dict[str, float]] = {}
    for name, values in (("source", source), ("target", target), ("target/source", target / source)):
        found[name] = {label: round(float(np.percentile(values, share)), 2) for label, share in _PERCENTILES.items()}
        found[name]["mean"] = round(float(values.mean()), 2)
    return found
