"""Read the weights in a safetensors file as float32. bfloat16 is read, which safetensors.numpy does not."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .weights import Floats

_KINDS: dict[str, Any] = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def read_file(file: Path) -> Iterator[tuple[str, Floats]]:
    """Yield the name and the values of each weight in `file`."""
    data = np.memmap(file, np.uint8, "r")
    start = 8 + int(data[:8].view(np.uint64)[0])
    for name, about in json.loads(bytes(data[8:start])).items():
        if name == "__metadata__":
            continue
        if (kind := about["dtype"]) not in _KINDS:
            raise ValueError(f"{file.name} has weights of the type {kind}; only {', '.join(_KINDS)} are read")
        first, last = about["data_offsets"]
        values = np.frombuffer(data[start + first : start + last], _KINDS[kind]).reshape(about["shape"])
        if kind == "BF16":  # the first half of a float32
            values = (values.astype(np.uint32) << 16).view(np.float32)
        yield name, values.astype(np.float32)
