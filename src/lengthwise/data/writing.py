"""Writing: a file is there whole or not at all, and the same content is the same bytes."""

import gzip
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

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
