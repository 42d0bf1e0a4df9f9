"""Models: from a name to a folder that transformers loads.

`resolve` searches a local folder, a bundled model, a known model (built on first use, kept in the user's cache) and the
hub, in this order. It returns a path; `checkpoint.py` loads the model.
"""

import difflib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..errors import ModelNotFound
from . import smollm2
from .cache import Build, Say, built_once, cache_dir, is_complete
from .hub import from_hub

if TYPE_CHECKING:
    from .conversion.llama import Llama

BUNDLED = Path(__file__).parent / "bundled"
_MARKS = ("config.json", "adapter_config.json", "lengthwise.json", "onnx.json")  # one of these makes a folder a model
_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


class Convert(Protocol):
    """Fills an empty folder with the graph of the onnx engine. `change`: of the weights, before they are written."""

    def __call__(self, folder: Path, say: Say, change: "Callable[[Llama], Llama] | None" = None, /) -> None: ...


@dataclass(frozen=True)
class Source:
    """How a known model is made."""

    description: str
    licence: str
    download: int  # bytes
    build: Build
    convert: Convert | None = None  # None: the model cannot be converted
    gguf: Build | None = None  # fetches a GGUF file and its chat template; None: there is none
    edition: int = 1  # part of the folder's name: raise it when `build` or `convert` changes what it writes


@dataclass(frozen=True)
class Known:
    """One row of `lengthwise models`."""

    name: str
    description: str
    licence: str
    size: int  # bytes: on disk, or to download if it is not
    where: Literal["bundled", "cached", "to fetch"]
    path: Path | None
    needs: str | None = None  # the model whose weights it uses


def known() -> list[Known]:
    """Return every model that has a short name, bundled ones first."""
    bundled = [BUNDLED / name for name in _bundled()]
    rows = [Known(one.name, *_card(one), _bytes(one), "bundled", one, _base(one)) for one in bundled]
    for name, source in KNOWN.items():
        if name in _bundled():
            continue  # `resolve` finds the bundled one
        if is_complete(folder := _place(name)):
            rows.append(Known(name, source.description, source.licence, _bytes(folder), "cached", folder))
        else:
            rows.append(Known(name, source.description, source.licence, source.download, "to fetch", None))
    return rows


def has_short_name(name: str) -> bool:
    """Return whether `known` lists a model of this name. No file of a model is read."""
    return name in _bundled() or name in KNOWN


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def resolve(name: str, *, say: Say = say) -> Path:
    """Return the folder of the model called `name`: a path, a bundled or known name, or a hub id such as owner/name."""
    path, short = Path(name).expanduser(), name.lower()
    if (local := local_model(name)) is not None:
        return local
    if _looks_like_path(name):
        names = ", ".join(_short_names())
        advice = f"give a folder that save_pretrained or lengthwise wrote, one of {names}, or a hub id."
        raise ModelNotFound(name, f"no model at {name!r}: {_why_not(path.absolute())}.", advice)
    if short in _bundled():
        return BUNDLED / short
    if short in KNOWN:
        return built_once(short, _place(short), KNOWN[short].build, say)
    tried = [
        ("a local folder", _why_not(path.absolute())),
        ("the bundled models", ", ".join(_bundled()) or "none in this version"),
        ("the known models", ", ".join(KNOWN)),
    ]
    if _HUB_ID.fullmatch(name):
        return from_hub(name, tried, say)
    advice = f"{_nearest(name)} A hub model is written owner/name."
    raise ModelNotFound(name, f"no model called {name!r}.", advice, tried)


def is_on_hub(name: str) -> bool:
    """Return whether `resolve` would look for the model on the hub. Nothing is fetched."""
    return local_model(name) is None and not _looks_like_path(name) and _HUB_ID.fullmatch(name) is not None


def converted(name: str, *, say: Say = say) -> Path | None:
    """Return the folder of the known model called `name`, converted for the onnx engine; None for other models."""
    known = source_of(name)
    return None if known is None else _made_for("onnxruntime", "onnx", name.lower(), known.convert, say)


def gguf(name: str, *, say: Say = say) -> Path | None:
    """Return the folder with the GGUF file of the known model called `name`; None for other models."""
    known = source_of(name)
    return None if known is None else _made_for("llama.cpp", "gguf", name.lower(), known.gguf, say)


def source_of(name: str) -> Source | None:
    """Return how the known model called `name` is made; None if `resolve` would find another model, or none."""
    short = name.lower()
    return None if local_model(name) or short in _bundled() else KNOWN.get(short)


def _made_for(runtime: str, suffix: str, short: str, build: Build | None, say: Say) -> Path | None:
    place = _place(short)
    return build and built_once(f"{short} for {runtime}", place.with_name(f"{place.name}-{suffix}"), build, say)


def local_model(name: str) -> Path | None:
    """Return the folder `name` if it holds a model."""
    path = Path(name).expanduser()
    return path.absolute() if name and _is_model(path) else None  # Path("") would be the current folder


def _is_model(folder: Path) -> bool:
    return folder.is_dir() and any((folder / mark).is_file() for mark in _MARKS)


def _looks_like_path(name: str) -> bool:
    return not name or name.startswith((".", "~")) or Path(name).is_absolute() or "\\" in name or name.count("/") > 1


def _why_not(path: Path) -> str:
    if path.is_dir():
        return f"{path} holds no model (none of {', '.join(_MARKS)})"
    return f"{path} is a file" if path.exists() else f"{path} does not exist"


def _short_names() -> list[str]:
    return list(dict.fromkeys([*_bundled(), *KNOWN]))


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), _short_names(), cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"use one of {', '.join(_short_names())}."


def _bundled() -> list[str]:
    return sorted(folder.name for folder in BUNDLED.glob("*") if _is_model(folder))


def good_for(name: str) -> str | None:
    """Return what the bundled model called `name` is good for, if its card says so."""
    card = BUNDLED / name.lower() / "README.md"
    if name.lower() not in _bundled() or "\ngood_for:" not in card.read_text(encoding="utf-8"):  # parsing takes time
        return None
    return str(_about(card.parent)[0]["good_for"])


def _card(folder: Path) -> tuple[str, str]:
    """Return a model's title and its licence."""
    about, text = _about(folder)
    title = next((line for line in text.splitlines() if line.startswith("# ")), None)
    licence = about.get("license_name") or about.get("license")
    if title is None or licence is None:
        return "ships with Lengthwise", "see its folder"  # a wrong licence would be worse than none
    return title.removeprefix("# "), licence


def _base(folder: Path) -> str | None:
    """Return the name of the model that a folder without weights needs."""
    file = folder / "lengthwise.json"
    found = json.loads(file.read_text("utf-8")).get("base_model") if file.exists() else None
    return None if found is None else str(found)


def _about(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the settings and the text of a model's README: a model card as the hub has them."""
    import yaml  # type: ignore[import-untyped]

    try:
        _, matter, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
        return dict(yaml.safe_load(matter)), text
    except (OSError, ValueError, TypeError, yaml.YAMLError):
        return {}, ""


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


# ---- known models


def _place(name: str) -> Path:
    return cache_dir() / f"{name}-{KNOWN[name].edition}"


KNOWN: dict[str, Source] = {
    "smollm2-plain": Source(
        "SmolLM2-135M-Instruct, English, 4-bit weights",
        "Apache-2.0",
        92_871_040,
        smollm2.build,
        smollm2.convert,
        smollm2.keep_gguf,
    )
}
