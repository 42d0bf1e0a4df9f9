"""Find the converted copy of a model in the cache. Folders with the same content share one copy.

A record in the cache names the copy of each folder, with the sizes and times of the folder's files. The content is read
again only if these have changed.
"""

import hashlib
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from .. import atomic
from . import registry
from .cache import Say, built_once, cache_dir
from .conversion.lora import CONFIG as ADAPTER
from .description import base_folder, name_of_base

_EDITION = 2  # raise it when the conversion of Marian or adapters changes


def converted_once(name: str, folder: Path, say: Say) -> Path:
    """Return the folder of a Marian checkpoint or of an adapter with its base model, converted and cached.

    It is made again when a model changes. The earlier conversion is then removed, unless another folder has it.
    """

    def build(fresh: Path, say: Say) -> None:
        from .conversion.checkpoint import convert

        say(f"converting {name} for onnxruntime, once ...")
        convert(folder, fresh, say=say)

    is_adapter = (folder / ADAPTER).exists()
    state = [str(_EDITION), *(_adapter_state(folder) if is_adapter else _state(folder))]
    file = cache_dir() / f"onnx-{folder.name}-{_digest(str(folder))}.json"
    record = _read(file)
    if record.get("state") == state:
        return built_once(name, cache_dir() / record["conversion"], build, say)
    content = state if is_adapter else [str(_EDITION), *map(_content, _files(folder))]
    place = built_once(name, cache_dir() / f"onnx-{folder.name}-{_digest(*content)}", build, say)
    with suppress(OSError):  # a read-only cache works
        atomic.write_text(file, json.dumps({"folder": str(folder), "conversion": place.name, "state": state}))
        _remove_unused(folder, record)
    return place


def _remove_unused(folder: Path, before: dict[str, Any]) -> None:
    """Remove the earlier conversion of a folder, if no record of a folder that exists names it."""
    records = [_read(file) for file in cache_dir().glob("onnx-*.json")]
    used = {one.get("conversion") for one in records if Path(one.get("folder", "")).is_dir()}
    if "conversion" in before and before["conversion"] not in used:
        shutil.rmtree(cache_dir() / before["conversion"], ignore_errors=True)
    for old in cache_dir().glob(f"onnx-*-{_digest(str(folder))}-*"):  # of versions without records
        shutil.rmtree(old, ignore_errors=True)


def _read(file: Path) -> dict[str, Any]:
    """Return a record; an empty one if there is none, or if it is damaged."""
    try:
        record = dict(json.loads(file.read_text("utf-8")))
        return record if record.keys() >= {"folder", "conversion", "state"} else {}
    except (OSError, ValueError, TypeError):
        return {}


def _state(folder: Path) -> list[str]:
    """Return the names, sizes and times of the files: any change of a file changes the last time."""
    found = [(file.name, file.stat()) for file in _files(folder)]
    return [f"{name} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns}" for name, state in found]


def _adapter_state(folder: Path) -> list[str]:
    """Return the content of an adapter's files, which are small, and the state of its base model."""
    own = [_content(file) for file in _files(folder) if file.suffix in (".json", ".jinja", ".safetensors")]
    base = name_of_base(folder)
    if source := registry.source_of(base):
        return [*own, base, str(source.edition)]
    place = base_folder(folder)
    return [*own, base, str(place.absolute()), *_state(place)]


def _content(file: Path) -> str:
    with file.open("rb") as stream:
        return f"{file.name} {hashlib.file_digest(stream, 'blake2b').hexdigest()}"


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file())


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
