"""The folder of an evaluation: its settings, its outputs, its report.

settings.json   what the outputs depend on                  scores.json, scores.md   the report
outputs.jsonl   one text per line, of a finished run        plots/*.png, *.svg
outputs.partial.jsonl   the outputs of an interrupted run
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import atomic
from ..corpora import write_jsonl
from ..settings_file import SettingsMismatch, check_settings
from .report import Report, as_markdown, as_plain, save_plots

Output = dict[str, Any]  # a line of outputs.jsonl
Key = tuple[str, ...]


def key_of(row: Output) -> Key:
    """Return what identifies a row: rows with equal keys have the same output."""
    return row["id"], row["source"], row["reference"], row["budget"]


class Folder:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = self.path.absolute().name
        self._outputs, self._partial = self.path / "outputs.jsonl", self.path / "outputs.partial.jsonl"

    def known(self, settings: Mapping[str, Any]) -> dict[Key, Output]:
        """Return the outputs decoded here before; raise if they were decoded with other settings."""
        file, files = self.path / "settings.json", (self._outputs, self._partial)
        if not file.exists():
            if any(path.exists() for path in files):
                raise ValueError(f"{self.path} has outputs but no settings.json; choose another folder or delete it")
            self._write(file.name, json.dumps(settings, indent=2, ensure_ascii=False))
            return {}
        try:
            check_settings(file, settings)
        except SettingsMismatch as error:
            found = f"{self.path} holds an evaluation with other settings ({error.listed})"
            raise ValueError(f"{found}; choose another folder or delete it") from None
        rows = [row for path in files if path.exists() for row in _lines(path, partial=True)]
        return {key_of(row): row for row in rows if "error" not in row}

    def add(self, outputs: Sequence[Output]) -> None:
        """Save these outputs, so that an interrupted run can resume."""
        with self._partial.open("a+b") as stream:
            # An interrupted run may have left an incomplete line: start a new one.
            if stream.tell():
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":
                    stream.write(b"\n")
            stream.writelines(json.dumps(output, ensure_ascii=False).encode() + b"\n" for output in outputs)

    def finish(self, outputs: Sequence[Output], known: Mapping[Key, Output]) -> None:
        """Write outputs.jsonl. Other known outputs, of a run with a higher limit, are kept in outputs.partial.jsonl."""
        write_jsonl(self._outputs, outputs)
        asked = {key_of(row) for row in outputs}
        if spare := [row for key, row in known.items() if key not in asked]:
            write_jsonl(self._partial, spare)
        else:
            self._partial.unlink(missing_ok=True)

    def paired(self, outputs: Sequence[Output]) -> list[Output]:
        """Return the outputs of this folder; raise if they are not of the same texts as `outputs`."""
        if not self._outputs.exists():
            raise ValueError(f"{self.path} has no finished evaluation: {self._outputs.name} is missing")
        others, same = list(_lines(self._outputs)), "a paired test needs the same texts"
        if len(others) != len(outputs):
            raise ValueError(f"{same}; {self.path} has {len(others)} and this evaluation {len(outputs)}")
        for number, (a, b) in enumerate(zip(others, outputs, strict=True), 1):
            if (a["source"], a["reference"]) != (b["source"], b["reference"]):
                found = f"row {number} of {self.path} is {a['source']!r:.60}, and here {b['source']!r:.60}"
                raise ValueError(f"{same}; {found}")
        return others

    def save(self, report: Report) -> None:
        """Save the report as JSON, as Markdown and as plots."""
        plots = [path for path in save_plots(report, self.path / "plots") if path.suffix == ".png"]
        pictures = "".join(f"![{path.stem}](plots/{path.name})\n" for path in plots)
        self._write("scores.json", json.dumps(as_plain(report), indent=2, ensure_ascii=False))
        self._write("scores.md", f"{as_markdown(report)}\n{pictures}")

    def _write(self, name: str, text: str) -> None:
        atomic.write_text(self.path / name, text.rstrip() + "\n")


def _lines(path: Path, *, partial: bool = False) -> Iterator[Output]:
    """Yield the rows of a file. With `partial`, incomplete lines are skipped."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except ValueError:
                if not partial:
                    raise ValueError(f"{path}, line {number} is not JSON; evaluate again") from None
