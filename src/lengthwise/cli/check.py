"""`lengthwise check`: find the texts of string and subtitle files that are outside their limits."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .options import argument, option
from .subtitle_style import Cps, Line, Lines, Preset, subtitle_style
from .terminal import BAD_USAGE, TOO_LONG, UsageError, print_message

if TYPE_CHECKING:
    from ..formats.check import Checker
    from ..formats.subtitles import Style
    from .findings import Report

_FORMATS = "table, json, sarif or github"


def check(
    files: Annotated[list[Path], argument("String files, subtitle files, or folders of them.")],
    length: Annotated[str, option("Use this limit, not those in the files: 'at most 40 chars', ...", "BUDGET")] = "",
    against: Annotated[
        Path | None, option("The source file, for limits relative to the source, and for its limits.", "FILE")
    ] = None,
    cps: Cps = None,
    line: Line = None,
    lines: Lines = None,
    preset: Preset = "",
    encoding: Annotated[str, option("The encoding of files that are not UTF-8 and do not name one.", "NAME")] = "",
    report: Annotated[str, option(f"Print the findings as {_FORMATS}.", "NAME", "--format")] = "table",
    as_json: options.Json = False,
) -> None:
    """Find texts that are longer than their limits.

    \b
    lengthwise check locale/it.po app/src/main/res/values-it/strings.xml
    lengthwise check film.srt --preset netflix
    lengthwise check fr.json --against en.json --length "at most 1.3x"

    Limits are read where people write them: attributes of XLIFF, comments such as "max-length:30" or
    "[CHAR LIMIT=30]", descriptions, names of store listing files. In lengthwise.toml, tables [[limits]] with files,
    keys and length replace them; --length replaces both. Fuzzy and untranslatable entries are not checked.
    Formats: SRT, WebVTT, ASS; PO, XLIFF, JSON, ARB, Android XML, .strings, .stringsdict, properties, YAML, Qt TS, text.
    In a folder, JSON, YAML, properties and most text files are not read; name them.
    Exit code 1: a text is outside its limit. Exit code 2: bad usage, or a file could not be read.
    """
    from ..formats import FormatError
    from .findings import REPORTS, Report

    name = "json" if as_json else report
    if name not in REPORTS:
        raise UsageError(f"--format must be {_FORMATS}; got {report!r}")
    checker = _checker(length, against, subtitle_style(cps, line, lines, preset), encoding or None)
    result = Report()
    for path in _expanded(files):
        try:
            _check_file(path, checker, result, encoding or None)
        except FormatError as error:
            result.errors.append(error)
    result.texts, result.limited = checker.texts, checker.limited
    result.uncounted = [(file.path, entry.id, limit) for file, entry, limit in checker.uncounted]
    if shown := REPORTS[name](result):
        print(shown)
    _print_messages(result)
    if result.errors or result.findings:
        raise typer.Exit(BAD_USAGE if result.errors else TOO_LONG)


def _checker(length: str, against: Path | None, style: "Style | None", encoding: str | None) -> "Checker":
    from ..formats import read
    from ..formats.check import Checker
    from ..formats.rules import NAME, Rule, read_rules

    rule = None
    if length:
        from ..length.budget import Budget

        rule = Rule(Budget.parse(length), f"--length {length!r}")
        if rule.budget.unit == "tokens":
            raise UsageError("check counts without a model; give a length in another unit, such as chars or words")
    rules = read_rules(Path(NAME)) if Path(NAME).is_file() else []
    if against is not None and not against.is_file():
        raise UsageError(f"--against {against} is no file; it names the source of the translation that is checked")
    source = {entry.id: entry for entry in read(against, encoding=encoding).entries} if against else None
    return Checker(rule, rules, style, source)


def _expanded(paths: list[Path]) -> list[Path]:
    from ..formats import files_in

    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise UsageError(f"there is no file {str(path)!r}")
        inside = list(files_in(path)) if path.is_dir() else [path]
        if not inside:
            raise UsageError(f"no string or subtitle file is in the folder {str(path)!r}")
        found += inside
    return list(dict.fromkeys(found))


def _check_file(path: Path, checker: "Checker", result: "Report", encoding: str | None) -> None:
    from ..formats import read

    result.files += 1
    result.findings += checker.check(read(path, encoding=encoding))


def _print_messages(result: "Report") -> None:
    for error in result.errors:
        print_message(str(error))
    if result.uncounted:
        units = ", ".join(sorted({limit.unit for _, _, limit in result.uncounted}))
        print_message(
            f"{len(result.uncounted):,} limits cannot be counted, because they are in {units}; --json lists them"
        )
    if result.texts or not result.errors:
        print_message(result.summary)
