"""The journal of a long run: its finished windows on disk, which keep memory small and let a killed run be resumed.

The first line has the settings of the run. Each further line has the JSON rows of one window, or what has been found of
a window that is not finished: an object that begins with "found". A file that begins otherwise is not a journal and is
never changed.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from ..settings_file import changed_settings

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Row = dict[str, Any]
_KIND = {"lengthwise": "journal"}
_BEGIN = json.dumps(_KIND).encode()[:-1]
_FOUND = b'{"found": '
_DIGESTS = {"document": "the text has changed", "lines": "the lines have changed"}  # settings that are digests


def is_journal(path: Path) -> bool:
    """Return whether there is a file that begins as journals do."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(_BEGIN)) == _BEGIN


class Journal:
    """A file at `path`, or a temporary one. The rows of an earlier run with the same settings are kept.

    `alone`: raise if another run has the file open, on systems that can tell. `option`: where the user names the file.
    """

    def __init__(self, path: Path | None, settings: Row, *, alone: bool = False, option: str = "--out") -> None:
        if path is not None and path.exists() and path.stat().st_size and not is_journal(path):
            found = f"{path} is needed for the journal, but it is another file"
            raise ValueError(f"{found}; rename it, or give another {option}")
        self._path, self._option, settings = path, option, _KIND | settings
        self._stream: IO[bytes] = tempfile.TemporaryFile() if path is None else path.open("a+b")  # noqa: SIM115
        if alone:
            self._lock()
        self.windows = self._lines = end = 0
        self.found: list[Any] = []  # what an earlier run has found of the window that it did not finish
        self._stream.seek(0)
        while (line := self._stream.readline()).endswith(b"\n"):
            if not end:
                self._check(json.loads(line), settings)
            elif line.startswith(_FOUND):
                self.found.append(json.loads(line)["found"])
            else:
                self.windows, self.found = self.windows + 1, []
            self._lines, end = self._lines + 1, end + len(line)
        self._stream.truncate(end)  # the run was killed while it wrote the last line
        if not end:
            self._write(settings)

    def _lock(self) -> None:
        """Raise if another run has the file. The lock ends when the file is closed, also if the run is killed."""
        if fcntl is None:
            return
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._stream.close()
            found = f"another run writes to {self._path}"
            raise ValueError(f"{found}; wait for its end, or name another {self._option}") from None
        except OSError:  # a file system without locks
            pass

    def _check(self, before: Row, now: Row) -> None:
        changed = changed_settings(before, now)
        if changed and self._path is not None:
            listed = "; ".join(_difference(name, *values) for name, values in changed.items())
            found = f"{self._path} is from an interrupted run with other settings ({listed})"
            raise ValueError(f"{found}; repeat those settings, name another {self._option}, or delete the file")

    def _write(self, value: Any) -> None:
        self._stream.seek(0, 2)
        self._stream.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")
        self._stream.flush()
        self._lines += 1

    def append(self, window: list[Row]) -> None:
        self._write(window)
        self.windows += 1

    def keep(self, found: Any) -> None:
        """Write what has been found of a window that is not finished."""
        self._write({"found": found})

    def stored(self) -> Iterator[list[Row]]:
        """Return the windows in the order in which they were finished."""
        self._stream.seek(0)
        next(self._stream)
        return (_window(line) for line in islice(self._stream, self._lines - 1) if not line.startswith(_FOUND))

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all sentences in order; raise if one is not in its place."""
        for number, row in enumerate(chain.from_iterable(self.stored()), 1):
            if row.get("sentence") != number:
                raise self.lacks(number)
            yield row

    def lacks(self, number: int) -> ValueError:
        """Return the error for a sentence that has no row."""
        found = f"{self._path or 'the journal'} does not have sentence {number} in its place"
        return ValueError(f"{found}: several runs wrote to it; delete it, and run one of them again")

    def unlink(self) -> None:
        """Delete the file. Its rows can still be read."""
        if self._path is not None:
            with suppress(PermissionError):  # Windows cannot delete an open file
                self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file, so that another run can resume from it."""
        self._stream.close()


def _difference(name: str, before: Any, now: Any) -> str:
    """Return how a setting differs.

    >>> _difference("budget", "", "1.0x chars")
    "length: none, now '1.0x chars'"
    """
    if name in _DIGESTS:
        return _DIGESTS[name]
    first, second = (repr(value) if value else "none" for value in (before, now))
    return f"{'length' if name == 'budget' else name.replace('_', ' ')}: {first}, now {second}"


def _window(line: bytes) -> list[Row]:
    """Return the rows of a line, or an empty one if runs that wrote at the same time have damaged it."""
    try:
        rows = json.loads(line)
    except ValueError:
        return [{}]
    return rows if isinstance(rows, list) else [{}]
