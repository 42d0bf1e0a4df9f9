"""Row files: JSON Lines that a run appends to and that a resumed run continues.

OUT.jsonl            the rows; the first field is "id"
OUT.dropped.jsonl    what was left out, and why
OUT.settings.json    how the rows were made
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

from .. import atomic
from ..corpora.document import DataError
from ..corpora.writing import json_line
from ..settings_file import check_settings
from .prompts import Prompt

Row = dict[str, Any]
_ROW_START = b'{"id": '


class RowFiles:
    """The three files of a run. `kind`: what its rows are called in messages."""

    def __init__(self, out: Path, kind: str) -> None:
        stem = out.name.removesuffix(".jsonl")
        self.out, self.kind = out, kind
        self.dropped, self._settings = (out.with_name(f"{stem}.{end}") for end in ("dropped.jsonl", "settings.json"))

    def begin(self, settings: Mapping[str, Any], renamed: Mapping[str, str]) -> None:
        """Write the settings; raise `SettingsMismatch` if there are rows that were made with others."""
        if self.out.exists():
            check_settings(self._settings, settings, renamed=renamed)
        atomic.write_text(self._settings, json.dumps(dict(settings)) + "\n")

    def rows(self, path: Path, fields: Iterable[str]) -> Iterator[tuple[Row, int]]:
        """Yield each row and the offset of its end. A last row that is incomplete is not yielded."""
        if not path.exists():
            return
        end = 0
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                complete, row = line.endswith(b"\n"), None
                if not complete and _ROW_START.startswith(line[: len(_ROW_START)]):
                    return
                with suppress(ValueError):
                    row = json.loads(line) if complete else None
                if not isinstance(row, dict) or not set(fields) <= set(row):
                    shown = line[:60].decode("utf-8", "replace")
                    raise DataError(f"{path}:{number} is not a row of {self.kind}: {shown!r}; give another file")
                end += len(line)
                yield row, end

    def resume(self, path: Path, fields: Iterable[str], keep: Callable[[Row], bool] = lambda _: True) -> list[Row]:
        """Return the rows up to the first that `keep` refuses, and truncate the file after them."""
        found = list(takewhile(lambda item: keep(item[0]), self.rows(path, fields)))
        if path.exists():
            os.truncate(path, found[-1][1] if found else 0)
        return [row for row, _ in found]

    def known(
        self,
        path: Path,
        fields: tuple[str, ...],
        asked: Iterable[Prompt],
        what: str,
        kind: str,
        id_of: Callable[[str], str] = str,
    ) -> set[str]:
        """Return the ids in `path`; raise if the text of an id (the second of `fields`) differs from `asked`.

        `id_of`: the prompt's id, from that of a row.
        """
        found = {id_of(row["id"]): row[fields[1]] for row in self.resume(path, fields)}
        for prompt in asked:
            if found.get(prompt.id, prompt.text) != prompt.text:
                other = f"{path} has {what} as id {prompt.id!r}: asked for {prompt.text!r}, found {found[prompt.id]!r}"
                raise DataError(f"{other}; give another file for these {kind}")
        return set(found)


def append(stream: IO[bytes], rows: Iterable[Row]) -> None:
    stream.write(b"".join(map(json_line, rows)))
    stream.flush()
