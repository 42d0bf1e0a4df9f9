"""The future discriminator: how probable is it that a sentence or an item ends exactly so many units after a token?

A small network reads the model's last hidden state before a token, and the token's embedding:

    f(h, x)[unit, r] = outer · (z + silu(middle · z)),  z = silu(inner · [rms_norm(h), rms_norm(x)])

σ(f) is the probability that a sentence, a list item or a table row ends r units after x. FUDGE (Yang & Klein 2021)
steers a model so, with a classifier of prefixes; here the model's own answers are the labels: each later end is one.
The network knows which of the likely next tokens leads to an end in time, which a countdown head, whose change is
linear in the token, cannot know (docs/LOG.md). `training/future_discriminator.py` trains it, `generation/steering.py`
uses it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, converter, library
from ..models.description import DISCRIMINATOR

_EPSILON = float(np.finfo(np.float32).eps)
_NAMES = ("inner.weight", "inner.bias", "middle.weight", "middle.bias", "outer.weight", "outer.bias")


class FutureDiscriminator:
    """The network, for numpy arrays or torch tensors; its weights are converted to what the hidden states are.

    units    the units that it counts in
    reach    the largest number of units to an end
    weights  those of `_NAMES`, (out, in)
    """

    def __init__(self, units: tuple[str, ...], reach: int, weights: Mapping[str, NDArray[Any]]) -> None:
        self.units, self.reach = units, reach
        inner, width = weights["inner.weight"], weights["inner.weight"].shape[1] // 2
        self.width = width
        self._numpy = {name: weights[name] for name in _NAMES[1:]}
        self._numpy |= {"hidden": inner[:, :width], "token": inner[:, width:]}
        self._converted: dict[Any, dict[str, Array]] = {}

    @classmethod
    def read(cls, folder: Path, width: int) -> "FutureDiscriminator | None":
        """Return the discriminator in the folder of a model of this width; None if there is none."""
        from safetensors import safe_open

        if not (folder / DISCRIMINATOR).exists():
            return None
        with safe_open(folder / DISCRIMINATOR, framework="numpy") as file:
            settings = file.metadata()
            weights = {name: file.get_tensor(name) for name in _NAMES}
        found = cls(tuple(json.loads(settings["units"])), int(settings["reach"]), weights)
        if found.width != width:
            problem = f"{folder / DISCRIMINATOR} was made for a model of width {found.width}; this one has {width}"
            raise ValueError(f"{problem}; delete the file, or train it again with `lengthwise discriminator`")
        return found

    def probabilities(self, hidden: Array, embedded: Array, unit: str) -> Array:
        """Return the probability of an end 0 to `reach` units after each token: (rows, tokens, reach + 1).

        `hidden` (rows, width): before the tokens. `embedded` (rows, tokens, width): the tokens' embeddings.
        """
        lib, weights = library(hidden), self._weights(hidden)
        first = self.units.index(unit) * (self.reach + 1)
        own = slice(first, first + self.reach + 1)
        read = _normed(hidden) @ weights["hidden"].T + weights["inner.bias"]
        z = _silu(read[:, None] + _normed(embedded) @ weights["token"].T)
        z = z + _silu(z @ weights["middle.weight"].T + weights["middle.bias"])
        logits = z @ weights["outer.weight"][own].T + weights["outer.bias"][own]
        return 0.5 * (1 + lib.tanh(0.5 * logits))

    def _weights(self, like: Array) -> dict[str, Array]:
        key = type(like), getattr(like, "device", None)
        if key not in self._converted:
            convert = converter(like)
            self._converted[key] = {
                name: convert(np.ascontiguousarray(array, np.float32)) for name, array in self._numpy.items()
            }
        return self._converted[key]


def _normed(x: Array) -> Array:
    """Return x with a mean square of 1 in its last dimension."""
    return x / library(x).sqrt((x * x).mean(-1) + _EPSILON)[..., None]


def _silu(x: Array) -> Array:
    return x * (0.5 * (1 + library(x).tanh(0.5 * x)))
