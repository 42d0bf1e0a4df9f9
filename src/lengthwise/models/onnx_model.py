"""Load a converted model for the onnx engine: from a name to its graph, tokenizer, sizes and countdown head.

Neither torch nor transformers is imported.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ModelNotFound
from ..protocols import Tokenizer
from . import registry
from .conversion.folder import SETTINGS
from .conversion.graphs import GRAPH
from .conversion.llama import Shape
from .description import DESCRIPTION, WEIGHTS, describe
from .json_tokenizer import JsonTokenizer


@dataclass(frozen=True)
class OnnxModel:
    """A converted model. `head`: the options and the weights of its countdown head, if it has one."""

    graph: Path
    shape: Shape
    eos: list[int]
    pad: int
    tokenizer: Tokenizer
    head: tuple[dict[str, Any], dict[str, Any]] | None = None


def load_onnx(name: str) -> OnnxModel:
    """Return the converted model called `name`; a known one is converted on first use."""
    folder, controls = resolve_onnx(name)
    return read_onnx(folder, JsonTokenizer(folder), None if controls is None else _head(controls))


def read_onnx(
    folder: Path, tokenizer: Tokenizer, head: tuple[dict[str, Any], dict[str, Any]] | None = None
) -> OnnxModel:
    """Return the converted model in `folder`."""
    settings = json.loads((folder / SETTINGS).read_text("utf-8"))
    shape = Shape(**settings["shape"])
    return OnnxModel(folder / GRAPH, shape, settings["eos"], settings["pad"], tokenizer, head)


def resolve_onnx(name: str) -> tuple[Path, Path | None]:
    """Return the folder of the converted model called `name`, and the folder of its controls, if it has any."""
    if (known := registry.converted(name)) is not None:
        return known, None
    folder = registry.resolve(name)
    description = describe(folder)
    controls = folder if description["controls"] else None
    if (folder / SETTINGS).exists():
        return folder, controls
    if any((folder / file).exists() for file in ("config.json", "adapter_config.json")):
        advice = f"convert it, `lengthwise export {name} FOLDER`, and name that folder; or use the engine transformers."
        raise ModelNotFound(name, f"{name!r} has not been converted for the onnx engine.", advice)
    return resolve_onnx(str(description["base_model"]))[0], controls


def is_convertible(name: str) -> bool:
    """Return whether the onnx engine runs the model called `name` without an export. Nothing is fetched."""
    short, folder = name.lower(), Path(name).expanduser()
    if not (folder.is_dir() and name):
        folder = registry.BUNDLED / short
    if (folder / SETTINGS).exists():
        return True
    if not (folder / DESCRIPTION).exists():
        known = registry.KNOWN.get(short)
        return known is not None and known.convert is not None
    description = describe(folder)
    controls = [config["control"] for config in description["controls"]]
    weights = any((folder / file).exists() for file in ("config.json", "adapter_config.json"))
    return controls == ["countdown_head"] and not weights and is_convertible(str(description["base_model"]))


def _head(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options and the weights of the countdown head in `folder`."""
    from safetensors.numpy import load_file

    configs = describe(folder)["controls"]
    if [config["control"] for config in configs] != ["countdown_head"]:
        names = ", ".join(config["control"] for config in configs)
        raise ValueError(f"the onnx engine runs no control but a countdown head; the model in {folder} has {names}")
    return configs[0], {name.rpartition(".")[2]: array for name, array in load_file(folder / WEIGHTS).items()}
