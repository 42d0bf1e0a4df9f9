"""Models: from a name to a folder that transformers loads.

`resolve` looks for a local folder, a bundled model, a known model (made on first use, kept in the user's cache) and a
hub id, in this order. A known model is whole in the cache or not there: it is made beside its place, then renamed.
This file knows nothing of length, budgets or controls, and never decides how a model is loaded; it hands over a path.
"""

import difflib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from platformdirs import user_cache_dir

Say = Callable[[str], None]

BUNDLED = Path(__file__).parent / "bundled"
MANIFEST = "manifest.json"
_MARKS = ("config.json", "adapter_config.json", "lengthwise.json")  # one of these makes a folder a model
_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


class ModelNotFound(LookupError):
    """No folder can be given for a name; the text says what was tried and what to do."""


@dataclass(frozen=True)
class Source:
    """How a known model is made: `build(folder, say)` fills an empty folder, or raises and leaves the rest to us."""

    description: str
    licence: str
    download: int  # bytes
    build: Callable[[Path, Say], None]
    edition: int = 1  # part of the folder's name: raise it when `build` changes what it writes


@dataclass(frozen=True)
class Known:
    """One row of `lengthwise models`."""

    name: str
    description: str
    licence: str
    size: int  # bytes: on disk when it is here, to download when it is not
    where: Literal["bundled", "cached", "to fetch"]
    path: Path | None


