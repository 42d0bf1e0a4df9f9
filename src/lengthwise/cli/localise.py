"""Translate or shorten string and subtitle files, for the commands `translate` and `shorten`: files in, files out.

Rows go to stdout as JSON if asked for. Texts that do not fit, and the counts, go to stderr.
"""

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from . import terminal
from .progress import TextProgress
from .results import doubts, names_omissions, says_foreign, says_torn, words_left_out

if TYPE_CHECKING:
    from ..formats.rules import Rule
    from ..length.budget import Budget
    from ..localisation.files import Localised
    from ..localisation.plan import Row

# Android's folders of translations, such as values-it, values-pt-rBR and values-b+sr+Latn; values-car is for cars.
_TRANSLATED = re.compile(r"values-(?!car\b)(?:[a-z]{2,3}(?:-r[A-Z]{2})?|b\+\S+)")
_WIDTH = 60  # of an id and of a text in the table
Work = Callable[..., "Localised"]  # with a file to read, the one to write, and `progress`


def string_files(text: str, folders: bool) -> Path | None:
    """Return the path if the argument names a string or subtitle file, or, with `folders`, a folder."""
    from ..formats import formats_of, store_listing
    from ..formats.base import Document

    path = terminal.existing_file(text)
    if path is None:
        with suppress(OSError, ValueError):  # the text is too long for a name
            return Path(text) if folders and Path(text).is_dir() else None
        return None
    names = [format.name for format in formats_of(path)]
    if "text" in names:  # the lines of other .txt files are texts of their own
        names = ["store"] if store_listing.recognises(Document(path.as_posix(), "")) else []
    return path if names else None


def is_string_file(path: Path) -> bool:
    """Return whether the name of a file is that of a string or subtitle file. Text files may be either."""
    from ..formats import formats_of

    names = [format.name for format in formats_of(path)]
    return bool(names) and "text" not in names


@dataclass(frozen=True)
class Pair:
    """A file to read and the file to write."""

    file: Path
    out: Path


def pairs(path: Path, out: Path | None, in_place: bool, encoding: str, *, translates: bool = False) -> list[Pair]:
    """Return the files to read and to write: one, or those of a folder. Files are replaced only with --in-place.

    Each file is read once here, so that a broken one is found before a model is loaded.
    """
    from ..formats import files_in, formats_of

    if in_place and out:
        raise terminal.UsageError("--in-place writes to FILE itself; give it or --out, not both")
    if not in_place and not out:
        only_out = translates and _in_one_language(path, encoding)
        or_itself = "" if only_out else f"; or give --in-place to change {path} itself"
        raise terminal.UsageError(f"--out is missing: the file to write{or_itself}")
    if out and out.exists() and out.samefile(path):
        raise terminal.UsageError(f"--out {out} is FILE itself; give --in-place instead to change it")
    target = out or path
    if not path.is_dir():
        if target.is_dir():
            raise terminal.UsageError(f"--out {target} is a folder; name a file to write")
        if not {one.name for one in formats_of(path)} & {one.name for one in formats_of(target)}:
            raise terminal.UsageError(f"--out {target} has another format than {path}; files are not converted")
        found = [Pair(path, target)]
    else:
        if target.is_file():
            raise terminal.UsageError(f"--out {target} is a file; {path} is a folder, so name a folder to write to")
        if out and out.resolve().is_relative_to(path.resolve()):
            raise terminal.UsageError(f"--out {out} is inside the folder {path}; name a folder outside it")
        files = [file for file in files_in(path) if not (translates and _TRANSLATED.fullmatch(file.parent.name))]
        found = [Pair(file, target / file.relative_to(path)) for file in files]
    if not found:
        advice = "JSON, YAML and properties files must be named"
        raise terminal.UsageError(f"no string or subtitle file is in the folder {str(path)!r}; {advice}")
    for pair in found:
        one_language = _in_one_language(pair.file, encoding)  # also finds a broken file
        if translates and in_place and one_language:
            reason = "has one language, so a second run would translate the translations"
            raise terminal.UsageError(f"--in-place: {pair.file} {reason}; give --out")
    return found


def _in_one_language(path: Path, encoding: str) -> bool:
    """Return whether the texts of a file have no sources beside them."""
    from ..formats import read

    entries = [] if path.is_dir() else read(path, encoding=encoding or None).entries
    return bool(entries) and all(entry.source is None for entry in entries)


def length_rule(budget: "Budget | str | None", min_limit: int = 0) -> "Rule | None":
    """Return --length as a rule, with --min-limit."""
    from ..formats.rules import Rule
    from ..length.budget import as_budget

    if budget is None:
        return None
    if as_budget(budget).unit == "tokens":
        raise terminal.UsageError(
            "texts of files are not measured in tokens; give another unit, such as chars or words"
        )
    return Rule(as_budget(budget), f"--length {str(budget)!r}", min_limit=min_limit)


def file_rules() -> "list[Rule]":
    """Return the rules of lengthwise.toml in the current folder."""
    from ..formats.rules import NAME, read_rules

    return read_rules(Path(NAME)) if Path(NAME).is_file() else []


def run(found: list[Pair], work: Work, words: tuple[str, str], as_json: bool) -> None:
    """Translate or shorten the files one by one, and print what became of them. Exit with 3 if a text has a fault."""
    misfits = 0
    for pair in found:
        progress = TextProgress(*words, "texts")
        stopped = f"; the same command resumes with {pair.file}"
        with terminal.report_interrupt(lambda: f"stopped at {progress.done}{stopped}"), progress.bar:  # noqa: B023
            done = work(pair.file, pair.out, progress=progress.show)
        if as_json:
            for row in done.outcome.rows:
                terminal.print_json({"file": pair.out.as_posix(), **row.as_json()})
        misfits += _report(pair, done)
    if misfits:
        raise typer.Exit(terminal.SOME_DO_NOT_FIT)


def _report(pair: Pair, done: "Localised") -> int:
    """Print the texts that have a fault, and the counts. Return how many have one."""
    rows, bad = done.outcome.rows, done.outcome.misfits
    if bad:
        print(_table(bad), file=sys.stderr, flush=True)
    for note in done.outcome.notes:
        terminal.print_message(note)
    fitting = sum(row.changed and row.fits for row in rows)
    total = terminal.counted(len(rows), "text is new and fits", "texts are new and fit")
    counts = [f"{fitting:,} of {total}" if rows else "no text is to be changed"]
    counts += _count(sum(row.changed and not row.fits for row in rows), "does not fit", "do not fit")
    counts += _count(sum(not row.changed for row in rows), "was not written", "were not written")
    counts += _count(
        sum(row.changed and row.fits and not row.complete for row in rows), "is not complete", "are not complete"
    )
    short = sum(row.changed and row.fits and names_omissions(row.note) for row in rows)
    counts += [words_left_out(short)] if short else []
    notes = [row.note for row in rows if row.changed and row.fits]
    counts += doubts(sum(map(says_torn, notes)), sum(map(says_foreign, notes)))
    terminal.print_message(f"{pair.out}: {', '.join(counts)}")
    return len(bad)


def _count(number: int, one: str, several: str) -> list[str]:
    return [terminal.counted(number, one, several)] if number else []


def _table(rows: "list[Row]") -> str:
    """Return a line for each text: its place, its id, what is wrong, and the shortest text that was found."""
    cells = [(f"{row.line}", _short(row.id), row.note or "", _short(row.text)) for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(3)]
    lines = ("  ".join([*map(str.ljust, row[:3], widths), row[3]]) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
