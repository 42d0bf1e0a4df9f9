"""`lengthwise translate`: a text, or the lines of a file, in another language and no longer than asked for."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from .loading import Device, folder, load
from .stdin_lines import Lines
from .terminal import (
    SOME_DO_NOT_FIT,
    Json,
    UsageError,
    complain,
    console,
    decoded,
    file_named,
    progress_bar,
    telling_if_stopped,
)

if TYPE_CHECKING:
    from ..length.budget import Budget
    from ..translation import Translation, Translator

NAMED = 20  # lines whose numbers are told
AT_A_TIME = 32  # lines: enough to find sentences of like length, few enough to see them come
_FILE_NAME = re.compile(r"\S+\.(?:txt|tsv|tab|strings)(?:\.gz)?|(?!\w+://)\S*/\S*\.\w+", re.IGNORECASE)


def translate(
    text: Annotated[str, typer.Argument(help="A text, a file of lines, or - for the lines of stdin.")],
    to: Annotated[str, typer.Option("--to", metavar="LANG", help="The language to translate to: fr, it, de, ...")] = "",
    source: Annotated[str, typer.Option("--from", metavar="LANG", help="The language of the text.")] = "en",
    length: Annotated[
        str, typer.Option(help="'1.0x' of the source, 'at most 42 chars', ... [default: as long as it gets]")
    ] = "",
    unit: Annotated[str, typer.Option(help="A bare number as a length means at most so many: chars, words, ...")] = "",
    room: Annotated[
        int, typer.Option(min=0, metavar="N", help="With a length such as 1.0x, at most so many are always allowed.")
    ] = 0,
    model: Annotated[
        str, typer.Option(help="A translator: a name, a folder or hub id. [default: en-it or en-fr, by --to]")
    ] = "",
    plain: Annotated[
        bool, typer.Option("--plain", help="The translator alone, where a control for it comes with Lengthwise.")
    ] = False,
    candidates: Annotated[int, typer.Option(min=1, metavar="N", help="Search for N; the JSON tells the others.")] = 1,
    beams: Annotated[int, typer.Option(min=1, metavar="N", help="Search with so many beams.")] = 5,
    reverse: Annotated[
        str,
        typer.Option(metavar="MODEL", help="A translator back: of what fits, take what it best reads the source from."),
    ] = "",
    tsv: Annotated[
        bool, typer.Option("--tsv", help="Lines are: text, tab, length. [default: if it is a .tsv]")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this file, which is there when all is done.")
    ] = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Translate, no longer than asked for.

    \b
    lengthwise translate "Save as ..." --to it --length "at most 20 chars"
    lengthwise translate strings.tsv --to fr --model Helsinki-NLP/opus-mt-en-fr --json > translated.jsonl

    Line by line: output line n is input line n, and an empty line stays empty. Placeholders (%s, {name}, <b>, \\n,
    addresses, numbers) come through as they are, or the JSON says what did not. A .tsv has a length for each line in
    its second column, or in the one that its header calls "length"; --length is for lines without.
    Where the room is short, words of the source may be left out before it is translated; the JSON says which.
    Ends with 3 if a line does not fit, lost a placeholder, or could not be translated.
    """
    from ..corpora.writing import growing, place

    if not to:
        raise UsageError("to which language? For example --to fr")
    if not text.strip():
        raise UsageError("the text is empty; there is nothing to translate")
    decoded(text.encode("utf-8", "surrogateescape"), "an argument")
    file = None if text == "-" else _file(text)
    in_columns = tsv or (file is not None and file.name.endswith((".tsv", ".tsv.gz")))
    reads = _Reader(length, unit, in_columns)
    if out:
        if file is not None and out.exists() and out.samefile(file):
            raise UsageError(f"{out} is what is to be translated; name another file for the translations")
        place(out)  # or an error, before minutes of loading and translating
    name = model or _default_model(source, to)
    stream = Lines() if text == "-" else None  # stdin is read while the model loads
    search: dict[str, Any] = {"beams": beams, "candidates": candidates, "room": room}
    translator = _translator(name, reverse, device, fitted=not plain, source=source, target=to, **search)
    with growing(out) if out else nullcontext(sys.stdout) as printed:
        prints = _Printer(printed, as_json)
        if stream is not None:
            batches = (reads.rows(batch) for batch in _of_stdin(stream))
            with telling_if_stopped(lambda: stream.stopped(prints.done, prints.translated)):
                _translate_lines(translator, batches, prints, lambda: stream.seen)
        elif file is not None:
            from ..corpora.lines import count

            total, batches = count(file), (reads.rows(batch) for batch in _of_file(file))
            with telling_if_stopped(lambda: f"stopped: {prints.done:,} of {total:,} lines were {prints.translated}"):
                _translate_lines(translator, batches, prints, lambda: total)
        else:
            _translate_one(translator, text, reads.budget, prints)
    if not prints.all_well:
        raise typer.Exit(SOME_DO_NOT_FIT)


