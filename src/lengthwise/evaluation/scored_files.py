"""Texts to score, read from files: hypotheses, references and sources, as lines or as JSON Lines.

Row n of each file belongs to row n of the others. JSON Lines can also hold sources, references and budgets.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..corpora.lines import Malformed, lines
from ..length.budget import as_budget
from ..metrics import Texts
from ..metrics.tally import Tally
from .report import VERDICTS, short_names, verdicts
from .target_length import TargetLength

Row = dict[str, Any]
Length = TargetLength | None  # None: the budgets of the rows
Warn = Callable[[str], None]


class TokenizerNeeded(ValueError):
    """Lengths are in tokens, but there is no tokenizer and the rows have no token counts."""


@dataclass(frozen=True)
class System:
    """The texts of one system, and the rows that they were read from."""

    file: Path
    name: str  # short, for legends
    texts: Texts
    rows: list[Row]

    def verdicts(self, metrics: Sequence[str] | None) -> dict[str, Tally]:
        """Return the tallies of `verdicts` (complete, runaway), or of those among `metrics`."""
        return {name: tally for name, tally in verdicts(self.rows).items() if name in (metrics or VERDICTS)}

    def title(self, data: Path | None, length: TargetLength | None) -> str:
        """Return the title of a report: system, data and length; or the title that an evaluation saved."""
        scores = self.file.with_name("scores.json")
        if self.file.name == "outputs.jsonl" and scores.exists() and length is None:
            return json.loads(scores.read_text("utf-8")).get("title", str(self.file))
        models, budgets = (sorted({str(row.get(name) or "") for row in self.rows}) for name in ("model", "budget"))
        system = f"{models[0]} ({self.file})" if len(models) == 1 and models[0] else str(self.file)
        asked = str(length) if length else budgets[0] if len(budgets) == 1 else "several lengths"
        return f"{system}{f' on {data}' if data else ''}{f', {asked}' if asked else ''}"


def read_systems(
    paths: Sequence[Path], refs: Sequence[Path], src: Path | None, length: Length, tokenizer: Any, warn: Warn
) -> list[System]:
    """Return the systems in `paths`, each a file or the folder of an evaluation, with references and sources.

    `length`: the budget of all texts; None: the budgets of the rows. Rows whose source and texts are all empty are
    skipped, because they have no length ratio. `warn` is called with each warning.
    """
    files = [path / "outputs.jsonl" if path.is_dir() else path for path in paths]
    systems = [_read(file) if length else _with_budgets(file, _read(file)) for file in files]
    columns = [_read_column(path, "reference") for path in refs]
    sources = _read_column(src, "source") if src else _field(systems[0], "source")
    for path, column in zip([*refs, src, *files], [*columns, sources, *systems], strict=True):
        if path and column is not None and len(column) != len(systems[0]):
            sizes = f"{files[0]} has {len(systems[0])} texts and {path} has {len(column)}"
            raise ValueError(f"{sizes}; they must be equally many")
    references: Sequence[Any] | None = list(zip(*columns, strict=True)) if refs else _field(systems[0], "reference")
    if length is None:
        _check_same_budgets(files, systems)
    if empty := {n for n, source in enumerate(sources or []) if _is_empty(source, [rows[n] for rows in systems])}:
        warn(f"{len(empty)} of {len(systems[0])} rows have no source and no text; they are skipped")
        kept = [n for n in range(len(systems[0])) if n not in empty]
        sources, references = sources and [sources[n] for n in kept], references and [references[n] for n in kept]
        systems = [[rows[n] for n in kept] for rows in systems]
    for file, rows in zip(files, systems, strict=True):
        if failed := sum(bool(row.get("error")) for row in rows):
            warn(f"{failed} of {len(rows)} rows of {file} have an error; they count as empty texts")
        without = sum(not row.get("budget") for row in rows)  # translated without a length
        if length is None and 0 < without < len(rows):
            warn(f"{without} of {len(rows)} rows of {file} have no budget; length errors are not computed")
    names = short_names(files[0], files[1] if len(files) > 1 else None)
    found = [
        System(file, name, _texts(rows, references, sources, length, tokenizer), rows)
        for file, name, rows in zip(files, names, systems, strict=False)
    ]
    if len({system.texts.budgets is None for system in found}) > 1:
        raise ValueError(f"only one of {files[0]} and {files[1]} has budgets; give --length to score both")
    return found


def _read(path: Path) -> list[Row]:
    """Return the rows of a file: the objects of JSON Lines, or {"text": line} for each line of another file."""
    if not path.exists():
        raise ValueError(f"there is no file {str(path)!r}")
    is_jsonl = path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    rows: list[Row] = []
    for number, line in lines(path):
        if isinstance(line, Malformed):
            raise ValueError(str(line))
        if not is_jsonl:
            rows.append({"text": line})
        elif line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise ValueError(f"{path}:{number} is not JSON: {error}") from None
            if not isinstance(rows[-1], dict):
                raise ValueError(f"{path}:{number} must be an object with a field text; got {line[:40]}")
    return rows


def _with_budgets(path: Path, rows: list[Row]) -> list[Row]:
    for number, row in enumerate(rows, 1):
        try:
            row["budget"] = as_budget(row["budget"]) if row.get("budget") else None
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, row {number}: {error}") from None
    return rows


def _read_column(path: Path, name: str) -> list[str]:
    """Return one text per row: the line, or the object's field `name`, or else its field `text`."""
    texts = [row.get(name, row.get("text")) for row in _read(path)]
    if bad := next((n for n, text in enumerate(texts, 1) if not isinstance(text, str)), None):
        raise ValueError(f"{path}, row {bad} must have a field {name} or text; it has neither")
    return texts  # type: ignore[return-value]  # all are str


