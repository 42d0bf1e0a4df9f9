"""`lengthwise translate`: translate a text, or the lines of a file or of stdin, within a length."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from . import bulk, localise, options, terminal
from .input_lines import Reader
from .inputs import Input, read_argument
from .loading import check_options, folder, load, load_endpoint
from .options import argument, flag, integer, option
from .results import Printer, name_incomplete, name_words_left_out, print_lines
from .subtitle_style import Cps, Line, Lines, Preset, is_subtitle, need_subtitles, subtitle_style, without_finished
from .translate_document import STDIN, check_document, translate_document

if TYPE_CHECKING:
    from ..formats.subtitles import Style
    from ..length.budget import Budget
    from ..translation import Translation, Translator
    from ..translation.endpoint import EndpointTranslator
    from ..translation.line_input import InputLine, LineParser

    _Translator = Translator | EndpointTranslator
    # From batches of lines to each batch with its translations.
    _Translate = Callable[[Iterable[list[InputLine]]], Iterator[tuple[Sequence[InputLine], Iterable[Translation]]]]

BEAMS = 5
BATCH_SIZE = 32  # lines that are read together


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
    document: Annotated[
        Path | None, option("Translate this text or Markdown file, or Markdown on stdin (-), as a whole.", "FILE")
    ] = None,
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
    If a limit is tight, a translation leaves words of the source out; a note in the JSON names those
    that were found.
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
    are --preset, --cps, --line and --lines, and for each cue --length or lengthwise.toml. Subtitles in OUT are
    replaced only with --again. A length may be in seconds of speech: 'at most 3.5 seconds'.
    With --explain, nothing is translated: one sentence says how the length compares with the model's usual ones.
    If no complete translation fits, the nearest complete one is written and reported as one that does not fit.
    Exit code 3: a line does not fit, is not complete, lost a placeholder, or could not be translated.
    """
    from ..endpoints.client import is_endpoint
    from ..length.speech import with_language
    from ..models.registry import good_for
    from ..translation.line_input import LineParser

    if not to:
        raise terminal.UsageError("--to is missing; give the target language, for example --to fr")
    if not (document or tsv) and text.lower().endswith((".md", ".markdown")) and terminal.existing_file(text):
        document, text = Path(text), ""  # line by line, its code and its tables would be damaged
    check_document(document, text, tsv, length, per_sentence, context)
    style = subtitle_style(cps, line, lines, preset, to)
    given = _input(text, document, out, tsv, in_place, bool(in_place or again or encoding), style is not None)
    parser = LineParser(with_language(length, to), unit, given.in_columns)
    pairs = _pairs(given, out, in_place, encoding, style, again)
    if given.files and not pairs:
        return
    if out and not given.files:
        _check_out(out, given, as_json)
    name = model or _default_model(source, to)
    check_options(
        is_endpoint(name),
        {"--no-control": no_control, "--beams": beams != BEAMS, "--reverse": reverse, "--document": document}
        | {"--device": device, "--engine": engine},
        {"--max-calls": max_calls},
    )
    if explain:
        if given.kind != "text" or parser.budget is None:
            raise terminal.UsageError("--explain is for one text and a --length")
        terminal.print_explanation(name, "translate", parser.budget, text, as_json)
        return
    if not model and (not pairs or any(map(is_subtitle, pairs))) and (purpose := good_for(name)):
        terminal.print_message(f"{name} is for {purpose}")
    cluster = bulk.cluster(engine, device, ray_address, workers, journal, given.kind == "lines")
    # Where candidates are not listed, they only widen the search: no words that they leave out are looked for.
    listed = is_endpoint(name) or (as_json and given.kind in ("text", "lines"))
    asked: dict[str, Any] = {"beams": max(beams, candidates), "candidates": candidates if listed else 1}
    asked |= {"min_limit": min_limit, "name": name}
    asked |= {"max_calls": max_calls, "reverse": reverse, "fitted": not no_control, "source": source, "target": to}
    if pairs:
        from ..localisation.files import translate_file
        from ..localisation.plan import Task

        task = Task(to, source, localise.length_rule(parser.budget, min_limit), localise.file_rules(), style, again)
        translator = _translator(device, engine=engine, **asked)
        work = partial(translate_file, translator=translator, task=task, encoding=encoding or None)
        localise.run(pairs, work, ("translating", "translated"), as_json)
    elif document:
        here = cast("Translator", _translator(device, engine=engine, **asked))
        translate_document(here, document, parser.budget, out, per_sentence, context, as_json)
    else:
        from ..translation.records import Translation

        reader, make = given.lines(), partial(_line_translator, **asked)
        translated = bulk.batch_work(cluster, make, BATCH_SIZE, Translation, device, engine=engine)
        _translate_texts(translated, parser, reader, text, out, as_json)


