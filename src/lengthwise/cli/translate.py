"""`lengthwise translate`: translate a text, or the lines of a file or of stdin, within a length."""

import json
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from . import options
from .input_lines import StdinLines, TextLine, file_batches
from .loading import folder, load
from .terminal import (
    SOME_DO_NOT_FIT,
    UsageError,
    console,
    decode,
    existing_file,
    print_message,
    progress_bar,
    report_interrupt,
)

if TYPE_CHECKING:
    from ..length.budget import Budget
    from ..translation import Translation, Translator
    from ..translation.line_input import LineParser

MAX_NAMED = 20  # incomplete lines whose numbers are printed
BATCH_SIZE = 32  # lines: enough to batch sentences of like length, few enough to show progress
_FILE_NAME = re.compile(r"\S+\.(?:txt|tsv|tab|strings)(?:\.gz)?|(?!\w+://)\S*/\S*\.\w+", re.IGNORECASE)


def translate(
    text: Annotated[str, typer.Argument(help="A text, a text file, or - for stdin; files and stdin line by line.")],
    to: Annotated[str, typer.Option("--to", metavar="LANG", help="Target language: fr, it, de, ... Required.")] = "",
    source: Annotated[str, typer.Option("--from", metavar="LANG", help="Source language.")] = "en",
    length: Annotated[str, typer.Option(help="'1.0x' of the source, 'at most 42 chars', ... [default: no limit]")] = "",
    unit: Annotated[str, typer.Option(help="A length that is a bare number is a limit in this unit: chars, ...")] = "",
    min_limit: Annotated[int, options.integer("A limit from a ratio such as 1.0x is never below N units.", 0)] = 0,
    model: Annotated[
        str, typer.Option(help="The translator: a name, a folder or a hub id. [default: en-it or en-fr, by --to]")
    ] = "",
    no_control: Annotated[
        bool, typer.Option("--no-control", help="Use the translator without length control.")
    ] = False,
    candidates: Annotated[int, options.integer("Search for N candidates; the JSON lists them.")] = 1,
    beams: options.Beams = 5,
    reverse: Annotated[
        str, typer.Option(metavar="MODEL", help="Reverse model (target to source), to rank translations that fit.")
    ] = "",
    tsv: Annotated[bool, typer.Option("--tsv", help="Lines are: text, tab, length. [default: for .tsv files]")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this file; it appears when all lines are done.")
    ] = None,
    device: options.Device = None,
    as_json: options.Json = False,
) -> None:
    """Translate within a length.

    \b
    lengthwise translate "Save as ..." --to it --length "at most 20 chars"
    lengthwise translate strings.tsv --to fr --model Helsinki-NLP/opus-mt-en-fr --json > translated.jsonl

    Output line n is input line n; an empty line stays empty. Placeholders (%s, {name}, <b>, \\n, addresses, numbers)
    are kept; the JSON names those that were lost. In a .tsv, the second column is the length of the line, or the column
    whose header is "length"; --length applies to lines without one.
    If a limit is tight, words of the source may be dropped before it is translated; the JSON names them.
    Exit code 3: a line does not fit, lost a placeholder, or could not be translated.
    """
    from ..atomic import partial_file, partial_path
    from ..translation.line_input import LineParser

    if not to:
        raise UsageError("to which language? For example --to fr")
    if not text.strip():
        raise UsageError("the text is empty; there is nothing to translate")
    decode(text.encode("utf-8", "surrogateescape"), "an argument")
    file = None if text == "-" else _file(text)
    parser = LineParser(length, unit, tsv or (file is not None and file.name.endswith((".tsv", ".tsv.gz"))))
    if out:
        if file is not None and out.exists() and out.samefile(file):
            raise UsageError(f"{out} is what is to be translated; name another file for the translations")
        partial_path(out)  # raises if it cannot be written, before minutes of loading and translating
    name = model or _default_model(source, to)
    stdin = StdinLines() if text == "-" else None  # stdin is read while the model loads
    search: dict[str, Any] = {"beams": beams, "candidates": candidates, "room": min_limit}
    translator = _translator(name, reverse, device, fitted=not no_control, source=source, target=to, **search)
    with partial_file(out) if out else nullcontext(sys.stdout) as stream:
        printer = _Printer(stream, as_json)
        if stdin is not None:
            with report_interrupt(lambda: stdin.progress(printer.done, printer.translated)):
                _translate_lines(translator, parser, stdin.text_batches(BATCH_SIZE), printer, lambda: stdin.seen)
        elif file is not None:
            from ..corpora.lines import count

            total, batches = count(file), file_batches(file, BATCH_SIZE)
            with report_interrupt(lambda: f"stopped: {printer.done:,} of {total:,} lines were {printer.translated}"):
                _translate_lines(translator, parser, batches, printer, lambda: total)
        else:
            _translate_one(translator, text, parser.budget, printer)
    if not printer.all_well:
        raise typer.Exit(SOME_DO_NOT_FIT)


