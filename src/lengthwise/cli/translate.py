"""`lengthwise translate`: translate a text, or the lines of a file or of stdin, within a length."""

import json
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from . import options, terminal
from .input_lines import FileLines, StdinLines
from .loading import folder, load
from .options import argument, flag, integer, option

if TYPE_CHECKING:
    from ..length.budget import Budget
    from ..translation import Translation, Translator
    from ..translation.line_input import LineParser

MAX_NAMED = 20  # incomplete lines whose numbers are printed
BATCH_SIZE = 32  # lines: enough to batch sentences of like length, few enough to show progress
_FILE_NAME = re.compile(r"\S+\.(?:txt|tsv|tab|strings)(?:\.gz)?|(?!\w+://)\S*/\S*\.\w+", re.IGNORECASE)


def translate(
    text: Annotated[str, argument("A text, a text file, or - for stdin; files and stdin line by line.")],
    to: Annotated[str, option("Target language: fr, it, de, ... Required.", "LANG", "--to")] = "",
    source: Annotated[str, option("Source language.", "LANG", "--from")] = "en",
    length: Annotated[str, option("'1.0x' of the source, 'at most 42 chars', ... [default: no limit]")] = "",
    unit: Annotated[str, option("A length that is a bare number is a limit in this unit: chars, ...")] = "",
    min_limit: Annotated[int, integer("A limit from a ratio such as 1.0x is never below N units.", 0)] = 0,
    model: Annotated[
        str, option("The translator: a name, a folder or a hub id. [default: en-it or en-fr, by --to]")
    ] = "",
    no_control: Annotated[bool, flag("--no-control", "Use the translator without length control.")] = False,
    candidates: Annotated[int, integer("Search for N candidates; the JSON lists them.")] = 1,
    beams: options.Beams = 5,
    reverse: Annotated[str, option("Reverse model (target to source), to rank translations that fit.", "MODEL")] = "",
    tsv: Annotated[bool, flag("--tsv", "Lines are: text, tab, length. [default: for .tsv files]")] = False,
    out: Annotated[Path | None, option("Write to this file; it appears when all lines are done.", "FILE")] = None,
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
        raise terminal.UsageError("to which language? For example --to fr")
    if not text.strip():
        raise terminal.UsageError("the text is empty; there is nothing to translate")
    terminal.decode(text.encode("utf-8", "surrogateescape"), "an argument")
    file = None if text == "-" else terminal.existing_file(text)
    if file is None and _FILE_NAME.fullmatch(text):
        raise terminal.UsageError(
            f"there is no file {text!r} here; a text with such a name can be given on stdin, with -"
        )
    parser = LineParser(length, unit, tsv or (file is not None and file.name.endswith((".tsv", ".tsv.gz"))))
    if out:
        if file is not None and out.exists() and out.samefile(file):
            raise terminal.UsageError(f"{out} is what is to be translated; name another file for the translations")
        partial_path(out)  # raises if it cannot be written, before minutes of loading and translating
    name = model or _default_model(source, to)
    stdin = StdinLines() if text == "-" else None  # stdin is read while the model loads
    search: dict[str, Any] = {"beams": beams, "candidates": candidates, "min_limit": min_limit}
    translator = _translator(name, reverse, device, fitted=not no_control, source=source, target=to, **search)
    with partial_file(out) if out else nullcontext(sys.stdout) as stream:
        printer = _Printer(stream, as_json)
        if lines := FileLines(file) if file else stdin:
            with terminal.report_interrupt(lambda: lines.progress(printer.done, printer.translated)):
                _translate_lines(translator, parser, lines, printer)
        else:
            _translate_one(translator, text, parser.budget, printer)
    if not printer.all_well:
        raise typer.Exit(terminal.SOME_DO_NOT_FIT)


def _default_model(source: str, target: str) -> str:
    """Return the short name of a model for these languages, such as en-it."""
    from ..models.registry import known

    name = f"{source}-{target}"
    if any(one.name == name for one in known()):
        return name
    for language in (source, target):
        if not 2 <= len(language) <= 3:
            raise terminal.UsageError(f"languages are named by their codes, such as fr, it or de; got {language!r}")
    raise terminal.UsageError(
        f"no translator from {source} to {target} has a short name; name one: "
        f"--model Helsinki-NLP/opus-mt-{name}, or the folder of a model"
    )


def _translator(name: str, reverse: str, device: str | None, fitted: bool, **options: Any) -> "Translator":
    if not fitted:
        folder(name)  # raises if there is no such model
        from ..models.description import base_name, has_controls

        name = base_name(name)
        if has_controls(name):
            raise terminal.UsageError(f"{name} has learnt length with all its weights; there is no plain one")
    writer = load(name, device, fitted=fitted)
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
        terminal.print_message(translator.note)
    return translator


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
    with terminal.console().status("translating"):
        [one] = translator.translate([text], budget)
    if one.error is not None and not printer.as_json:
        terminal.print_message(one.error)
        raise typer.Exit(terminal.SOME_DO_NOT_FIT)
    printer.show(one)
    if one.error is not None:
        terminal.print_message(one.error)
    elif not (one.fits and one.complete and one.intact):
        terminal.print_message(terminal.verdict(one))
    elif sys.stdout.isatty():
        terminal.console().print(terminal.verdict(one), style="dim")


def _translate_lines(
    translator: "Translator", parser: "LineParser", source: StdinLines | FileLines, printer: _Printer
) -> None:
    from ..translation.line_input import translate_lines

    number, incomplete = 0, []
    with terminal.progress_bar(disable=printer.stream.isatty()) as bar:  # on a terminal, the lines show the progress
        task = bar.add_task("translating", total=None)
        for batch in source.text_batches(BATCH_SIZE):
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
                    terminal.print_message(f"line {number}: {one.error or terminal.verdict(one)}")
                elif not one.complete:
                    incomplete.append(str(number))
            bar.update(task, completed=number, total=source.seen)
    if not printer.all_well:
        terminal.print_message(
            f"of {printer.done} lines, {printer.misfits} do not fit, {printer.damaged} lost a placeholder or a number "
            f"and {printer.errors} could not be translated"
        )
    if incomplete:
        some = ", ".join(incomplete[:MAX_NAMED]) + (", ..." if len(incomplete) > MAX_NAMED else "")
        what = "fits but is not complete: line" if len(incomplete) == 1 else "fit but are not complete: lines"
        terminal.print_message(f"of {printer.done} lines, {len(incomplete)} {what} {some}")
