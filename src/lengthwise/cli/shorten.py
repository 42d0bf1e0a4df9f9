"""`lengthwise shorten`: shorten a text, or the lines of a file or of stdin, to one length or several."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import bulk, localise, options, terminal
from .input_lines import Reader, WholeFiles
from .inputs import Input, need_text, read_argument
from .loading import check_options, load, load_endpoint
from .options import argument, flag, integer, option
from .results import Printer, doubts, name_incomplete, name_words_left_out, print_lines
from .subtitle_style import Cps, Line, Lines, Preset, need_subtitles, subtitle_style

if TYPE_CHECKING:
    from ..length.budget import Budget
    from ..shortening.endpoint import EndpointShortener
    from ..shortening.records import Shortened
    from ..shortening.shortener import Shortener
    from ..translation.line_input import InputLine, LineParser

    _Shortener = Shortener | EndpointShortener
    # From batches of lines to each batch with its shortened texts.
    _Shorten = Callable[[Iterable[list[InputLine]]], Iterator[tuple[Sequence[InputLine], Iterable[Shortened]]]]

BATCH_SIZE = 8  # lines: enough to batch sentences of similar length, few enough to show progress


def shorten(
    text: Annotated[
        str,
        argument("A text, a string file or a folder of them, a text file, or - for stdin. Lines of text are texts."),
    ] = "",
    length: Annotated[str, option("'at most 80 chars', 'at most 0.6x', or several: 30,50,75.")] = "",
    form: Annotated[str, option("headline, sentence, or text (any number of sentences).", "FORM", "--as")] = "text",
    candidates: Annotated[int, integer("Rewrite the text N times; the JSON lists all candidates.")] = 4,
    faithful: Annotated[bool, flag("--faithful", "Only leave words out; rewrite nothing.")] = False,
    unit: Annotated[str, option("Read a bare number N as 'at most N' of this unit.", "UNIT")] = "chars",
    tsv: Annotated[bool, flag("--tsv", "Lines are: text, tab, length. [default: for .tsv files]")] = False,
    whole: Annotated[
        bool, flag("--whole", "A file is one text, such as an article; of a folder, each .txt and .md file.")
    ] = False,
    model: Annotated[
        str, option(f"{options.MODEL_HELP} {options.ENDPOINT_HELP} [default: shorten, headlines for --as headline]")
    ] = "",
    out: Annotated[Path | None, option("String files: the file to write.", "FILE")] = None,
    in_place: options.InPlace = False,
    source: Annotated[
        str, option("Subtitles: their language, for line breaks and --preset. [default: en]", "LANG", "--from")
    ] = "",
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
    """Say the same in less room.

    \b
    lengthwise shorten "The operation could not be completed because the disk is full." --length 40
    lengthwise shorten article.txt --whole --as headline --length 30,50,75
    lengthwise shorten articles/ --whole --as headline --length 75
    lengthwise shorten strings.tsv --faithful --json > short.jsonl
    lengthwise shorten locale/en.json --length "at most 40 chars" --out short/en.json
    lengthwise shorten film.srt --preset netflix --out short.srt

    Two ways compete for each text: words are left out, or a model rewrites it. Names, numbers, negations and
    placeholders that are left out, words that are not in the source, and words that may not belong together are named
    in a note: in the JSON, and for one text on stderr. It is made for English, and the note says if a text may not be
    English. Each line gives one line of output for each length, with --whole each file; the files of a folder
    are named before their texts. In a .tsv file, each line has its length in the second column, or in the column with
    the header "length" or "limit"; --length applies to lines without one. A text that fits already comes back as it is.
    Of a string file (PO, JSON, Android XML, ...), texts over their limits are shortened: the limits in the file, those
    of lengthwise.toml, or --length. It goes to OUT, or with --in-place to FILE itself. Subtitles have the limits of
    --preset, --cps, --line and --lines, and for each cue --length or lengthwise.toml.
    A model behind an API rewrites texts: it is asked, measured and asked again for the part that does not fit.
    With --explain, nothing is shortened: for each length, one sentence compares it with the shortest texts the model
    has found for such sources.
    Exit code 3: a text does not fit, is not complete, lost a placeholder, or could not be shortened; the shortest one
    found is printed.
    """
    from ..endpoints.client import is_endpoint
    from ..shortening.forms import FORMS, LANGUAGE_MODEL

    if form not in FORMS:
        raise terminal.UsageError(f"--as must be {', '.join(FORMS[:-1])} or {FORMS[-1]}; got {form!r}")
    style = subtitle_style(cps, line, lines, preset, source)
    given = _input(text, out, tsv, whole, in_place, bool(out or in_place or encoding), bool(style or source))
    if not (length or given.in_columns or given.files):
        raise terminal.UsageError("--length is missing; give for example --length 'at most 80 chars'")
    parsers = _parsers(length, unit, given.in_columns)
    check_options(
        is_endpoint(model),
        {"--faithful": faithful, "--device": device, "--engine": engine},
        {"--max-calls": max_calls},
    )
    if explain:
        _explain(given, parsers, model or LANGUAGE_MODEL, as_json)
        return
    cluster = bulk.cluster(engine, device, ray_address, workers, journal, given.kind in ("lines", "whole"))
    settings: dict[str, Any] = {"form": form, "candidates": candidates, "faithful": faithful}
    if given.files:
        from ..localisation.files import shorten_file
        from ..localisation.plan import Task

        if len(parsers) > 1:
            raise terminal.UsageError("a string file has one length for each text; give one --length")
        pairs = localise.pairs(given.files, out, in_place, encoding)
        if style or source:
            need_subtitles(pairs, "--preset, --cps, --line, --lines and --from")
        task = Task(None, source or "en", localise.length_rule(parsers[0].budget), localise.file_rules(), style)
        shortener = _shortener(model, form, device, engine, max_calls)
        work = partial(shorten_file, shortener=shortener, task=task, options=settings, encoding=encoding or None)
        localise.run(pairs, work, ("shortening", "shortened"), as_json)
        return
    reader, make = given.lines(), partial(_line_shortener, model=model, **settings)
    from ..shortening.records import Shortened  # here: numpy, which messages do not need

    size = BATCH_SIZE * len(parsers)
    here = {"engine": engine, "max_calls": max_calls, "shows": reader is None or sys.stdout.isatty()}
    shortened = bulk.batch_work(cluster, make, size, Shortened, device, **here)
    printer = Printer(as_json)
    if reader:
        _shorten_lines(reader, parsers, shortened, printer)
    else:
        _shorten_one(text, [parser.budget for parser in parsers if parser.budget], shortened, printer)
    if not printer.all_well:
        raise typer.Exit(terminal.SOME_DO_NOT_FIT)


def _input(
    text: str, out: Path | None, tsv: bool, whole: bool, in_place: bool, for_files: bool, for_subtitles: bool
) -> Input:
    """Return what is to be shortened. `for_files`, `for_subtitles`: options are given that only such files have."""
    if whole:
        if tsv:
            raise terminal.UsageError("--whole and --tsv exclude each other: an article has no column of lengths")
        need_text(text)
        if text != "-" and not Path(text).is_dir() and terminal.existing_file(text) is None:
            raise terminal.UsageError(f"--whole is for a file, a folder or stdin; there is no {text!r}")
        given = Input("whole", text, None if text == "-" else Path(text))
    else:
        given = read_argument(text, out, tsv=tsv, folders=bool(out or in_place))
    if given.kind == "text" and text.endswith("/") and Path(text).is_dir():
        raise terminal.UsageError(f"{text} is a folder; give --whole for its articles, or --out for its string files")
    if given.kind == "text" and (out or in_place) and len(text.split()) == 1:
        raise terminal.UsageError(f"there is no file or folder {text!r}; --out and --in-place are for string files")
    if for_files and not given.files:
        raise terminal.UsageError("--out, --in-place and --encoding are for string files, such as .po or .json")
    if for_subtitles and not given.files:
        raise terminal.UsageError("--preset, --cps, --line, --lines and --from are for subtitles: .srt, .vtt, .ass")
    if given.kind == "whole" and not WholeFiles(text).files:
        raise terminal.UsageError(f"the folder {text!r} has no .txt and no .md file")
    return given


def _parsers(length: str, unit: str, in_columns: bool) -> "list[LineParser]":
    """Return a parser of lines for each length in '30,50,75' or 'at most 30 chars, at most 1,000 chars'."""
    from ..length.budget import Budget
    from ..translation.line_input import LineParser

    try:
        Budget.parse(length)
        lengths = [length]
    except ValueError:
        lengths = [part.strip() for part in length.split(",")]
    try:
        return [LineParser(part, unit, in_columns) for part in lengths]
    except ValueError:
        return [LineParser(length, unit, in_columns)]  # raises an error about the whole


def _explain(given: Input, parsers: "list[LineParser]", model: str, as_json: bool) -> None:
    """Print where each length lies among the shortest texts that the model has found."""
    budgets = [parser.budget for parser in parsers if parser.budget]
    if given.kind != "text" or not budgets:
        raise terminal.UsageError("--explain is for one text and a --length")
    for budget in budgets:
        terminal.print_explanation(model, "shorten", budget, given.text, as_json)


def _shortener(model: str, form: str, device: str | None, engine: str | None, max_calls: int | None) -> "_Shortener":
    from ..endpoints.client import is_endpoint
    from ..shortening.shortener import load_shortener

    if is_endpoint(model):
        from ..shortening.endpoint import EndpointShortener

        return EndpointShortener(load_endpoint(model, max_calls))
    return load_shortener(model, form, load=partial(load, engine=engine), device=device)


def _line_shortener(
    device: str | None,
    *,
    model: str,
    engine: str | None,
    max_calls: int | None = None,
    shows: bool = False,
    **settings: Any,
) -> "bulk.Work[InputLine, Shortened]":
    """Load the models and return what shortens a batch of lines with them. `shows`: it shows what is being done."""
    return partial(_shorten_batch, _shortener(model, settings["form"], device, engine, max_calls), settings, shows)


def _shorten_batch(
    shortener: "_Shortener", settings: dict[str, Any], shows: bool, lines: "Sequence[InputLine]"
) -> "list[Shortened]":
    """Return a result for each line; an empty line, and a header, stays as it is."""
    from dataclasses import replace

    from ..shortening.records import Shortened

    results = []
    for line in lines:
        fault = line.error or (None if line.budget else "the line has no length; give --length for such lines")
        results.append(Shortened(line.text.strip(), 0, "", "", True, True, "", 0, source=line.text, route="unchanged"))
        if line.error or (fault and line.text.strip() and not line.is_header):
            results[-1] = replace(results[-1], text="", error=fault, fits=False, complete=False, route="")
    open_ = [n for n, line in enumerate(lines) if line.text.strip() and not line.is_header and not results[n].error]
    texts, budgets = [lines[n].text for n in open_], [lines[n].budget or "" for n in open_]
    count = len(set(texts))
    doing = "shortening" if count < 2 else f"shortening {count} texts"
    with terminal.status(doing) if shows else nullcontext(lambda message: None) as show:
        found = shortener.shorten(texts, budgets, **settings, progress=lambda what: show(f"{doing}: {what}"))
    for n, one in zip(open_, found, strict=True):
        results[n] = one
    return results


def _shorten_one(text: str, budgets: "list[Budget]", shortened: "_Shorten", printer: Printer) -> None:
    from ..translation.line_input import InputLine

    # One batch: the lengths share most of the work.
    [(_, results)] = shortened([[InputLine(text, budget) for budget in budgets]])
    for one in results:
        printer.show_alone(one, dim=one.fits and one.complete and one.note is None)


def _shorten_lines(reader: Reader, parsers: "list[LineParser]", shortened: "_Shorten", printer: Printer) -> None:
    batches = shortened(_parsed(reader, parsers))
    incomplete = print_lines(batches, reader, printer, ("shortening", "shortened"), each=len(parsers))
    done = terminal.counted(printer.done, "text")
    if printer.faulty or printer.errors:
        faults = terminal.counted(printer.faulty, "does not fit or lost", "do not fit or lost")
        terminal.print_message(f"of {done}, {faults} a placeholder, and {printer.errors:,} could not be shortened")
    name_incomplete(incomplete, reader, done)
    name_words_left_out(printer, done)
    for part in doubts(0 if printer.as_json else printer.torn, printer.foreign):
        terminal.print_message(f"of {done}, {part}")


def _parsed(reader: Reader, parsers: "list[LineParser]") -> "Iterator[list[InputLine]]":
    """Yield batches of lines, each line once for each of the lengths."""
    for batch in reader.text_batches(BATCH_SIZE):
        rows = [parser.parse(batch) for parser in parsers]
        yield [line for same in zip(*rows, strict=True) for line in same]