def _file(text: str) -> Path | None:
    """The file of this name, or None for a text; a name that looks like a file's and is none is an error."""
    found = file_named(text)
    if found is None and _FILE_NAME.fullmatch(text):
        raise UsageError(f"there is no file {text!r} here; a text with such a name can be given on stdin, with -")
    return found


def _default_model(source: str, target: str) -> str:
    """A model that has a short name such as en-it."""
    from ..models.registry import known

    name = f"{source}-{target}"
    if any(one.name == name for one in known()):
        return name
    for language in (source, target):
        if not 2 <= len(language) <= 3:
            raise UsageError(f"languages are named by their codes, such as fr, it or de; got {language!r}")
    raise UsageError(
        f"no translator from {source} to {target} has a short name; name one: "
        f"--model Helsinki-NLP/opus-mt-{name}, or the folder of a model"
    )


def _without_controls(name: str) -> str:
    folder(name)  # or an error
    from ..models.checkpoint import learnt, origin

    plain = origin(name)
    if learnt(plain):
        raise UsageError(f"{plain} has learnt length with all its weights; there is no plain one")
    return plain


def _translator(name: str, reverse: str, device: str | None, fitted: bool, **options: Any) -> "Translator":
    writer = load(name if fitted else _without_controls(name), device, fitted=fitted)
    back = load(reverse, device) if reverse else None
    from ..scoring.reverse import ReverseModel
    from ..translation import Translator
    from ..translation.languages import prepare

    reverses = None
    if back is not None:
        before, _ = prepare(back, options["target"], options["source"])  # the other way round, or an error
        reverses = ReverseModel(back, before)
    translator = Translator(writer, **options, reverse=reverses)
    if translator.note:
        complain(translator.note)
    return translator


# ---- lines in


@dataclass(frozen=True)
class _Row:
    """A line of input. `as_is`: it is not translated, only printed."""

    text: str
    budget: "Budget | str | None" = None
    error: str | None = None
    as_is: bool = False


class _Reader:
    """Lines become rows: a text alone, or a text and its length in columns."""

    def __init__(self, length: str, unit: str, in_columns: bool) -> None:
        from ..length.budget import as_budget
        from ..length.units import unit_named

        self.unit = unit_named(unit).name if unit else ""
        self.budget = as_budget(self._asked(length)) if length else None
        self.in_columns, self.column = in_columns, 1
        self.started = False

    def rows(self, lines: Iterable[tuple[str, str | None]]) -> list[_Row]:
        """One for each (line, error)."""
        return [_Row(line, error=error) if error else self._row(line) for line, error in lines]

    def _row(self, line: str) -> _Row:
        first, self.started = not self.started, True
        if not self.in_columns:
            return _Row(line, self.budget)
        cells = line.split("\t")
        names = [cell.strip().lower() for cell in cells]
        if first and "length" in names[1:]:
            self.column = names.index("length", 1)
            return _Row(cells[0], as_is=True)
        asked = cells[self.column].strip() if len(cells) > self.column else ""
        try:
            return _Row(cells[0], self._asked(asked) if asked else self.budget)
        except ValueError as error:
            return _Row(cells[0], asked, str(error))

    def _asked(self, length: str) -> str:
        """The length in words; a bare number is one only with --unit."""
        if not re.fullmatch(r"\d+", length.strip()):
            return length
        if not self.unit:
            raise ValueError(
                f"{length!r} names no unit; write 'at most {length} chars', or give --unit chars for all bare numbers"
            )
        return f"at most {length} {self.unit}"


def _of_file(file: Path) -> Iterator[list[tuple[str, str | None]]]:
    """The lines, and what is wrong with each, some at a time."""
    from ..corpora.lines import Malformed, lines

    batch: list[tuple[str, str | None]] = []
    for _, line in lines(file):
        batch.append(("", line.reason) if isinstance(line, Malformed) else (line, None))
        if len(batch) == AT_A_TIME:
            yield batch
            batch = []
    if batch:
        yield batch


