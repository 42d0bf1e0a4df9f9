"""The user's cache of models: a model in it is complete or absent, never partial.

A model is built beside its place under a lock, then renamed. A manifest lists its files and their sizes.
"""

import json
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from platformdirs import user_cache_dir

from .. import atomic
from ..errors import ModelNotFound

Say = Callable[[str], None]
Build = Callable[[Path, Say], None]  # fills an empty folder, or raises
MANIFEST = "manifest.json"


def cache_dir() -> Path:
    """Return the folder of the cache: $LENGTHWISE_CACHE, or one in the platform's cache folder."""
    return Path(os.environ.get("LENGTHWISE_CACHE") or user_cache_dir("lengthwise")).expanduser().absolute()


def is_complete(folder: Path) -> bool:
    """Return whether every file of the manifest has its size. (No hashes: this runs at every start.)"""
    try:
        sizes: dict[str, int] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return all((folder / file).stat().st_size == size for file, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def built_once(name: str, place: Path, build: Build, say: Say) -> Path:
    """Return `place`, the folder of the model called `name`, after building it if it is not complete."""
    if is_complete(place):  # before the lock: a read-only cache works
        return place
    with _locked(name, place, say):
        if is_complete(place):  # the process that held the lock has built it
            return place
        for left_over in place.parent.glob(f".{place.name}-*.tmp"):  # of killed processes: this one holds the lock
            shutil.rmtree(left_over, ignore_errors=True)
        if place.exists():
            say(f"{name} in {place} is damaged; making it again")
        with atomic.folder(place, partial=place.with_name(f".{place.name}-{os.getpid()}.tmp")) as fresh:
            build(fresh, say)
            sizes = {f.relative_to(fresh).as_posix(): f.stat().st_size for f in sorted(fresh.rglob("*")) if f.is_file()}
            (fresh / MANIFEST).write_text(json.dumps(sizes, indent=1), encoding="utf-8")
    return place


def _locked(name: str, place: Path, say: Say) -> AbstractContextManager[object]:
    """Acquire the lock of `place` and return it; it is released at the end of a `with` block."""
    from filelock import FileLock, Timeout  # here: a complete model needs no lock

    lock = FileLock(place.parent / f".{place.name}.lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            return lock.acquire(timeout=0)
        except Timeout:
            say(f"waiting for another process that is making {name} ...")
            return lock.acquire()
    except OSError as error:
        problem = f"{name!r} is made on first use, but the cache folder {place.parent} cannot be written: {error}."
        raise ModelNotFound(name, problem, "set LENGTHWISE_CACHE to a folder that can be written.") from error
