"""The journal of a document: its translated windows on disk, which keep memory small and let a killed run be resumed.

The first line has the settings of the run. Each further line has the JSON rows of one window.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from ..settings_file import SettingsMismatch

Row = dict[str, Any]


class Journal:
    """A file at `path`, or a temporary one. The rows of an earlier run with the same settings are kept."""

    def __init__(self, path: Path | None, settings: Row) -> None:
        self._path = path
        self._stream: IO[bytes] = tempfile.TemporaryFile() if path is None else path.open("a+b")  # noqa: SIM115
        lines, end = -1, 0
        self._stream.seek(0)
        while (line := self._stream.readline()).endswith(b"\n"):
            if lines < 0:
                self._check(json.loads(line), settings)
            lines, end = lines + 1, end + len(line)
        self._stream.truncate(end)  # the run was killed while it wrote the last line
        self.windows = max(0, lines)
        if not end:
            self._write(settings)

    def _check(self, before: Row, now: Row) -> None:
        changed = {
            name: (before.get(name), now.get(name)) for name in now | before if before.get(name) != now.get(name)
        }
        if changed and self._path is not None:
            raise SettingsMismatch(self._path, changed)

    def _write(self, value: Any) -> None:
        self._stream.seek(0, 2)
        self._stream.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")
        self._stream.flush()

    def append(self, window: list[Row]) -> None:
        self._write(window)
        self.windows += 1

    def rows(self) -> Iterator[Row]:
        self._stream.seek(0)
        next(self._stream)
        for line in self._stream:
            yield from json.loads(line)

    def unlink(self) -> None:
        """Delete the file. Its rows can still be read."""
        if self._path is not None:
            with suppress(PermissionError):  # Windows cannot delete an open file
                self._path.unlink(missing_ok=True)
