"""Lines: from a file, plain or gzip, to its lines of text, one at a time.

UTF-8 with or without a byte order mark; lines end in \\n or \\r\\n, and in nothing else: a form feed or U+2028
within a text is a character, as it was for whoever wrote the file. Knows nothing of what the lines hold.
"""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from .document import DataError

LONGEST = 1 << 26  # bytes; a longer "line" is a file of another kind, and would fill the memory


@dataclass(frozen=True)
class Malformed:
    """A row that makes no document, and why."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


def lines(path: Path) -> Iterator[tuple[int, str | Malformed]]:
    """The lines and their numbers, from 1; one that is not UTF-8, or endless, is malformed."""
    for number, raw in _raw(path):
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if len(raw) >= LONGEST:
            yield number, Malformed(str(path), number, f"a line of more than {LONGEST >> 20} MiB")
            continue
        try:
            yield number, raw.removesuffix(b"\n").removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            found = raw[error.start : error.start + 4].hex(" ")
            yield number, Malformed(str(path), number, f"not UTF-8: bytes {found} after {error.start} others")


def count(path: Path) -> int:
    """How many lines there are; a last one without an end counts."""
    return sum(1 for _ in _raw(path))


def _raw(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        with _open(path) as stream:
            while raw := stream.readline(LONGEST):
                number += 1
                yield number, raw
                while len(raw) == LONGEST and not raw.endswith(b"\n"):  # let the rest of it pass
                    raw = stream.readline(LONGEST)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path} is not a whole gzip file (after line {number}): {error}; fetch or make it again"
        ) from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")
