"""Writing: a file is there whole or not at all, and the same content is the same bytes."""

import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO

from .document import Document


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes its place when all is written, and vanishes if that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o666 & ~_umask())  # mkstemp shuts others out
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def growing(path: Path) -> Iterator[TextIO]:
    """A file of lines that takes its place when all are written; those of a run that broke off stay in PATH.partial.

    What is no file of its own, such as a pipe or a link, is written to as it is.
    """
    at = place(path)
    with at.open("w" if at == path else "x", encoding="utf-8") as stream:
        try:
            yield stream
        except BaseException:
            if at != path and not stream.tell():
                at.unlink()
            raise
    if at != path:
        if path.exists():
            shutil.copymode(path, at)
        at.replace(path)


def place(path: Path) -> Path:
    """Where `growing` writes; an error if it cannot, or if a run that broke off has left something there."""
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {str(path.parent)!r} to write {path.name} to")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file to write to")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{path} cannot be written to: no permission")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return path
    partial = path.with_name(f"{path.name}.partial")
    if partial.exists():
        raise ValueError(f"{partial} was left by a run that broke off, or is being written; move or delete it first")
    return partial


def _umask() -> int:
    mask = os.umask(0)  # there is no other way to ask
    os.umask(mask)
    return mask


def write_jsonl(path: Path, rows: Iterable[dict[str, Any] | Document]) -> int:
    """One JSON object a line, gzip if the name ends in .gz; the number of rows."""
    count = 0
    with whole(path) as stream:
        # No name and no time in the gzip header.
        packed = gzip.GzipFile("", "wb", fileobj=stream, mtime=0) if path.suffix == ".gz" else stream
        for row in rows:
            count += 1
            row = row.row() if isinstance(row, Document) else row
            packed.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        if packed is not stream:
            packed.close()
    return count
