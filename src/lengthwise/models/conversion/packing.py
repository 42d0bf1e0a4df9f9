"""Pack a whole model for distribution: its matrices in 4 bits, its other files as they are."""

import shutil
from pathlib import Path

from ... import atomic
from ..packed import PACKED, save_packed
from .checkpoint import read_arrays

_UNPACKED = ("model*.safetensors*", "pytorch_model*.bin*")  # files that would be read instead, or never


def pack(folder: Path, out: Path) -> None:
    """Write the model in `folder` to the new folder `out`, with packed weights. Its other files are copied."""
    if out.exists():
        raise ValueError(f"{out} exists; name a new folder")
    if not (folder / "config.json").exists() or (folder / "adapter_config.json").exists():
        raise ValueError(f"only whole models are packed; {folder} has an adapter or controls: merge them first")
    with atomic.folder(out) as partial:
        for file in folder.iterdir():
            if file.is_file() and not any(map(file.match, _UNPACKED)):
                shutil.copyfile(file, partial / file.name)
        save_packed(read_arrays(folder), partial / PACKED)