def _field(rows: list[Row], name: str) -> list[str] | None:
    """Return a text field of all rows; None if a row lacks it."""
    values = [row.get(name) for row in rows]
    return values if values and all(isinstance(value, str) for value in values) else None  # type: ignore[return-value]


def _check_same_budgets(files: list[Path], systems: list[list[Row]]) -> None:
    """Raise if the systems have different budgets: all their scores would differ because of the length."""
    for number, rows in enumerate(zip(*systems, strict=True), 1):
        here, there = rows[0].get("budget"), rows[-1].get("budget")
        if here and there and here != there:
            found = f"row {number} has '{here}' in {files[0]} and '{there}' in {files[-1]}"
            raise ValueError(f"a paired test needs the same budgets; {found}; give --length to score both by one")


def _is_empty(source: str, rows: list[Row]) -> bool:
    texts = [source, *(None if row.get("error") else row.get("text") for row in rows)]
    return all(isinstance(text, str) and not text.strip() for text in texts)


def _texts(
    rows: list[Row], refs: Sequence[Any] | None, sources: list[str] | None, length: Length, tokenizer: Any
) -> Texts:
    hyps = _field(rows, "text")
    if hyps is None:
        raise ValueError("every row of --hyp needs a field text" if rows else "nothing to score: --hyp is empty")
    counts: list[Any] = [row.get("length") for row in rows]
    budgets = [row["budget"] for row in rows if row.get("budget")]
    given = None if length or len(budgets) < len(rows) else budgets
    in_tokens = length.unit == "tokens" if length else given is not None and given[0].unit == "tokens"
    relative = length is not None and (length.budget is None or length.budget.of_source)
    if in_tokens and tokenizer is None and (relative or None in counts):
        raise TokenizerNeeded("lengths in tokens need a tokenizer, for example --tokenizer smollm2")
    if length is not None:
        nothing: list[None] = [None] * len(rows)
        firsts = [one if isinstance(one, str) else one[0] for one in refs] if refs else nothing
        given = [length.of(src, ref, tokenizer) for src, ref in zip(sources or nothing, firsts, strict=True)]
    known = counts if in_tokens and None not in counts else None  # as generated
    return Texts(hyps, refs, sources, given, lengths=known, tokenizer=tokenizer)
