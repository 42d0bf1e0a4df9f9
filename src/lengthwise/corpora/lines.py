"""Lines of a text file, plain or gzip, one at a time.

The encoding is UTF-8, with or without a byte order mark. Only \\n and \\r\\n end a line; a form feed or U+2028 is part
of the text.
"""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .document import DataError

MAX_LINE = 1 << 26  # bytes; a file with a longer line is not a text corpus


@dataclass(frozen=True)
class Malformed:
    """A line that cannot be read as a document, and the reason."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


def lines(path: Path) -> Iterator[tuple[int, str | Malformed]]:
    """Yield each line with its number, from 1. A line that is not UTF-8, or too long, is malformed."""
    for number, raw in _raw_lines(path):
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if len(raw) >= MAX_LINE:
            yield number, Malformed(str(path), number, f"a line of more than {MAX_LINE >> 20} MiB")
            continue
        try:
            yield number, raw.removesuffix(b"\n").removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            found = raw[error.start : error.start + 4].hex(" ")
            yield number, Malformed(str(path), number, f"not UTF-8: bytes {found} after {error.start} others")


def well_formed_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line that is not blank with its number; raise at a malformed line."""
    for number, line in lines(path):
        if isinstance(line, Malformed):
            raise DataError(str(line))
        if line.strip():
            yield number, line


def count(path: Path) -> int:
    """Return the number of lines, including a last one without a line end."""
    return sum(1 for _ in _raw_lines(path))


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            while raw := stream.readline(MAX_LINE):
                number += 1
                yield number, raw
                while len(raw) == MAX_LINE and not raw.endswith(b"\n"):  # skip the rest of the line
                    raw = stream.readline(MAX_LINE)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"the gzip file {path} is damaged after line {number}: {error}; replace it") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
