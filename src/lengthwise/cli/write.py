"""`lengthwise write`: write a text for one prompt, or for each line of stdin, within a length."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..generation.options import is_sampling
from . import bulk, options, terminal
from .input_lines import StdinLines
from .inputs import need_file, need_utf8
from .loading import check_options, load, load_endpoint
from .options import argument, option
from .results import Printer, show_all

if TYPE_CHECKING:
    from ..endpoints.writer import EndpointWriter
    from ..generation.generator import Writer, Written
    from ..length.budget import Budget

Write = Callable[..., "Sequence[Written]"]  # Writer.write with all options but the seed
Row = tuple[int, str, str | None]  # the number of a line, its prompt, and the reason why it cannot be read


def write(
    prompt: Annotated[str, argument("The prompt; - reads prompts from stdin, one per line.")],
    length: Annotated[str, option("Required: 'at most 280 chars', '40-60 words', 'exactly 50 words', ...")] = "",
    model: Annotated[str, option(f"{options.WRITER_HELP} {options.ENDPOINT_HELP}")] = "smollm2",
    candidates: options.Candidates = 1,
    temperature: Annotated[float | None, option("Sampling temperature; 0 decodes greedily.", "T", min=0)] = None,
    seed: options.Seed = 0,
    system: options.System = None,
    beams: options.Beams = 1,
    engine: options.BulkEngine = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    explain: options.Explain = False,
    max_calls: options.MaxCalls = None,
    ray_address: options.RayAddress = None,
    workers: options.Workers = None,
    journal: options.Journal = None,
    as_json: options.Json = False,
) -> None:
    """Write a text that fits.

    \b
    lengthwise write "Describe a sunset over the sea." --length "at most 280 chars"
    lengthwise write - --length "40-60 words" --candidates 4 < prompts.txt > texts.jsonl
    lengthwise write "Describe a sunset over the sea." --length "40-60 words" --model openai:llama3.2@http://localhost:11434/v1

    One prompt gives a text, or a JSON object with --json. Prompts from stdin give one JSON object per line, in input
    order. Prompts that arrive together are written in one batch. With sampling, each prompt is written alone, and line
    n uses the seed --seed + n - 1, so its text does not depend on other lines.
    A model behind an API is asked, measured and asked again for the part that does not fit; its key is read from
    LENGTHWISE_API_KEY or, without @URL, OPENAI_API_KEY.
    With --explain, nothing is written: one sentence says how the length compares with the model's own texts.
    Exit code 3: a text does not fit; the best one is printed nevertheless.
    """
    from ..endpoints.client import is_endpoint
    from ..length.budget import as_budget

    if not length:
        raise terminal.UsageError("--length is missing; give for example --length 'at most 280 chars'")
    if not prompt.strip():
        raise terminal.UsageError("the prompt is empty; give a text, or - to read stdin")
    for given in (prompt, system or ""):
        need_utf8(given)
    budget = as_budget(length)
    if explain:
        if prompt == "-":
            raise terminal.UsageError("--explain is for one prompt; give it in place of -")
        terminal.print_explanation(model, "write", budget, prompt, as_json)
        return
    terminal.warn_if_file(prompt)
    need_file(prompt, meant="prompt")
    sampling = is_sampling(candidates, beams, temperature)  # raises if they contradict, before a model is loaded
    generation: dict[str, Any] = {} if temperature is None else {"temperature": temperature}
    generation |= {"num_beams": beams} if beams > 1 else {}
    remote = is_endpoint(model)
    check_options(
        remote,
        {"--beams": beams > 1, "--device": device, "--dtype": dtype, "--engine": engine},
        {"--max-calls": max_calls},
    )
    cluster = bulk.cluster(engine, device, ray_address, workers, journal, lines=prompt == "-")
    lines = StdinLines() if prompt == "-" else None  # stdin is read while the model loads
    asked: dict[str, Any] = {"budgets": budget, "system": system, "candidates": candidates, **generation}
    # One line per call: the seed of a text depends on its index in the call, and calls on when lines arrive.
    # An endpoint gives line n the same seed in any call.
    alone = sampling and not remote
    printer = Printer(as_json or prompt == "-")
    if cluster and lines:
        from ..engines.base import Engine
        from ..generation.generator import Written

        size = 1 if alone else max(1, Engine.batch_size // max(candidates, beams))
        make = partial(_line_writer, model=model, dtype=dtype, seed=seed, **asked)
        _write_lines(lines, size, partial(cluster.run, make, size=size, kind=Written), printer)
    else:
        writer: Writer | EndpointWriter
        if remote:
            writer = load_endpoint(model, max_calls)
        else:
            writer = load(model, device, dtype=dtype, engine=engine)
            _warn_of_window(writer, budget)
        call: Write = partial(writer.write, **asked)
        if lines is None:
            _write_one(prompt, partial(call, seed=seed), getattr(writer, "model", None), printer)
        else:
            size = 1 if alone else max(1, writer.batch_size // max(candidates, beams))
            _write_lines(lines, size, partial(bulk.in_turn, partial(_write_batch, call, seed)), printer)
    if printer.misfits or printer.errors:
        raise typer.Exit(terminal.SOME_DO_NOT_FIT)


def _warn_of_window(writer: "Writer", budget: "Budget") -> None:
    """Warn of a limit beyond the context window: a model that repeats itself can take minutes to reach it."""
    window = writer.engine.window
    reach = window * (1 if budget.unit in ("tokens", "words") else 8)  # units per token, more than usual
    if not budget.of_source and budget.low <= reach < (budget.high or 0):  # if low is beyond it, `write` raises
        terminal.print_message(f"'{budget}' is more than the model can write: its context window has {window:,} tokens")


def _token_count(model: Any, show: Callable[[str], None]) -> Any:
    """Return a context in which `show` receives the tokens so far on a terminal: a long text may take minutes."""
    if not sys.stderr.isatty() or model is None:  # an engine without a module of torch
        return nullcontext()
    steps = count(1)
    return model.register_forward_hook(lambda *_: show(f"writing: {next(steps):,} tokens"))


def _write_one(prompt: str, call: Write, model: Any, printer: Printer) -> None:
    with terminal.status("writing") as show, _token_count(model, show):
        [written] = call([prompt])
    dim = sys.stdout.isatty() or (written.fits and written.complete)
    printer.show_alone(written, dim, **({"prompt": prompt} if printer.as_json else {}))


def _write_lines(
    lines: StdinLines,
    size: int,
    write: "Callable[[Iterable[list[Row]]], Iterator[tuple[Sequence[Row], Iterable[Written]]]]",
    printer: Printer,
) -> None:
    def show(_: int, row: Row, written: "Written") -> None:
        printer.show(written, prompt=row[1])

    show_all(write(_rows(lines, size)), lines, printer, ("writing", "written"), show)
    if not printer.all_well:
        counts = [
            terminal.counted(printer.misfits, "does not fit", "do not fit"),
            terminal.counted(printer.incomplete, "fits but is not complete", "fit but are not complete"),
            f"and {printer.errors:,} could not be written",
        ]
        terminal.print_message(f"of {terminal.counted(printer.done, 'text')}, {', '.join(counts)}")


def _rows(lines: StdinLines, size: int) -> Iterator[list[Row]]:
    """Yield the lines in batches, each with its number, which begins at 1."""
    number = 1
    for batch in lines.batches(size):
        yield [(n, *_decoded(line, f"line {n}")) for n, line in enumerate(batch, number)]
        number += len(batch)


def _line_writer(
    device: str | None, *, model: str, engine: str | None, dtype: str | None, seed: int, **asked: Any
) -> "bulk.Work[Row, Written]":
    """Load a model and return what writes a batch of lines with it."""
    return partial(_write_batch, partial(load(model, device, dtype=dtype, engine=engine).write, **asked), seed)


def _write_batch(call: Write, seed: int, rows: Sequence[Row]) -> "list[Written]":
    """Return a text for each line. A line that is not UTF-8 gives one with an error."""
    texts = call(["" if error else prompt for _, prompt, error in rows], seed=(seed + rows[0][0] - 1) % 2**63)
    return [
        replace(written, error=error) if error else written for (_, _, error), written in zip(rows, texts, strict=True)
    ]


def _decoded(line: bytes, name: str) -> tuple[str, str | None]:
    try:
        return terminal.decode(line, name).rstrip("\r\n"), None
    except ValueError as error:
        return line.decode("utf-8", "replace").rstrip("\r\n"), str(error)
