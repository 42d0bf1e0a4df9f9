"""The length encoding for engines without torch: the vectors that a decoder receives, in numpy.

`controls/encoding.py` and `controls/sinusoids.py` have the formulas. Here is the one that the bundled models have:
the sinusoid of the units that remain (LDPE, Takase & Okazaki 2019).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..length.meter import Integers
from .base import AttachedControl

Floats = NDArray[np.float32]

_TAG_GAIN = 0.5  # norm relative to the sinusoid
_SUPPORTED = {
    "kind": ("difference",),
    "placement": ("decoder", "answer"),
    "positions": ("add",),
    "layout": ("interleaved",),
    "cosine": ("shared",),
    "reader": (0,),
}


class NumpyLengthEncoding(AttachedControl):
    """The encoding that a `config()` of an `EncodingControl` and its scale describe."""

    def __init__(self, config: Mapping[str, Any], factor: float) -> None:
        for option, values in _SUPPORTED.items():
            if (found := config.get(option, values[0])) not in values:
                raise ValueError(
                    f"the onnx engine runs length encodings with {option} {' or '.join(map(str, values))}; "
                    f"this one has {found}; use the engine transformers"
                )
        if config.get("scale") == "frobenius":
            raise ValueError("the onnx engine runs no encoding with scale frobenius; use the engine transformers")
        unit = config["unit"]
        self.units = (unit,) if isinstance(unit, str) else tuple(unit)
        self.at_most, self._end = bool(config.get("at_most")), int(config.get("end_index", 0))
        self._factor, self._gain = float(factor), float(config.get("gain", 1.0))

    def vectors(
        self, length: Sequence[int], unit: Sequence[int], at_most: Sequence[bool], written: Integers, width: int
    ) -> Floats:
        """Return the vector of each step that has `written` so many units: (n,) each -> (n, width)."""
        remaining = np.maximum(np.asarray(length) - written, 0) + self._end
        speeds = 10_000.0 ** (-2 * np.arange(width // 2) / width)
        angles = np.remainder(np.outer(remaining, speeds), 2 * math.pi).astype(np.float32)
        found = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(len(angles), width)
        if len(self.units) > 1:
            found += _TAG_GAIN * _tag(np.asarray(unit), width)
        if self.at_most:
            found += _TAG_GAIN * _tag(np.array([len(self.units)]), width) * np.asarray(at_most)[:, None]
        return (found * np.float32(self._gain * self._factor)).astype(np.float32)


def _tag(number: Integers, width: int) -> Floats:
    """Return the fixed vector of a unit or a kind of limit: (n,) -> (n, width)."""
    return np.cos(math.pi / width * (number[:, None] + 1) * (np.arange(width) + 0.5)).astype(np.float32)
