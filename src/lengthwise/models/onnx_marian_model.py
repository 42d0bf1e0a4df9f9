"""Read a converted Marian model for the onnx engine: graphs, embeddings, tokenizer, sizes and a length control.

Neither torch nor transformers is imported.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..protocols import Tokenizer
from .conversion.file_names import DECODER, EMBEDDINGS, ENCODER, SETTINGS
from .conversion.marian_shape import Shape

Control = tuple[dict[str, Any], dict[str, Any]]  # the options of a control, and its weights


class Table:
    """An embedding: rows of floats, or of 8-bit numbers with one scale each."""

    def __init__(self, values: NDArray[Any], scale: NDArray[np.float32] | None) -> None:
        self._values, self._scale = values, scale

    def __getitem__(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the rows with these ids: (n,) -> (n, width)."""
        rows = self._values[ids].astype(np.float32)
        return rows if self._scale is None else rows * self._scale[ids, None]


@dataclass(frozen=True)
class OnnxMarian:
    """A converted model. `control`: the length control that is attached to it, if there is one."""

    name: str
    folder: Path
    shape: Shape
    eos: list[int]
    pad: int
    start: int  # the id before each text
    never: list[int]  # ids that are never written
    embeddings: list[Table]  # of sources and of targets; one if they are the same
    positions: NDArray[np.float32]  # (window, width)
    tokenizer: Tokenizer
    control: Control | None = None

    @property
    def encoder(self) -> Path:
        return self.folder / ENCODER

    @property
    def decoder(self) -> Path:
        return self.folder / DECODER


def read_marian(folder: Path, tokenizer: Tokenizer, control: Control | None = None, name: str = "") -> OnnxMarian:
    """Return the converted model in `folder`."""
    from safetensors.numpy import load_file

    settings = json.loads((folder / SETTINGS).read_text("utf-8"))
    arrays = load_file(folder / EMBEDDINGS)
    tables = [Table(arrays[name], arrays.get(f"{name}_scale")) for name in ("source", "target") if name in arrays]
    return OnnxMarian(
        name=name or folder.name,
        folder=folder,
        shape=Shape(**settings["shape"]),
        eos=settings["eos"],
        pad=settings["pad"],
        start=settings["start"],
        never=settings["never"],
        embeddings=tables,
        positions=arrays["positions"],
        tokenizer=tokenizer,
        control=control,
    )
