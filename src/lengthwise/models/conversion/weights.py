"""Weights of linear layers, (out, in): dense, with one scale for each output, or in blocks of 32 numbers along `in`.

Blocks are those of GGUF. They stay quantised: rows are reordered and stacked without rounding anything.
Biases and layer norms, which several families have, are here as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

BLOCK = 32

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Dense:
    """Plain weights."""

    values: Floats  # (out, in)


@dataclass(frozen=True)
class Blocks8:
    """8-bit weights, w = scale · q: GGUF's Q8_0."""

    scale: Floats  # (out, blocks)
    q: NDArray[np.int8]  # (out, blocks, 32)


@dataclass(frozen=True)
class Blocks4:
    """4-bit weights, w = scale · q + minimum: GGUF's Q4_1."""

    scale: Floats  # (out, blocks)
    minimum: Floats  # (out, blocks)
    q: NDArray[np.uint8]  # (out, blocks, 32), each 0 to 15


@dataclass(frozen=True)
class Channels8:
    """8-bit weights with one scale for each output, w = scale · q."""

    scale: Floats  # (out,)
    q: NDArray[np.int8]  # (out, in)


Weight = Dense | Blocks8 | Blocks4 | Channels8
W = TypeVar("W", Dense, Blocks8, Blocks4, Channels8)


@dataclass(frozen=True)
class Linear:
    """A product with a weight, and a bias."""

    weight: Weight
    bias: Floats  # (out,)


@dataclass(frozen=True)
class Norm:
    """A layer norm."""

    gain: Floats  # (width,)
    shift: Floats  # (width,)


def with_weights(part: Any, change: Callable[[Weight], Weight]) -> Any:
    """Return a model, or a part of it, with every weight changed."""
    if isinstance(part, Weight):
        return change(part)
    if isinstance(part, list):
        return [with_weights(one, change) for one in part]
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{one.name: with_weights(getattr(part, one.name), change) for one in fields(part)})
    return part


def stacked(weights: Sequence[Weight]) -> Weight:
    """Return one weight with the outputs of all, in this order; they must be of one kind."""
    kind: Any = type(weights[0])
    if any(type(one) is not kind for one in weights):
        raise ValueError(f"cannot stack weights of different kinds: {', '.join(type(w).__name__ for w in weights)}")
    return kind(*(np.concatenate([getattr(one, field.name) for one in weights]) for field in fields(kind)))


def reordered(weight: W, rows: NDArray[np.int64]) -> W:
    """Return the weight with these rows, in this order."""
    kind: Any = type(weight)
    return kind(*(getattr(weight, field.name)[rows] for field in fields(kind)))


def dense(weight: Weight) -> Floats:
    """Return the numbers that the weight stands for: (out, in)."""
    if isinstance(weight, Dense):
        return weight.values
    values = weight.q * weight.scale[..., None]  # (out, blocks, 32), or (out, in)
    if isinstance(weight, Blocks4):
        values = values + weight.minimum[..., None]
    return values.reshape(len(values), -1)


def quantised(weight: Dense) -> Blocks8:
    """Return the weight in 8 bits, each block scaled by its largest number."""
    blocks = weight.values.reshape(len(weight.values), -1, BLOCK)
    scale = np.abs(blocks).max(2) / 127
    q = np.round(blocks / np.where(scale, scale, 1)[..., None]).astype(np.int8)
    return Blocks8(scale.astype(np.float32), q)


def by_channel(weight: Weight) -> Channels8:
    """Return the weight in 8 bits, each output scaled by its largest number."""
    values = dense(weight)
    scale = np.abs(values).max(1) / 127
    q = np.round(values / np.where(scale, scale, 1)[:, None]).astype(np.int8)
    return Channels8(scale.astype(np.float32), q)
