"""The folder of an evaluation: its settings, its outputs, its report.

  settings.json   what the outputs depend on            scores.json, scores.md   the report
  outputs.jsonl   one text a line, there whole or not   plots/*.png, *.svg
What was decoded before a run broke off is in outputs.partial.jsonl. This file does not know how outputs are made.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..corpora import write_jsonl
from ..corpora.writing import whole
from .report import Report, as_markdown, as_plain, save_plots

Output = dict[str, Any]  # a line of outputs.jsonl
Key = tuple[str, ...]


def key_of(row: Output) -> Key:
    """What makes two rows the same to decode."""
    return row["id"], row["source"], row["reference"], row["budget"]


class Folder:
    """Where an evaluation is kept."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = self.path.absolute().name
        self._outputs, self._partial = self.path / "outputs.jsonl", self.path / "outputs.partial.jsonl"

    def known(self, settings: Mapping[str, Any]) -> dict[Key, Output]:
        """What was decoded here before, if it was with these settings; an error if it was with others."""
        file, files = self.path / "settings.json", (self._outputs, self._partial)
        if not file.exists():
            if any(path.exists() for path in files):
                raise ValueError(f"{self.path} has outputs but no settings.json that says of what; choose another")
            self._write(file.name, json.dumps(settings, indent=2, ensure_ascii=False))
            return {}
        before = json.loads(file.read_text("utf-8"))
        unlike = [name for name in settings if before.get(name) != settings[name]]
        if unlike:
            found = ", ".join(f"{name} {before.get(name)!r}, now {settings[name]!r}" for name in unlike)
            raise ValueError(
                f"{self.path} holds an evaluation with other settings ({found}); choose another folder or delete it"
            )
        rows = [row for path in files if path.exists() for row in _lines(path, torn=True)]
        return {key_of(row): row for row in rows if "error" not in row}

    def add(self, outputs: Sequence[Output]) -> None:
        """Put these on disk: if the run breaks off, they need not be decoded again."""
        with self._partial.open("a+b") as stream:
            # A run that broke off in the middle of a line must not swallow the first of ours.
            if stream.tell():
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":
                    stream.write(b"\n")
            stream.writelines(json.dumps(output, ensure_ascii=False).encode() + b"\n" for output in outputs)

    def finish(self, outputs: Sequence[Output], known: Mapping[Key, Output]) -> None:
        """outputs.jsonl has what was asked for; what a run with a higher limit decoded is kept beside it."""
        write_jsonl(self._outputs, outputs)
        asked = {key_of(row) for row in outputs}
        if spare := [row for key, row in known.items() if key not in asked]:
            write_jsonl(self._partial, spare)
        else:
            self._partial.unlink(missing_ok=True)

    def paired(self, outputs: Sequence[Output]) -> list[Output]:
        """The outputs here, which must be of the same texts as these."""
        if not self._outputs.exists():
            raise ValueError(f"no finished evaluation in {self.path}: there is no {self._outputs.name}")
        others = list(_lines(self._outputs))
        if len(others) != len(outputs):
            found = f"{self.path} has {len(others)} texts and this evaluation {len(outputs)}"
            raise ValueError(f"a paired test needs the same texts; {found}")
        for number, (a, b) in enumerate(zip(others, outputs, strict=True), 1):
            if (a["source"], a["reference"]) != (b["source"], b["reference"]):
                found = f"row {number} is {a['source']!r:.60} there and {b['source']!r:.60} here"
                raise ValueError(f"a paired test needs the same texts; of {self.path}, {found}")
        return others

    def save(self, report: Report) -> None:
        """The report, for people, programs and eyes."""
        plots = [path for path in save_plots(report, self.path / "plots") if path.suffix == ".png"]
        pictures = "".join(f"![{path.stem}](plots/{path.name})\n" for path in plots)
        self._write("scores.json", json.dumps(as_plain(report), indent=2, ensure_ascii=False))
        self._write("scores.md", f"{as_markdown(report)}\n{pictures}")

    def _write(self, name: str, text: str) -> None:
        with whole(self.path / name) as stream:
            stream.write(text.rstrip().encode() + b"\n")


def _lines(path: Path, *, torn: bool = False) -> Iterator[Output]:
    """The rows of a file; with `torn`, a line that a broken run left unfinished is passed over."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except ValueError:
                if not torn:
                    raise ValueError(f"{path} is damaged in line {number}: not JSON; evaluate again") from None
