"""Write JSON Lines files atomically, with the same bytes for the same rows."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import atomic
from .document import Document


def write_jsonl(path: Path, rows: Iterable[dict[str, Any] | Document]) -> int:
    """Write one JSON object per line, gzip if the name ends in .gz, and return the number of rows."""
    count = 0
    with atomic.file(path) as stream:
        # No name and no time in the gzip header, so that equal rows give equal bytes.
        packed = gzip.GzipFile("", "wb", fileobj=stream, mtime=0) if path.suffix == ".gz" else stream
        for row in rows:
            count += 1
            packed.write(json_line(row.row() if isinstance(row, Document) else row))
        if packed is not stream:
            packed.close()
    return count


def json_line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"
