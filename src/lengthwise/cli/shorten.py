"""`lengthwise shorten`: shorten a text, or the lines of a file or of stdin, to one length or several."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import bulk, localise, options, terminal
from .input_lines import FileLines, StdinLines, WholeFiles
from .loading import check_options, load, load_endpoint
from .options import argument, flag, integer, option
from .subtitle_style import Cps, Line, Lines, Preset, need_subtitles, subtitle_style

if TYPE_CHECKING:
    from ..length.budget import Budget
    from ..localisation.plan import Task
    from ..shortening.endpoint import EndpointShortener
    from ..shortening.records import Shortened
    from ..shortening.shortener import Shortener
    from ..translation.line_input import InputLine, LineParser

    _Shortener = Shortener | EndpointShortener
    # From batches of lines to each batch with its shortened texts.
    _Shorten = Callable[[Iterable[list[InputLine]]], Iterator[tuple[Sequence[InputLine], list[Shortened]]]]

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
    placeholders that are left out, and words that are not in the source, are named in a note: in the JSON, and for one
    text on stderr. Each line gives one line of output for each length, with --whole each file; the files of a folder
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
    if not text.strip():
        raise terminal.UsageError("the text is empty; give a text, a file, or - to read stdin")
    terminal.decode(text.encode("utf-8", "surrogateescape"), "an argument")
    file = None if text == "-" else terminal.existing_file(text)
    strings = None if tsv or whole else localise.string_files(text, folders=bool(out or in_place))
    if whole and text != "-" and file is None and not Path(text).is_dir():
        raise terminal.UsageError(f"--whole is for a file, a folder or stdin; there is no {text!r}")
    if text.endswith("/") and Path(text).is_dir() and not (whole or strings):
        raise terminal.UsageError(f"{text} is a folder; give --whole for its articles, or --out for its string files")
    if file is None and localise.names_no_file(text, out):
        raise terminal.UsageError(f"there is no file {text!r}; if it is a text, give - and the text on stdin")
    if not strings and (out or in_place) and file is None and len(text.split()) == 1:
        raise terminal.UsageError(f"there is no file or folder {text!r}; --out and --in-place are for string files")
    if not strings and (out or in_place or encoding):
        raise terminal.UsageError("--out, --in-place and --encoding are for string files, such as .po or .json")
    in_columns = tsv or (file is not None and not whole and file.name.endswith((".tsv", ".tsv.gz")))
    if not length and not in_columns and not strings:
        raise terminal.UsageError("--length is missing; give for example --length 'at most 80 chars'")
    style = subtitle_style(cps, line, lines, preset, source)
    if (style or source) and not strings:
        raise terminal.UsageError("--preset, --cps, --line, --lines and --from are for subtitles: .srt, .vtt, .ass")
    parsers = _parsers(length, unit, in_columns)
    check_options(
        is_endpoint(model),
        {"--faithful": faithful, "--device": device, "--engine": engine},
        {"--max-calls": max_calls},
    )
    if explain:
        _explain(text, file is None and text != "-" and not strings, parsers, model or LANGUAGE_MODEL, as_json)
        return
    in_lines = (text == "-" or file is not None or whole) and not strings
    cluster = bulk.cluster(engine, device, ray_address, workers, journal, in_lines)
    settings: dict[str, Any] = {"form": form, "candidates": candidates, "faithful": faithful}
    if strings:
        from ..localisation.plan import Task

        if len(parsers) > 1:
            raise terminal.UsageError("a string file has one length for each text; give one --length")
        found = localise.pairs(strings, out, in_place, encoding)
        if style or source:
            need_subtitles(found, "--preset, --cps, --line, --lines and --from")
        task = Task(None, source or "en", localise.length_rule(parsers[0].budget), localise.file_rules(), style)
        _shorten_files(_shortener(model, form, device, engine, max_calls), found, task, settings, encoding, as_json)
        return
    articles = WholeFiles(text) if whole else None
    if articles and not articles.files:
        raise terminal.UsageError(f"the folder {text!r} has no .txt and no .md file")
    stdin = StdinLines() if text == "-" and not whole else None  # stdin is read while the model loads
    if cluster:
        from ..shortening.records import Shortened

        make = partial(_line_shortener, model=model, **settings)
        shortened: _Shorten = partial(cluster.run, make, size=BATCH_SIZE * len(parsers), kind=Shortened)
    else:
        make_here = partial(_line_shortener, model=model, engine=engine, max_calls=max_calls)
        shortened = partial(bulk.in_turn, make_here(device, **settings))
    printer = _Printer(as_json)
    if given := articles or (FileLines(file) if file else stdin):
        with terminal.report_interrupt(lambda: given.progress(printer.done // len(parsers), "shortened")):
            _shorten_lines(given, parsers, shortened, printer)
    else:
        _shorten_one(text, [parser.budget for parser in parsers if parser.budget], shortened, printer)
    if printer.misfits or printer.errors or printer.incomplete:
        raise typer.Exit(terminal.SOME_DO_NOT_FIT)


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


def _explain(text: str, is_text: bool, parsers: "list[LineParser]", model: str, as_json: bool) -> None:
    """Print where each length lies among the shortest texts that the model has found."""
    budgets = [parser.budget for parser in parsers if parser.budget]
    if not is_text or not budgets:
        raise terminal.UsageError("--explain is for one text and a --length")
    for budget in budgets:
        terminal.print_explanation(model, "shorten", budget, text, as_json)


def _shortener(model: str, form: str, device: str | None, engine: str | None, max_calls: int | None) -> "_Shortener":
    from ..endpoints.client import is_endpoint
    from ..shortening.shortener import load_shortener

    if is_endpoint(model):
        from ..shortening.endpoint import EndpointShortener

        return EndpointShortener(load_endpoint(model, max_calls))
    return load_shortener(model, form, load=partial(load, engine=engine), device=device)


def _line_shortener(
    device: str | None, *, model: str, engine: str | None, max_calls: int | None = None, **settings: Any
) -> "bulk.Work[InputLine, Shortened]":
    """Load the models and return what shortens a batch of lines with them."""
    return partial(_shorten_batch, _shortener(model, settings["form"], device, engine, max_calls), settings)


def _shorten_batch(
    shortener: "_Shortener", settings: dict[str, Any], lines: "Sequence[InputLine]"
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
    budgets = [lines[n].budget or "" for n in open_]
    for n, one in zip(open_, shortener.shorten([lines[n].text for n in open_], budgets, **settings), strict=True):
        results[n] = one
    return results


class _Printer:
    """Prints results one by one and counts those that do not fit or have another fault."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.done = self.misfits = self.errors = self.incomplete = 0

    def show(self, one: "Shortened", file: str = "") -> None:
        self.done += 1
        if self.as_json:
            terminal.print_json(({"file": file} if file else {}) | one.as_json())
        else:
            print(f"{file}\t{one.text}" if file else one.text, flush=True)
        self.errors += one.error is not None
        self.misfits += one.error is None and not (one.fits and one.intact)
        self.incomplete += one.fits and not one.complete


