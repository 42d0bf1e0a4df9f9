"""The description of a model folder: lengthwise.json, and the base model that it names.

A folder with controls and no config.json has only controls: its weights are those of its base model. No weights are
loaded here, and torch is not imported.
"""

import json
from pathlib import Path
from typing import Any

from ..errors import ModelNotFound
from ..version import __version__
from . import registry

FORMAT = 1
DESCRIPTION = "lengthwise.json"
WEIGHTS = "lengthwise.safetensors"
DISCRIMINATOR = "future_discriminator.safetensors"


def describe(folder: Path) -> dict[str, Any]:
    """Return the content of lengthwise.json; for a plain model, no controls."""
    file = folder / DESCRIPTION
    if not file.exists():
        config = folder / "config.json"
        marked = config.exists() and json.loads(config.read_text("utf-8")).get("lengthwise")
        if marked or (folder / WEIGHTS).exists():
            raise ValueError(f"{folder} has a model with length controls, but {DESCRIPTION} is missing; copy it again")
        return {"controls": []}
    try:
        found = dict(json.loads(file.read_text("utf-8")))
        if not {"format", "controls", "units", "base_model"} <= found.keys():
            raise ValueError(f"it has only {', '.join(found)}")
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file} is damaged ({error}); copy the whole folder again") from error
    if found["format"] != FORMAT:
        raise ValueError(f"{file} has format {found['format']}; Lengthwise {__version__} reads format {FORMAT}")
    return found


def has_controls(name: str) -> bool:
    """Return whether the model called `name` has controls."""
    return bool(describe(registry.resolve(name))["controls"])


def base_name(name: str) -> str:
    """Return the name of the model whose weights `name` has: the base of a folder with only controls, else itself."""
    folder = registry.resolve(name)
    only_controls = not any((folder / file).exists() for file in ("config.json", "adapter_config.json"))
    return base_name(str(describe(folder)["base_model"])) if only_controls else name


def name_of_base(folder: Path) -> str:
    """Return the name of the base model of the adapter, or of the controls, in `folder`."""
    name = describe(folder).get("base_model")
    if not name:
        name = json.loads((folder / "adapter_config.json").read_text("utf-8")).get("base_model_name_or_path")
    if not name:
        raise ValueError(f"the model in {folder} does not name its base model; write it as base_model in {DESCRIPTION}")
    return str(name)


def base_folder(folder: Path) -> Path:
    """Return the folder of the base model of the adapter, or of the controls, in `folder`."""
    name = name_of_base(folder)
    if (Path(name) / "config.json").exists():
        return Path(name)
    try:
        found = registry.resolve(name)
    except ModelNotFound as error:
        if folder.parent == registry.BUNDLED:  # an installed file is not edited: no advice to do so
            error.put_within(f"{folder.name} needs its base model {name}, which cannot be found: ")
        else:
            advice = f"); put it there, or name another place as base_model in {DESCRIPTION}"
            error.put_within(f"the model in {folder} needs its base model {name!r}, which cannot be found (", advice)
        raise
    if not (found / "config.json").exists():
        raise ValueError(f"{name!r}, the base model of {folder}, has a base itself; write that in {DESCRIPTION}")
    return found


def bundled_for(name: str, folder: Path) -> Path | None:
    """Return the bundled folder whose controls were made for the model called `name` in `folder`; else None.

    `name` must be the base model's hub id, or a folder with the last part of that id. Vocabulary and width must agree.
    """
    if (folder / DESCRIPTION).exists() or not (folder / "config.json").exists():
        return None  # it has controls of its own, or is not a plain model
    config = json.loads((folder / "config.json").read_text("utf-8"))
    size = [config.get("vocab_size"), config.get("d_model", config.get("hidden_size"))]
    path = Path(name).expanduser()
    for bundled in sorted(registry.BUNDLED.glob(f"*/{DESCRIPTION}")):
        found = describe(bundled.parent)
        base = found["base_model"] or ""
        same = path.resolve().name == base.rpartition("/")[2] if path.is_dir() else name == base
        if same and found.get("base_size") == size:
            return bundled.parent
    return None