def _of_stdin(stream: Lines) -> Iterator[list[tuple[str, str | None]]]:
    for batch in stream.batches(AT_A_TIME):
        found: list[tuple[str, str | None]] = []
        for line in batch:
            try:
                found.append((decoded(line, "it").removesuffix("\n").removesuffix("\r"), None))
            except ValueError as error:
                found.append(("", str(error)))
        yield found


# ---- translations out


class _Printer:
    """Prints translations one by one and counts what is wrong with them."""

    def __init__(self, stream: TextIO, as_json: bool) -> None:
        self.stream, self.as_json = stream, as_json
        self.done = self.misfits = self.torn = self.errors = 0

    def show(self, one: "Translation") -> None:
        self.done += 1
        self.say(json.dumps(one.as_json(), ensure_ascii=False) if self.as_json else one.text)
        self.errors += one.error is not None
        self.misfits += one.error is None and not one.fits
        self.torn += one.error is None and not one.intact

    def say(self, line: str) -> None:
        print(line, file=self.stream, flush=True)

    @property
    def translated(self) -> str:
        """What was done, and where to look for it, if anything was and not on stdout."""
        return f"translated; see {self.stream.name}" if self.done and self.stream is not sys.stdout else "translated"

    @property
    def all_well(self) -> bool:
        return not (self.misfits or self.torn or self.errors)


def _translate_one(translator: "Translator", text: str, budget: "Budget | None", prints: _Printer) -> None:
    with console().status("translating"):
        [one] = translator.translate([text], budget)
    if one.error is not None and not prints.as_json:
        complain(one.error)
        raise typer.Exit(SOME_DO_NOT_FIT)
    prints.show(one)
    if one.error is not None:
        complain(one.error)
    elif not (one.fits and one.complete and one.intact):
        complain(_verdict(one))
    elif sys.stdout.isatty():
        console().print(_verdict(one), style="dim")


def _verdict(one: "Translation") -> str:
    said = [f"{one.length} {one.unit}"]
    if one.budget:
        said = [f"{one.length} of {one.budget}", "fits" if one.fits else "does not fit"]
    return " · ".join([*said, "complete" if one.complete else "not complete", *([one.note] if one.note else [])])


def _translate_lines(
    translator: "Translator", batches: Iterator[list[_Row]], prints: _Printer, total: Callable[[], int]
) -> None:
    number, unfinished = 0, []
    with progress_bar() as bar:
        # On one terminal the lines themselves show how far it is, and a bar would stand in their way.
        bar.disable = bar.disable or prints.stream.isatty()
        task = bar.add_task("translating", total=None)
        for rows in batches:
            for row, one in zip(rows, _translate_rows(translator, rows), strict=True):
                number += 1
                if not row.as_is:
                    prints.show(one)
                elif not prints.as_json:
                    prints.say(row.text)
                if prints.as_json:
                    continue
                if not (one.fits and one.intact):
                    complain(f"line {number}: {one.error or _verdict(one)}")
                elif not one.complete:
                    unfinished.append(str(number))
            bar.update(task, completed=number, total=total())
    if not prints.all_well:
        complain(
            f"of {prints.done} lines, {prints.misfits} do not fit, {prints.torn} lost a placeholder or a number and "
            f"{prints.errors} could not be translated"
        )
    if unfinished:
        some = ", ".join(unfinished[:NAMED]) + (", ..." if len(unfinished) > NAMED else "")
        alone = len(unfinished) == 1
        what = "fits but is not complete: line" if alone else "fit but are not complete: lines"
        complain(f"of {prints.done} lines, {len(unfinished)} {what} {some}")


def _translate_rows(translator: "Translator", rows: list[_Row]) -> "Iterator[Translation]":
    """One for each row; what is not to be translated, or cannot be read, is sent through as an empty line."""
    texts = ["" if row.error or row.as_is else row.text for row in rows]
    budgets = [None if row.error else row.budget for row in rows]
    for row, one in zip(rows, translator.translate(texts, budgets), strict=True):
        if row.error is None:
            yield one
        else:
            asked = "" if row.budget is None else str(row.budget)
            yield replace(one, source=row.text, budget=asked, error=row.error, fits=False, complete=False, intact=False)