def _shorten_files(
    shortener: "_Shortener",
    found: "list[localise.Pair]",
    task: "Task",
    settings: dict[str, Any],
    encoding: str,
    as_json: bool,
) -> None:
    from ..localisation.files import shorten_file

    localise.run(
        found,
        lambda path, out, progress: shorten_file(
            path, out, shortener, task, options=settings, encoding=encoding or None, progress=progress
        ),
        ("shortening", "shortened"),
        as_json,
    )


def _shorten_one(text: str, budgets: "list[Budget]", shortened: "_Shorten", printer: _Printer) -> None:
    from ..translation.line_input import InputLine

    # One batch: the lengths share most of the work.
    [(_, results)] = shortened([[InputLine(text, budget) for budget in budgets]])
    for one in results:
        if one.error is None or printer.as_json:
            printer.show(one)
        else:
            printer.errors += 1
        terminal.print_verdict(one, dim=one.fits and one.complete and one.note is None)


def _shorten_lines(
    source: StdinLines | FileLines | WholeFiles,
    parsers: "list[LineParser]",
    shortened: "_Shorten",
    printer: _Printer,
) -> None:
    number, names = 0, getattr(source, "names", [])
    with terminal.progress_bar(disable=sys.stdout.isatty()) as bar:  # on a terminal, the lines show the progress
        task = bar.add_task("shortening", total=None)
        for lines, texts in shortened(_parsed(source, parsers)):
            for n, (line, one) in enumerate(zip(lines, texts, strict=True)):
                if line.is_header:
                    if not printer.as_json and n % len(parsers) == 0:
                        print(line.text, flush=True)
                    continue
                place = number + n // len(parsers)
                printer.show(one, names[place] if len(names) > 1 else "")
                if not printer.as_json and not (one.fits and one.intact):
                    where = names[place] if names else f"line {place + 1}"
                    terminal.print_message(f"{where}: {one.error or terminal.verdict(one)}")
            number += len(lines) // len(parsers)
            bar.update(task, completed=number, total=source.seen)
    if printer.misfits or printer.errors or printer.incomplete:
        counts = f"{printer.misfits} do not fit or lost a placeholder, {printer.incomplete} fit but are not complete"
        terminal.print_message(f"of {printer.done} texts, {counts}, and {printer.errors} could not be shortened")


def _parsed(source: StdinLines | FileLines | WholeFiles, parsers: "list[LineParser]") -> "Iterator[list[InputLine]]":
    """Yield batches of lines, each line once for each of the lengths."""
    for batch in source.text_batches(BATCH_SIZE):
        rows = [parser.parse(batch) for parser in parsers]
        yield [line for same in zip(*rows, strict=True) for line in same]
