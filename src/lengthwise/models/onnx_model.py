"""Find a converted model for the onnx engine: from a name to its folder, and to its graph, tokenizer and controls.

Neither torch nor transformers is imported.
"""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..errors import ModelNotFound
from ..protocols import Tokenizer
from . import registry
from .cache import Say
from .conversion.decoder import DecoderShape
from .conversion.file_names import GRAPH, MARIAN_CONTROLS, SETTINGS
from .conversion.lora import CONFIG as ADAPTER
from .conversion.lora import read_adapter
from .conversions import converted_once
from .description import DESCRIPTION, WEIGHTS, bundled_for, describe
from .hub import hub_config
from .json_tokenizer import JsonTokenizer
from .onnx_marian_model import Control, OnnxMarian, read_marian
from .spm_tokenizer import SpmTokenizer


@dataclass(frozen=True)
class OnnxModel:
    """A converted decoder. `control`: the options and the weights of its length control, if it has one."""

    graph: Path
    shape: DecoderShape
    eos: list[int]
    pad: int
    tokenizer: Tokenizer
    control: Control | None = None


def load_onnx(name: str, *, fitted: bool = False) -> OnnxModel | OnnxMarian:
    """Return the converted model called `name`; known ones, Marian and adapters are converted on first use.

    `fitted`: with the bundled control that was trained for this plain model, if there is one.
    """
    folder, controls = resolve_onnx(name)
    if json.loads((folder / SETTINGS).read_text("utf-8")).get("type") == "marian":
        extra = bundled_for(name, registry.resolve(name)) if fitted and controls is None else None
        controls = controls or extra
        control = None if controls is None else read_control(controls, "onnx", *MARIAN_CONTROLS)
        return read_marian(folder, _tokenizer(folder), control, f"{extra.name} upon {name}" if extra else name)
    control = None if controls is None else read_control(controls, "onnx", "countdown_head", "prompt")
    return read_onnx(folder, _tokenizer(folder), control)


def read_onnx(folder: Path, tokenizer: Tokenizer, control: Control | None = None) -> OnnxModel:
    """Return the converted decoder in `folder`."""
    settings = json.loads((folder / SETTINGS).read_text("utf-8"))
    shape = DecoderShape(**{size.name: settings["shape"][size.name] for size in fields(DecoderShape)})
    return OnnxModel(folder / GRAPH, shape, settings["eos"], settings["pad"], tokenizer, control)


def _tokenizer(folder: Path) -> Tokenizer:
    return JsonTokenizer(folder) if (folder / "tokenizer.json").exists() else SpmTokenizer(folder)


def resolve_onnx(name: str, *, say: Say = registry.say) -> tuple[Path, Path | None]:
    """Return the folder of the converted model called `name`, and the folder of its controls, if it has any."""
    if (known := registry.converted(name)) is not None:
        return known, None
    if registry.is_on_hub(name):  # its config tells whether it is Marian, before its weights are fetched
        config = hub_config(name, say)
        if config is not None and config.get("model_type") != "marian":
            raise _not_converted(name)
    folder = registry.resolve(name)
    description = describe(folder)
    controls = folder if description["controls"] else None
    if (folder / SETTINGS).exists():
        return folder, controls
    if (folder / ADAPTER).exists() or _is_marian(folder):
        return converted_once(name, folder, say), controls
    if (folder / "config.json").exists():
        raise _not_converted(name)
    if (base := str(description["base_model"])) == name:
        raise ValueError(f"{folder} names itself as its base model; write the path of the base in {DESCRIPTION}")
    return resolve_onnx(base, say=say)[0], controls


def _not_converted(name: str) -> ModelNotFound:
    advice = f"convert it, `lengthwise export {name} FOLDER`, and name that folder; or use the engine transformers."
    return ModelNotFound(name, f"{name!r} has not been converted for the onnx engine.", advice)


def is_convertible(name: str) -> bool:
    """Return whether the onnx engine runs the model called `name` without an export. Nothing is fetched."""
    if (local := registry.local_model(name)) is None and name.lower() in registry.KNOWN:
        return registry.KNOWN[name.lower()].convert is not None
    folder = local or registry.BUNDLED / name.lower()
    if (folder / SETTINGS).exists():
        return True
    if not (folder / DESCRIPTION).exists():
        return False
    if _is_marian(folder):
        return folder.parent == registry.BUNDLED  # others may have options of a control that the engine refuses
    description = describe(folder)
    controls = [config["control"] for config in description["controls"]]
    base = str(description["base_model"])
    if (folder / ADAPTER).exists():
        source = registry.source_of(base)
        known = source is not None and source.convert is not None
        return known and controls in ([], ["countdown_head"], ["prompt"]) and _is_lora(folder)
    weights = (folder / "config.json").exists()
    return controls == ["countdown_head"] and not weights and base != name and is_convertible(base)


def _is_lora(folder: Path) -> bool:
    try:
        return bool(read_adapter(folder).a)
    except ValueError:
        return False


def _is_marian(folder: Path) -> bool:
    config = folder / "config.json"
    return config.exists() and json.loads(config.read_text("utf-8")).get("model_type") == "marian"


def read_control(folder: Path, engine: str, *allowed: str) -> Control:
    """Return the options and the weights of the control in `folder`, if it is one that the engine runs."""
    from safetensors.numpy import load_file

    configs = describe(folder)["controls"]
    if [config["control"] for config in configs] not in [[name] for name in allowed]:
        found = ", ".join(config["control"] for config in configs)
        names = " or ".join(name.replace("_", " ") for name in allowed)
        raise ValueError(f"the {engine} engine runs no control but a {names}; the model in {folder} has {found}")
    weights: dict[str, Any] = load_file(folder / WEIGHTS)
    return configs[0], {name.rpartition(".")[2]: array for name, array in weights.items()}
