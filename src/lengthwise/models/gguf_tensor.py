"""Read one tensor of a GGUF file. The vocabulary is skipped: the reader of the package gguf parses it for seconds."""

import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

# Sizes of the types of settings, by number; 8 is a text, 9 a list.
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT, _LIST = 8, 9


def read_tensor(path: Path, *names: str) -> NDArray[np.float32]:
    """Return the first of these tensors that the file has, in float32."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize

    with path.open("rb") as file:
        magic, version, tensors, settings = struct.unpack("<4sIQQ", file.read(24))
        if magic != b"GGUF" or version < 2:
            raise ValueError(f"{path} is not a little-endian GGUF file of version 2 or 3")
        alignment = 32
        for _ in range(settings):
            name, (kind,) = _text(file), _numbers(file, "<I")
            if name == b"general.alignment":
                (alignment,) = _numbers(file, "<I")
            else:
                _skip(file, kind)
        found: dict[str, tuple[tuple[int, ...], int, int]] = {}
        for _ in range(tensors):
            name, (axes,) = _text(file), _numbers(file, "<I")
            sizes = _numbers(file, f"<{axes}Q")
            kind, offset = _numbers(file, "<IQ")
            found[name.decode()] = sizes, kind, offset
        start = -(-file.tell() // alignment) * alignment
    wanted = next((name for name in names if name in found), None)
    if wanted is None:
        raise ValueError(f"{path} has no tensor {' or '.join(names)}")
    sizes, kind, offset = found[wanted]
    block, size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    width, *others = sizes  # the last axis comes first
    shape = (*reversed(others), width // block * size)
    raw: Any = np.memmap(path, np.uint8, "r", start + offset, shape)
    return np.ascontiguousarray(dequantize(_typed(raw, kind), GGMLQuantizationType(kind)), np.float32)


def _typed(raw: Any, kind: int) -> Any:
    """Return bytes as numbers where the format has plain ones: 0 is float32, 1 is float16."""
    return raw.view({0: np.float32, 1: np.float16}.get(kind, np.uint8))


def _skip(file: BinaryIO, kind: int) -> None:
    if kind == _TEXT:
        file.seek(_numbers(file, "<Q")[0], 1)
    elif kind == _LIST:
        item, count = _numbers(file, "<IQ")
        if item in _SIZES:
            file.seek(count * _SIZES[item], 1)
        else:
            for _ in range(count):
                _skip(file, item)
    else:
        file.seek(_SIZES[kind], 1)


def _text(file: BinaryIO) -> bytes:
    return file.read(_numbers(file, "<Q")[0])


def _numbers(file: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))
