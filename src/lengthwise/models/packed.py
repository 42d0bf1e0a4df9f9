"""Packed weights: matrices in 4 bits, for models that are distributed. numpy is enough to read them.

A row is cut into blocks of 32 weights, w = scale · (q - 8), with a float16 scale and q from 0 to 15: 4.5 bits a weight.
Vectors stay in float16, also those that are stored as one row. `packed.safetensors` takes the place of
`model.safetensors`; the engines transformers and onnx read it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PACKED = "packed.safetensors"
BLOCK = 32
_Q, _SCALE = ".q4", ".scale"
_CLIPS = (1.0, 0.95, 0.9, 0.85, 0.8)  # shares of a block's largest weight that are tried as the largest number

Floats = NDArray[np.float32]


def save_packed(arrays: Iterable[tuple[str, Floats]], file: Path) -> None:
    """Write the weights with these names to `file`."""
    from safetensors.numpy import save_file

    stored: dict[str, Any] = {}
    for name, values in arrays:
        if values.ndim == 2 and len(values) > 1 and values.shape[1] % BLOCK == 0:
            stored[name + _Q], stored[name + _SCALE] = _in_4_bits(values)
        else:
            stored[name] = values.astype(np.float16)
    save_file(stored, file)
    file.chmod(0o644)  # only the owner could read it


def read_packed(file: Path) -> Iterator[tuple[str, Floats]]:
    """Yield the name and the values of each weight in `file`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        stored = load_file(file)
        for name, values in stored.items():
            if name.endswith(_Q):
                scale = stored[name.removesuffix(_Q) + _SCALE].astype(np.float32)  # (out, blocks)
                q = np.stack([values & 15, values >> 4], -1).reshape(*scale.shape, BLOCK)
                yield name.removesuffix(_Q), ((q.astype(np.float32) - 8) * scale[..., None]).reshape(len(q), -1)
            elif not name.endswith(_SCALE):
                yield name, values.astype(np.float32)
    except (SafetensorError, KeyError) as error:
        raise ValueError(f"{file} is damaged ({error}); copy the folder again") from error


def _in_4_bits(values: Floats) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Return two numbers a byte, (out, in / 2), and the scale of each block, (out, in / 32)."""
    blocks = values.reshape(len(values), -1, BLOCK)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)  # becomes -8, the outermost number
    q = np.full(blocks.shape, 8, np.uint8)
    scale = np.zeros(blocks.shape[:2], np.float16)
    least = np.full(blocks.shape[:2], np.inf)
    for clip in _CLIPS:
        tried = (largest[..., 0] * clip / -8).astype(np.float16)
        step = tried.astype(np.float32)[..., None]
        numbers = np.clip(np.round(blocks / np.where(step, step, 1)), -8, 7)
        error = ((numbers * step - blocks) ** 2).sum(-1)
        better = error < least
        least = np.where(better, error, least)
        scale = np.where(better, tried, scale)
        q = np.where(better[..., None], (numbers + 8).astype(np.uint8), q)
    pairs = q.reshape(len(values), -1, 2)
    return (pairs[..., 0] | pairs[..., 1] << 4).astype(np.uint8), scale