def _file(text: str) -> Path | None:
    """Return the file of this name, or None for a text; raise if it looks like the name of a file that is missing."""
    found = existing_file(text)
    if found is None and _FILE_NAME.fullmatch(text):
        raise UsageError(f"there is no file {text!r} here; a text with such a name can be given on stdin, with -")
    return found


# ---- the model


def _default_model(source: str, target: str) -> str:
    """Return the short name of a model for these languages, such as en-it."""
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
    folder(name)  # raises if there is no such model
    from ..models.description import base_name, has_controls

    plain = base_name(name)
    if has_controls(plain):
        raise UsageError(f"{plain} has learnt length with all its weights; there is no plain one")
    return plain


def _translator(name: str, reverse: str, device: str | None, fitted: bool, **options: Any) -> "Translator":
    writer = load(name if fitted else _without_controls(name), device, fitted=fitted)
    back = load(reverse, device) if reverse else None
    from ..scoring.reverse import ReverseModel
    from ..translation import Translator
    from ..translation.languages import prepare

    reverse_model = None
    if back is not None:
        prefix, _ = prepare(back, options["target"], options["source"])  # raises if it is for other languages
        reverse_model = ReverseModel(back.engine, prefix)
    translator = Translator(writer, **options, reverse=reverse_model)
    if translator.note:
        print_message(translator.note)
    return translator


# ---- translations


class _Printer:
    """Prints translations one by one and counts those with a fault."""

    def __init__(self, stream: TextIO, as_json: bool) -> None:
        self.stream, self.as_json = stream, as_json
        self.done = self.misfits = self.damaged = self.errors = 0

    def show(self, one: "Translation") -> None:
        self.done += 1
        self.print(json.dumps(one.as_json(), ensure_ascii=False) if self.as_json else one.text)
        self.errors += one.error is not None
        self.misfits += one.error is None and not one.fits
        self.damaged += one.error is None and not one.intact

    def print(self, line: str) -> None:
        print(line, file=self.stream, flush=True)

    @property
    def translated(self) -> str:
        """Return "translated", with the name of the file if lines were written to one."""
        return f"translated; see {self.stream.name}" if self.done and self.stream is not sys.stdout else "translated"

    @property
    def all_well(self) -> bool:
        return not (self.misfits or self.damaged or self.errors)


def _translate_one(translator: "Translator", text: str, budget: "Budget | None", printer: _Printer) -> None:
    with console().status("translating"):
        [one] = translator.translate([text], budget)
    if one.error is not None and not printer.as_json:
        print_message(one.error)
        raise typer.Exit(SOME_DO_NOT_FIT)
    printer.show(one)
    if one.error is not None:
        print_message(one.error)
    elif not (one.fits and one.complete and one.intact):
        print_message(_verdict(one))
    elif sys.stdout.isatty():
        console().print(_verdict(one), style="dim")


def _verdict(one: "Translation") -> str:
    parts = [f"{one.length} {one.unit}"]
    if one.budget:
        parts = [f"{one.length} of {one.budget}", "fits" if one.fits else "does not fit"]
    return " · ".join([*parts, "complete" if one.complete else "not complete", *([one.note] if one.note else [])])


def _translate_lines(
    translator: "Translator",
    parser: "LineParser",
    batches: Iterable[list[TextLine]],
    printer: _Printer,
    total: Callable[[], int],
) -> None:
    from ..translation.line_input import translate_lines

    number, incomplete = 0, []
    with progress_bar(disable=printer.stream.isatty()) as bar:  # on a terminal the lines themselves show the progress
        task = bar.add_task("translating", total=None)
        for batch in batches:
            lines = parser.parse(batch)
            for line, one in zip(lines, translate_lines(translator, lines), strict=True):
                number += 1
                if not line.is_header:
                    printer.show(one)
                elif not printer.as_json:
                    printer.print(line.text)
                if printer.as_json:
                    continue
                if not (one.fits and one.intact):
                    print_message(f"line {number}: {one.error or _verdict(one)}")
                elif not one.complete:
                    incomplete.append(str(number))
            bar.update(task, completed=number, total=total())
    if not printer.all_well:
        print_message(
            f"of {printer.done} lines, {printer.misfits} do not fit, {printer.damaged} lost a placeholder or a number "
            f"and {printer.errors} could not be translated"
        )
    if incomplete:
        some = ", ".join(incomplete[:MAX_NAMED]) + (", ..." if len(incomplete) > MAX_NAMED else "")
        what = "fits but is not complete: line" if len(incomplete) == 1 else "fit but are not complete: lines"
        print_message(f"of {printer.done} lines, {len(incomplete)} {what} {some}")