def _input(
    text: str, document: Path | None, out: Path | None, tsv: bool, in_place: bool, for_files: bool, for_subtitles: bool
) -> Input:
    """Return what is to be translated. `for_files`, `for_subtitles`: options are given that only such files have."""
    if document:
        given = Input("document", text, None if document == STDIN else document)
    else:
        given = read_argument(text, out, tsv=tsv, folders=bool(out or in_place))
    if given.kind == "text" and text.endswith("/") and Path(text).is_dir():
        raise terminal.UsageError(f"{text} is a folder; give --out for its string files")
    if for_files and not given.files:
        raise terminal.UsageError("--in-place, --again and --encoding are for string files, such as .po or .json")
    if for_subtitles and not given.files:
        raise terminal.UsageError("--preset, --cps, --line and --lines are for subtitle files: .srt, .vtt, .ass")
    return given


def _pairs(
    given: Input, out: Path | None, in_place: bool, encoding: str, style: "Style | None", again: bool
) -> list[localise.Pair]:
    """Return the string files to translate, each with the file to write; none if the input is no string file."""
    if given.files is None:
        return []
    pairs = localise.pairs(given.files, out, in_place, encoding, translates=True)
    if style:
        need_subtitles(pairs, "--preset, --cps, --line and --lines")
    return pairs if again else without_finished(pairs, given.files.is_dir())


def _check_out(out: Path, given: Input, as_json: bool) -> None:
    """Raise if texts or a document cannot be written to `out`, before minutes of loading and translating."""
    from ..atomic import partial_path

    if given.kind == "text" and not out.suffix and re.fullmatch(r"\w[\w.-]*\w", given.text):
        terminal.print_message(f"{given.text!r} is translated as a text: there is no file or folder of this name")
    if given.kind != "document" and not as_json and localise.is_string_file(out):
        problem = f"--out {out} is a string file, but {given.text!r} is none"
        raise terminal.UsageError(f"{problem}; name another file to write")
    if given.path and out.exists() and out.samefile(given.path):
        raise terminal.UsageError(f"--out {out} is the file to translate; name another file")
    if given.kind != "document":
        partial_path(out)  # raises if it cannot be written


def _default_model(source: str, target: str) -> str:
    """Return the short name of a model for these languages, such as en-it."""
    from ..models.registry import has_short_name

    name = f"{source}-{target}"
    if has_short_name(name):
        return name
    if source == target:
        raise terminal.UsageError(f"--from and --to are the same language, {target}; give another one")
    for language in (source, target):
        if not 2 <= len(language) <= 3:
            raise terminal.UsageError(f"a language is given by its code, such as fr, it or de; got {language!r}")
    advice = f"give one with --model, for example Helsinki-NLP/opus-mt-{name} (from the hub), or a folder"
    raise terminal.UsageError(f"no translator from {source} to {target} ships with Lengthwise; {advice}")


def _line_translator(device: str | None, **asked: Any) -> "bulk.Work[InputLine, Translation]":
    """Load the models and return what translates a batch of lines with them."""
    from ..translation.line_input import translate_lines

    return partial(translate_lines, _translator(device, **asked))


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


def _translate_texts(
    translated: "_Translate", parser: "LineParser", reader: Reader | None, text: str, out: Path | None, as_json: bool
) -> None:
    """Translate lines, or one text if there is no reader. Exit with 3 if a translation has a fault."""
    from ..atomic import partial_file

    with partial_file(out) if out else nullcontext(sys.stdout) as stream:
        printer = Printer(as_json, stream)
        if reader:
            _translate_lines(translated, parser, reader, printer)
        else:
            _translate_one(translated, text, parser.budget, printer)
    if not printer.all_well:
        raise typer.Exit(terminal.SOME_DO_NOT_FIT)


def _translate_one(translated: "_Translate", text: str, budget: "Budget | None", printer: Printer) -> None:
    from ..translation.line_input import InputLine

    with terminal.status("translating"):
        [(_, [one])] = translated([[InputLine(text, budget)]])
    printer.show_alone(one, dim=one.fits and one.complete and one.note is None)
    if one.error is not None and not printer.as_json:
        raise typer.Exit(terminal.SOME_DO_NOT_FIT)  # here: the file of --out stays as it is


def _translate_lines(translated: "_Translate", parser: "LineParser", reader: Reader, printer: Printer) -> None:
    batches = translated(map(parser.parse, reader.text_batches(BATCH_SIZE)))
    incomplete = print_lines(batches, reader, printer, ("translating", "translated"))
    done = terminal.counted(printer.done, "line")
    if printer.faulty or printer.errors:
        faults = terminal.counted(printer.misfits, "does not fit", "do not fit")
        faults += f", {printer.damaged:,} lost a placeholder or a number and {printer.errors:,} could not be translated"
        terminal.print_message(f"of {done}, {faults}")
    name_incomplete(incomplete, reader, done)
    name_words_left_out(printer, done)