def _print(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def cache_dir() -> Path:
    """Where known models are kept: $LENGTHWISE_CACHE, or the platform's cache folder."""
    return Path(os.environ.get("LENGTHWISE_CACHE") or user_cache_dir("lengthwise")).expanduser().absolute()


def known() -> list[Known]:
    """Every model that has a short name, bundled ones first."""
    rows = [
        Known(name, *_card(BUNDLED / name), _bytes(BUNDLED / name), "bundled", BUNDLED / name) for name in _bundled()
    ]
    for name, source in KNOWN.items():
        folder = _place(name)
        if name in _bundled():
            continue  # `resolve` would never reach it
        if _is_whole(folder):
            rows.append(Known(name, source.description, source.licence, _bytes(folder), "cached", folder))
        else:
            rows.append(Known(name, source.description, source.licence, source.download, "to fetch", None))
    return rows


# Resolving


def resolve(name: str, *, say: Say = _print) -> Path:
    """The folder of the model called `name`: a path, a bundled or known name, or a hub id such as owner/name."""
    path = Path(name).expanduser()
    if name and _is_model(path):  # Path("") is the current folder, and surely not what was meant
        return path.absolute()
    if _looks_like_path(name):
        raise ModelNotFound(_no_model_at(name, path.absolute()))
    if name.lower() in _bundled():
        return BUNDLED / name.lower()
    if name.lower() in KNOWN:
        return _from_cache(name.lower(), say)
    tried = [
        f"a local folder: {_why_not(path.absolute())}",
        f"the bundled models: {', '.join(_bundled()) or 'none in this version'}",
        f"the known models: {', '.join(KNOWN)}",
    ]
    if _HUB_ID.fullmatch(name):
        return _from_hub(name, tried, say)
    raise ModelNotFound(_text(name, tried, f"{_nearest(name)} A hub model is written owner/name"))


def _is_model(folder: Path) -> bool:
    return folder.is_dir() and any((folder / mark).is_file() for mark in _MARKS)


def _looks_like_path(name: str) -> bool:
    return not name or name.startswith((".", "~")) or Path(name).is_absolute() or "\\" in name or name.count("/") > 1


def _why_not(path: Path) -> str:
    if path.is_dir():
        return f"{path} holds no model (none of {', '.join(_MARKS)})"
    return f"{path} is a file" if path.exists() else f"{path} does not exist"


def _no_model_at(name: str, path: Path) -> str:
    return (
        f"no model at {name!r}: {_why_not(path)}.\n"
        f"What to do: give a folder that save_pretrained or lengthwise wrote, one of {_short_names()}, or a hub id."
    )


def _short_names() -> str:
    return ", ".join(dict.fromkeys([*_bundled(), *KNOWN]))


def _nearest(name: str) -> str:
    """The wish behind a misspelt name, or every short name there is."""
    near = difflib.get_close_matches(name.lower(), dict.fromkeys([*_bundled(), *KNOWN]), cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"use one of {_short_names()}."


def _text(name: str, tried: list[str], advice: str) -> str:
    steps = "".join(f"\n  {number}. {step}" for number, step in enumerate(tried, 1))
    return f"no model called {name!r}. Tried, in order:{steps}\nWhat to do: {advice}."


def _bundled() -> list[str]:
    return sorted(folder.name for folder in BUNDLED.glob("*") if _is_model(folder))


def _card(folder: Path) -> tuple[str, str]:
    """What a model is, and its licence: the title and the front matter of its README, a card as the hub has them."""
    import yaml  # type: ignore[import-untyped]

    try:
        _, matter, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
        about = yaml.safe_load(matter)
        title = next(line for line in text.splitlines() if line.startswith("# "))
        return title.removeprefix("# "), about.get("license_name") or about["license"]
    except (OSError, ValueError, StopIteration, KeyError, AttributeError, yaml.YAMLError):
        return "ships with Lengthwise", "see its folder"  # a licence that is guessed is worse than none


# The hub

# Top-level files only: what from_pretrained(folder) reads. Copies for other frameworks can weigh ten times the model.
_SMALL = ["*.json", "*.txt", "*.model", "*.spm", "*.jinja", "*.tiktoken"]
_WEIGHTS = ("model.safetensors", "adapter_model.safetensors", "pytorch_model.bin", "adapter_model.bin")


def _from_hub(name: str, tried: list[str], say: Say) -> Path:
    try:
        return _snapshot(name, local=True)
    except Exception as error:  # the hub's many errors have no common parent; each is told to the user
        tried.append(f"the hub's cache on this machine: {_first_line(error)}")
    try:
        say(f"fetching {name} from the hub ...")
        return _snapshot(name, local=False)
    except Exception as error:
        tried.append(f"the hub: {_first_line(error)}")
        offline = " (HF_HUB_OFFLINE is set)" if os.environ.get("HF_HUB_OFFLINE") else ""
        advice = (
            f"check the spelling and the network{offline}; a private or gated model needs `hf auth login`; "
            "without a network, copy the model's folder here and give its path"
        )
        raise ModelNotFound(_text(name, tried, advice)) from error


def _snapshot(name: str, *, local: bool) -> Path:
    from huggingface_hub import snapshot_download

    # Older repositories have no safetensors; asking for both at once would fetch most models twice.
    for weights in (["*.safetensors"], ["pytorch_model*.bin", "adapter_model.bin"]):
        found = snapshot_download(
            name, allow_patterns=[*_SMALL, *weights], ignore_patterns=["*/*"], local_files_only=local
        )
        if _has_weights(Path(found)):
            return Path(found)
    raise FileNotFoundError(f"{found} holds no complete weights (safetensors or pytorch_model.bin)")


def _has_weights(folder: Path) -> bool:
    """Is there one complete set? transformers, asked only for a config, leaves a snapshot without weights."""
    for index in folder.glob("*.index.json"):
        shards = json.loads(index.read_text(encoding="utf-8")).get("weight_map", {}).values()
        if shards and all((folder / shard).is_file() for shard in set(shards)):
            return True
    return any((folder / weights).is_file() for weights in _WEIGHTS)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "").removeprefix("Got: ") or type(error).__name__


# The cache of known models


def _place(name: str) -> Path:
    return cache_dir() / f"{name}-{KNOWN[name].edition}"


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _write_manifest(folder: Path) -> None:
    sizes = {f.relative_to(folder).as_posix(): f.stat().st_size for f in sorted(folder.rglob("*")) if f.is_file()}
    (folder / MANIFEST).write_text(json.dumps(sizes, indent=1), encoding="utf-8")


def _is_whole(folder: Path) -> bool:
    """Every file of the manifest is there in its size. (Not hashed: this runs at every start.)"""
    try:
        sizes: dict[str, int] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return all((folder / file).stat().st_size == size for file, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def _from_cache(name: str, say: Say) -> Path:
    place = _place(name)
    if _is_whole(place):  # needs no lock, so a read-only cache works
        return place
    with _locked(name, place, say):
        if not _is_whole(place):  # else the process we waited for has made it
            _make(name, place, say)
    return place


@contextmanager
def _locked(name: str, place: Path, say: Say) -> Iterator[None]:
    lock = FileLock(place.parent / f".{place.name}.lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            say(f"waiting for another process that is making {name} ...")
            lock.acquire()
    except OSError as error:
        raise ModelNotFound(
            f"{name!r} is made on first use, but the cache folder {place.parent} cannot be written: {error}.\n"
            "What to do: set LENGTHWISE_CACHE to a folder that can."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _make(name: str, place: Path, say: Say) -> None:
    """Build in a sibling folder, then rename. Holding the lock, any other sibling is a killed process's litter."""
    for litter in place.parent.glob(f".{place.name}-*.tmp"):
        shutil.rmtree(litter, ignore_errors=True)
    if place.exists():
        say(f"{name} in {place} is damaged; making it again")
    work = Path(tempfile.mkdtemp(prefix=f".{place.name}-", suffix=".tmp", dir=place.parent))
    try:
        fresh = work / "model"  # not `work` itself: mkdtemp shuts others out, and a cache may be shared
        fresh.mkdir()
        KNOWN[name].build(fresh, say)
        _write_manifest(fresh)
        with suppress(FileNotFoundError):
            os.replace(place, work / "damaged")  # a folder cannot be renamed onto a full one
        os.replace(fresh, place)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _smollm2(folder: Path, say: Say) -> None:
    from .smollm2 import build

    build(folder, say)


KNOWN: dict[str, Source] = {
    "smollm2-plain": Source("SmolLM2-135M-Instruct, English, 4-bit weights", "Apache-2.0", 92_871_040, _smollm2),
}
