"""`lengthwise translate`: translate a text, or the lines of a file or of stdin, within a length."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer

from . import bulk, localise, options, terminal
from .input_lines import FileLines, StdinLines
from .loading import check_options, folder, load, load_endpoint
from .options import argument, flag, integer, option
from .subtitle_style import Cps, Line, Lines, Preset, is_subtitle, need_subtitles, subtitle_style, without_finished
from .translate_document import check_document, translate_document

if TYPE_CHECKING:
    from ..length.budget import Budget
    from ..localisation.plan import Task
    from ..translation import Translation, Translator
    from ..translation.endpoint import EndpointTranslator
    from ..translation.line_input import InputLine, LineParser

    _Translator = Translator | EndpointTranslator
    # From batches of lines to each batch with its translations.
    _Translate = Callable[[Iterable[list[InputLine]]], Iterator[tuple[Sequence[InputLine], list[Translation]]]]

MAX_NAMED = 20  # incomplete lines whose numbers are printed
BEAMS = 5
BATCH_SIZE = 32  # lines: enough to batch sentences of similar length, few enough to show progress
_FILE_NAME = re.compile(r"\S+\.(?:txt|tsv|tab)(?:\.gz)?|(?!\w+://)\S*/\S*\.\w+", re.IGNORECASE)


def translate(
    text: Annotated[
        str,
        argument("A text, a string file or a folder of them, a text file, or - for stdin. Lines of text are texts."),
    ] = "",
    to: Annotated[str, option("Required: the target language, such as fr, it or de.", "LANG", "--to")] = "",
    source: Annotated[str, option("Source language.", "LANG", "--from")] = "en",
    length: Annotated[str, option("'1.0x' the length of the source, 'at most 42 chars', ... [default: no limit]")] = "",
    unit: Annotated[str, option("Read a bare number N as 'at most N' of this unit.", "UNIT")] = "",
    min_limit: Annotated[int, integer("A ratio such as 1.0x gives a limit of at least N units.", 0)] = 0,
    model: Annotated[
        str, option(f"{options.MODEL_HELP} {options.ENDPOINT_HELP} [default: FROM-TO, such as en-it]")
    ] = "",
    no_control: Annotated[bool, flag("--no-control", "Use the translator without length control.")] = False,
    candidates: Annotated[int, integer("Search for N candidates; the JSON lists them.")] = 1,
    beams: options.Beams = BEAMS,
    reverse: Annotated[str, option("Target-to-source model, to rank translations that fit.", "MODEL")] = "",
    document: Annotated[Path | None, option("Translate this text or Markdown file as a whole.", "FILE")] = None,
    per_sentence: Annotated[bool, flag("--per-sentence", "--length is for each sentence of the document.")] = False,
    context: Annotated[
        str, option("Translate each sentence of the document with those around it: sliding, segments, revise.", "HOW")
    ] = "",
    tsv: Annotated[bool, flag("--tsv", "Lines are: text, tab, length. [default: for .tsv files]")] = False,
    out: Annotated[Path | None, option("The file to write or replace, when all lines are done.", "FILE")] = None,
    in_place: options.InPlace = False,
    again: Annotated[
        bool,
        flag("--again", "Translate texts again that have a translation, unless it is approved. Replace subtitles."),
    ] = False,
    preset: Preset = "",
    cps: Cps = None,
    line: Line = None,
    lines: Lines = None,
    encoding: options.Encoding = "",
    device: options.Device = None,
    engine: options.BulkEngine = None,
    ray_address: options.RayAddress = None,
    workers: options.Workers = None,
    journal: options.Journal = None,
    explain: options.Explain = False,
    max_calls: options.MaxCalls = None,
    as_json: options.Json = False,
) -> None:
    """Translate within a length.

    \b
    lengthwise translate "Save as ..." --to it --length "at most 20 chars"
    lengthwise translate strings.tsv --to fr --model Helsinki-NLP/opus-mt-en-fr --json > translated.jsonl
    lengthwise translate --document README.md --to it --out README.it.md
    lengthwise translate values/strings.xml --to it --out values-it/strings.xml
    lengthwise translate locale/it.po --to it --in-place
    lengthwise translate film.srt --to it --preset netflix --out film.it.srt

    Output line n translates input line n; an empty line stays empty. Placeholders (%s, {name}, <b>, \\n, addresses,
    numbers) are kept; the JSON lists those that were lost. In a .tsv file, each line has its length in the second
    column, or in the column with the header "length" or "limit"; --length applies to lines without one.
    If a limit is tight, words of the source may be dropped before it is translated; the JSON lists them.
    A model behind an API is asked, measured and asked again for the part that does not fit; its key is read from
    LENGTHWISE_API_KEY or, without @URL, OPENAI_API_KEY.
    A --document, or a FILE that ends in .md, has paragraphs; --length applies to all of it, or with --per-sentence to
    each sentence. Code, addresses and markup of Markdown are copied. --context needs a model that was trained on
    documents. With --out, the document goes to OUT and the JSON of its sentences to stdout; the same command resumes an
    interrupted run.
    String files (PO, XLIFF, JSON, ARB, Android XML, .strings, .stringsdict, properties, YAML, Qt TS, store listings)
    go to OUT, or with --in-place to FILE itself. Only translations change. The limits are those in the file, of
    lengthwise.toml, or --length. Existing translations in FILE and OUT are kept. --json prints a row for each text.
    In subtitles (SRT, WebVTT, ASS), a sentence over several cues is translated as one and shared out again; the limits
    are --preset, --cps, --line and --lines, and for each cue --length or lengthwise.toml. An OUT that exists is
    replaced only with --again. A length may be in seconds of speech: 'at most 3.5 seconds'.
    With --explain, nothing is translated: one sentence says how the length compares with the model's usual ones.
    If no complete translation fits, the nearest complete one is written and reported as one that does not fit.
    Exit code 3: a line does not fit, is not complete, lost a placeholder, or could not be translated.
    """
    from ..atomic import partial_file, partial_path
    from ..endpoints.client import is_endpoint
    from ..length.speech import with_language
    from ..models.registry import good_for
    from ..translation.line_input import LineParser

    if not to:
        raise terminal.UsageError("--to is missing; give the target language, for example --to fr")
    if not (document or tsv) and text.lower().endswith((".md", ".markdown")) and terminal.existing_file(text):
        document, text = Path(text), ""  # line by line, its code and its tables would be damaged
    check_document(document, text, tsv, length, per_sentence, context)
    if not text.strip() and not document:
        raise terminal.UsageError("the text is empty; give a text, a file, or - to read stdin")
    terminal.decode(text.encode("utf-8", "surrogateescape"), "an argument")
    file = None if text == "-" else terminal.existing_file(text)
    if file is None and (_FILE_NAME.fullmatch(text) or localise.names_no_file(text, out)):
        raise terminal.UsageError(f"there is no file {text!r}; if it is a text, give - and the text on stdin")
    strings = None if document or tsv else localise.string_files(text, folders=bool(out or in_place))
    if not strings and (in_place or again or encoding):
        raise terminal.UsageError("--in-place, --again and --encoding are for string files, such as .po or .json")
    style = subtitle_style(cps, line, lines, preset, to)
    if style and not strings:
        raise terminal.UsageError("--preset, --cps, --line and --lines are for subtitle files: .srt, .vtt, .ass")
    parser = LineParser(
        with_language(length, to), unit, tsv or (file is not None and file.name.endswith((".tsv", ".tsv.gz")))
    )
    found = localise.pairs(strings, out, in_place, encoding, translates=True) if strings else []
    if style and strings:
        need_subtitles(found, "--preset, --cps, --line and --lines")
    if strings and not again:
        found = without_finished(found, strings.is_dir())
        if not found:
            return
    if out and not strings:
        if not (document or file or out.suffix) and re.fullmatch(r"\w[\w.-]*\w", text):
            terminal.print_message(f"{text!r} is translated as a text: there is no file or folder of this name")
        if not (document or as_json) and localise.is_string_file(out):
            raise terminal.UsageError(f"--out {out} is a string file, but {text!r} is none; name another file to write")
        read = document or file
        if read is not None and out.exists() and out.samefile(read):
            raise terminal.UsageError(f"--out {out} is the file to translate; name another file")
        if not document:
            partial_path(out)  # raises if it cannot be written, before minutes of loading and translating
    name = model or _default_model(source, to)
    check_options(
        is_endpoint(name),
        {"--no-control": no_control, "--beams": beams != BEAMS, "--reverse": reverse, "--document": document}
        | {"--device": device, "--engine": engine},
        {"--max-calls": max_calls},
    )
    if explain:
        if file or strings or document or text == "-" or parser.budget is None:
            raise terminal.UsageError("--explain is for one text and a --length")
        terminal.print_explanation(name, "translate", parser.budget, text, as_json)
        return
    if not model and (not strings or any(map(is_subtitle, found))) and (purpose := good_for(name)):
        terminal.print_message(f"{name} is for {purpose}")
    in_lines = (text == "-" or file is not None) and not strings
    cluster = bulk.cluster(engine, device, ray_address, workers, journal, in_lines)
    stdin = StdinLines() if text == "-" else None  # stdin is read while the model loads
    asked: dict[str, Any] = {"beams": beams, "candidates": candidates, "min_limit": min_limit}
    asked |= {
        "name": name,
        "max_calls": max_calls,
        "reverse": reverse,
        "fitted": not no_control,
        "source": source,
        "target": to,
    }
    if cluster:
        from ..translation import Translation

        make = partial(_line_translator, **asked)
        translated: _Translate = partial(cluster.run, make, size=BATCH_SIZE, kind=Translation)
    else:
        translator = _translator(device, engine=engine, **asked)
        if strings:
            from ..localisation.plan import Task

            limits = localise.length_rule(parser.budget, min_limit), localise.file_rules(), style
            task = Task(to, source, *limits, again)
            _translate_files(translator, found, task, encoding, as_json)
            return
        if document:
            translate_document(
                cast("Translator", translator), document, parser.budget, out, per_sentence, context, as_json
            )
            return
        translated = partial(bulk.in_turn, partial(_translate_batch, translator))
    with partial_file(out) if out else nullcontext(sys.stdout) as stream:
        printer = _Printer(stream, as_json)
        if given := FileLines(file) if file else stdin:
            file_name = stream.name if out else ""
            with terminal.report_interrupt(lambda: given.progress(printer.done, "translated", file_name)):
                _translate_lines(translated, parser, given, printer)
        else:
            _translate_one(translated, text, parser.budget, printer)
    if not printer.all_well:
        raise typer.Exit(terminal.SOME_DO_NOT_FIT)


def _default_model(source: str, target: str) -> str:
    """Return the short name of a model for these languages, such as en-it."""
    from ..models.registry import has_short_name

    name = f"{source}-{target}"
    if has_short_name(name):
        return name
    for language in (source, target):
        if not 2 <= len(language) <= 3:
            raise terminal.UsageError(f"a language is given by its code, such as fr, it or de; got {language!r}")
    advice = f"give --model, for example Helsinki-NLP/opus-mt-{name}, or the folder of a model"
    raise terminal.UsageError(f"no translator from {source} to {target} has a short name; {advice}")


def _line_translator(device: str | None, **asked: Any) -> "bulk.Work[InputLine, Translation]":
    """Load the models and return what translates a batch of lines with them."""
    return partial(_translate_batch, _translator(device, **asked))


def _translate_batch(translator: "_Translator", lines: "Sequence[InputLine]") -> "list[Translation]":
    from ..translation.line_input import translate_lines

    return list(translate_lines(translator, lines))


def _translator(
    device: str | None,
    *,
    name: str,
    max_calls: int | None,
    reverse: str,
    engine: str | None,
    fitted: bool,
    **options: Any,
) -> "_Translator":
    from ..endpoints.client import is_endpoint

    if is_endpoint(name):
        from ..translation.endpoint import EndpointTranslator

        del options["beams"]
        return EndpointTranslator(load_endpoint(name, max_calls), **options)
    if not fitted:
        folder(name)  # raises if there is no such model
        from ..models.description import base_name, has_controls

        name = base_name(name)
        if has_controls(name):
            raise terminal.UsageError(f"--no-control: {name} has no weights without length control; give another model")
    writer, reverse_model = load(name, device, fitted=fitted, engine=engine), None
    from ..scoring.reverse import ReverseModel
    from ..translation import Translator
    from ..translation.languages import prepare

    if reverse:
        back = load(reverse, device, engine=engine)
        prefix, _ = prepare(back, options["target"], options["source"])  # raises if it is for other languages
        reverse_model = ReverseModel(back.engine, prefix)
    translator = Translator(writer, **options, reverse=reverse_model)
    if translator.note:
        terminal.print_message(translator.note)
    return translator


class _Printer:
    """Prints translations one by one and counts those that do not fit, are not complete, or have another fault."""

    def __init__(self, stream: TextIO, as_json: bool) -> None:
        self.stream, self.as_json = stream, as_json
        self.done = self.misfits = self.damaged = self.errors = self.incomplete = 0

    def show(self, one: "Translation") -> None:
        self.done += 1
        self.print(json.dumps(one.as_json(), ensure_ascii=False) if self.as_json else one.text)
        self.errors += one.error is not None
        self.misfits += one.error is None and not one.fits
        self.damaged += one.error is None and not one.intact
        self.incomplete += one.error is None and not one.complete

    def print(self, line: str) -> None:
        print(line, file=self.stream, flush=True)

    @property
    def all_well(self) -> bool:
        return not (self.misfits or self.damaged or self.errors or self.incomplete)


def _translate_one(translated: "_Translate", text: str, budget: "Budget | None", printer: _Printer) -> None:
    from ..translation.line_input import InputLine

    with terminal.status("translating"):
        [(_, [one])] = translated([[InputLine(text, budget)]])
    if one.error is None or printer.as_json:
        printer.show(one)
    terminal.print_verdict(one, dim=one.fits and one.complete and one.intact)
    if one.error is not None and not printer.as_json:
        raise typer.Exit(terminal.SOME_DO_NOT_FIT)


def _translate_lines(
    translated: "_Translate", parser: "LineParser", source: StdinLines | FileLines, printer: _Printer
) -> None:
    number, incomplete = 0, []
    with terminal.progress_bar(disable=printer.stream.isatty()) as bar:  # on a terminal, the lines show the progress
        task = bar.add_task("translating", total=None)
        for lines, texts in translated(map(parser.parse, source.text_batches(BATCH_SIZE))):
            for line, one in zip(lines, texts, strict=True):
                number += 1
                if not line.is_header:
                    printer.show(one)
                elif not printer.as_json:
                    printer.print(line.text)
                if one.fits and one.intact and not one.complete:
                    incomplete.append(str(number))
                if not (printer.as_json or (one.fits and one.intact)):
                    terminal.print_message(f"line {number}: {one.error or terminal.verdict(one)}")
            bar.update(task, completed=number, total=source.seen)
    if printer.misfits or printer.damaged or printer.errors:
        faults = f"{printer.misfits} do not fit, {printer.damaged} lost a placeholder or a number"
        terminal.print_message(f"of {printer.done} lines, {faults} and {printer.errors} could not be translated")
    if incomplete:
        some = ", ".join(incomplete[:MAX_NAMED]) + (", ..." if len(incomplete) > MAX_NAMED else "")
        what = "fits but is not complete: line" if len(incomplete) == 1 else "fit but are not complete: lines"
        terminal.print_message(f"of {printer.done} lines, {len(incomplete)} {what} {some}")


def _translate_files(
    translator: "_Translator",
    found: "list[localise.Pair]",
    task: "Task",
    encoding: str,
    as_json: bool,
) -> None:
    from ..localisation.files import translate_file

    localise.run(
        found,
        lambda path, out, progress: translate_file(
            path, out, translator, task, encoding=encoding or None, progress=progress
        ),
        ("translating", "translated"),
        as_json,
    )
