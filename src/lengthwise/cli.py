"""The command line: parses, calls, prints.

Texts and JSON go to stdout, all that is said about them to stderr. How texts are written and measured is for others to
know; what is slow to import is imported by the command that needs it, so that help and `measure` come at once.
Exit codes: 0 all fits, 2 bad usage, 3 some text does not fit or could not be written, 130 Ctrl-C, 141 closed pipe.
"""

import io
import json
import math
import os
import queue
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from . import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from .decode.write import Writer, Written
    from .units import Unit

BAD_USAGE, SOME_DO_NOT_FIT, INTERRUPTED, CLOSED_PIPE = 2, 3, 130, 141
LOOK_AHEAD = 1024  # lines of stdin to hold while the model is busy
AT_ONCE = 0.05  # seconds: a line that comes later than this after another is not waited for

# typer carries its click under a name that differs between versions; of what it shows, this is the common way there.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def main(args: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code. Whatever a user can get wrong is told in one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")  # a pipe has no locale
    try:
        _run(list(sys.argv[1:] if args is None else args))
        sys.stdout.flush()  # while a closed pipe can still be told from a fault
    except typer.Exit as end:
        return end.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads on. Python would complain when it flushes stdout at its end: let it flush into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except UsageError as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "lengthwise")
        _complain(f"{error.format_message().rstrip('.')}; see {command} --help")  # type: ignore[attr-defined]
        return BAD_USAGE
    except (ValueError, OSError) as error:
        _complain(str(error))
        return BAD_USAGE
    return 0


def _run(args: list[str]) -> None:
    # Not `app()`: it prints errors over several lines and has its own idea of interrupts and closed pipes.
    command = typer.main.get_command(app)
    with command.make_context("lengthwise", args) as context:
        command.invoke(context)


def _complain(message: str) -> None:
    lines = "\n".join(line.strip() for line in message.splitlines() if line.strip())
    line = re.sub(r"(?<=[.:;?!])\n", " ", lines).replace("\n", "; ")
    print(f"lengthwise: {line}", file=sys.stderr, flush=True)


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)


def _console() -> "Console":
    """For what is told beside the texts."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"lengthwise {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def lengthwise(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Text that fits: a model writes it, within the length you say.

    \b
    lengthwise write "Describe a lighthouse." --length "at most 280 chars"
    lengthwise measure "Où est-il ?"
    lengthwise models
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


# ---- write


@app.command()
def write(
    prompt: Annotated[str, typer.Argument(help="What to write about; - reads prompts from stdin, one a line.")],
    length: Annotated[
        str, typer.Option(help="How long: 'at most 280 chars', '40-60 words', '~100 tokens', ... Must be given.")
    ] = "",
    model: Annotated[str, typer.Option(help="A name that `lengthwise models` lists, a folder or hub id.")] = "smollm2",
    candidates: Annotated[int, typer.Option(min=1, metavar="N", help="Write so many and keep the best.")] = 1,
    temperature: Annotated[
        float | None, typer.Option(min=0, metavar="T", help="Draw tokens at random; 0 takes the likeliest.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed draws the same text.")] = 0,
    system: Annotated[str | None, typer.Option(help="Instructions that come before the prompt.")] = None,
    beams: Annotated[int, typer.Option(min=1, metavar="N", help="Search with so many beams, do not draw.")] = 1,
    as_json: Json = False,
) -> None:
    """Write a text that fits.

    \b
    lengthwise write "Describe a lighthouse." --length "at most 280 chars"
    lengthwise write - --length "40-60 words" --candidates 4 < prompts.txt > texts.jsonl

    One prompt gives a text, or with --json an object; prompts from stdin give a line of JSON each, in their order.
    Lines that arrive together are written together, and when drawn at random share their random numbers.
    Ends with 3 if a text does not fit: the best one is printed all the same.
    """
    from .budget import as_budget

    if not length:
        raise UsageError("how long may the text be? For example --length 'at most 280 chars'")
    if not prompt.strip():
        raise UsageError("the prompt is empty; there is nothing to write about")
    for argument in (prompt, system or ""):
        _decoded(argument.encode("utf-8", "surrogateescape"), "an argument")
    budget = as_budget(length)
    generation = _generation(candidates, temperature, beams)
    lines = _Lines() if prompt == "-" else None  # stdin is read while the model loads
    writer = _load(model)
    writes = partial(writer.write, budgets=budget, system=system, candidates=candidates, **generation)
    if lines is None:
        all_fit = _write_one(writes, prompt, seed, as_json)
    else:
        size = max(1, writer.batch_size // max(candidates, beams))
        all_fit = _write_lines(writes, lines, size, seed)
    if not all_fit:
        raise typer.Exit(SOME_DO_NOT_FIT)


def _generation(candidates: int, temperature: float | None, beams: int) -> dict[str, Any]:
    """The options of `generate`, once they agree: told here, before a model is loaded."""
    if temperature is not None and not math.isfinite(temperature):
        raise UsageError(f"--temperature must be a number; got {temperature}")
    if beams > 1 and temperature:
        raise UsageError("--beams searches and --temperature draws; give one of them")
    if 1 < beams < candidates:
        raise UsageError(f"{candidates} candidates need as many beams; got {beams}")
    if beams == 1 and candidates > 1 and temperature == 0:
        raise UsageError("candidates differ only if drawn: give a --temperature above 0, or --beams")
    return {
        **({} if temperature is None else {"temperature": temperature}),
        **({} if beams == 1 else {"num_beams": beams}),
    }


def _load(name: str) -> "Writer":
    _folder(name)  # a wrong name is told before torch takes its seconds, and a download may show how far it is
    with _console().status("loading the model"):
        _hush()
        from .checkpoint import load

        return load(name)


def _folder(name: str) -> "Path":
    from .models import ModelNotFound, resolve

    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # read when the hub's library is imported
    try:
        return resolve(name)
    except ModelNotFound as error:
        raise ValueError(str(error)) from error


def _hush() -> None:
    """No chatter from the libraries, unless Python was told to warn."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if not sys.warnoptions:
        warnings.simplefilter("ignore")


def _write_one(writes: Callable[..., "list[Written]"], prompt: str, seed: int, as_json: bool) -> bool:
    with _console().status("writing"):
        [written] = writes([prompt], seed=seed)
    if as_json:
        _print_json(written.as_json())
    elif written.error is None:
        print(written.text, flush=True)
    if written.error is not None:
        _complain(written.error)
        return False
    if sys.stdout.isatty():
        _console().print(_verdict(written), style="dim")
    elif not (written.fits and written.complete):
        _complain(_verdict(written))
    return written.fits


def _verdict(written: "Written") -> str:
    fits = "fits" if written.fits else "does not fit"
    complete = "complete" if written.complete else "not complete"
    return f"{written.length} of {written.budget} · {fits} · {complete}"


def _write_lines(writes: Callable[..., "list[Written]"], lines: "_Lines", size: int, seed: int) -> bool:
    from rich.progress import Progress

    done = misfits = errors = 0
    # On one terminal the lines themselves show how far it is, and a bar would stand in their way.
    quiet = sys.stdout.isatty() or not sys.stderr.isatty()
    with Progress(console=_console(), disable=quiet, redirect_stdout=False, transient=True) as bar:
        task = bar.add_task("writing", total=None)
        for batch in lines.batches(size):
            for written in _write_batch(writes, batch, done + 1, (seed + done) % 2**63):
                _print_json(written.as_json())
                misfits += written.error is None and not written.fits
                errors += written.error is not None
            done += len(batch)
            bar.update(task, completed=done, total=lines.seen)
    if misfits or errors:
        _complain(f"of {done} texts, {misfits} do not fit and {errors} could not be written")
    return not (misfits or errors)


def _write_batch(
    writes: Callable[..., "list[Written]"], batch: list[bytes], number: int, seed: int
) -> "Iterator[Written]":
    """The texts for these lines of stdin, the first of which has this number; a bad line gives a row that says so."""
    prompts, faults = [], {}
    for place, line in enumerate(batch):
        try:
            prompts.append(_decoded(line, f"line {number + place}").rstrip("\r\n"))
        except ValueError as error:
            faults[place] = str(error)
            prompts.append("")  # which is not written
    for place, written in enumerate(writes(prompts, seed=seed)):
        yield replace(written, error=faults[place]) if place in faults else written


class _Lines:
    """The lines of stdin, read by a thread of its own, so that those which are there need not wait for others."""

    def __init__(self) -> None:
        self.seen = 0
        self._items: queue.Queue[bytes | OSError | None] = queue.Queue(LOOK_AHEAD)  # None: the end
        self._end: list[OSError | None] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        end = None
        try:
            with _stdin() as stdin:
                for line in stdin:
                    self.seen += 1
                    self._items.put(line)
        except OSError as error:
            end = error
        self._items.put(end)

    def batches(self, size: int) -> Iterator[list[bytes]]:
        """All lines in order, as many at a time as are there: at least one, at most `size`."""
        while not self._end:
            if batch := list(self._ready(size)):
                yield batch
        if self._end[0] is not None:
            raise self._end[0]

    def _ready(self, size: int) -> Iterator[bytes]:
        patience = None  # for the first line as long as it takes
        for _ in range(size):
            try:
                item = self._items.get(timeout=patience)
            except queue.Empty:
                return
            if not isinstance(item, bytes):
                self._end.append(item)
                return
            yield item
            patience = AT_ONCE


def _stdin() -> BinaryIO:
    """Not sys.stdin: its lock, held by a thread that waits for a line, would crash Python at its end."""
    return open(0, "rb", closefd=False)


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} is not UTF-8: byte {data[error.start]:#x} at {error.start}; convert it") from None


# ---- demo

DEMO_BUDGETS = ("at most 100 chars", "at most 40 words", "60-90 words")


@app.command()
def demo(
    question: Annotated[str, typer.Argument(help="What to ask.")] = "Why do leaves change colour in autumn?",
    model: Annotated[str, typer.Option(help="A name that `lengthwise models` lists, a folder or hub id.")] = "smollm2",
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Save the table as a picture, too.")] = None,
    as_json: Json = False,
) -> None:
    """Answer one question at three budgets.

    \b
    lengthwise demo
    lengthwise demo "How do bees make honey?"
    """
    writer = _load(model)
    with _console().status("writing"):
        answers = writer.write([question] * len(DEMO_BUDGETS), DEMO_BUDGETS)
    if as_json:
        for answer in answers:
            _print_json(answer.as_json())
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("target", "answer", "length", "fits", "complete", title=question, show_lines=True, title_style="bold")
    for answer in answers:
        marks = ("yes" if answer.fits else "no", "yes" if answer.complete else "no")
        table.add_row(answer.budget, answer.text, f"{answer.length} {answer.unit}", *marks)
    console = Console(record=bool(svg), width=100 if svg else None, markup=False, highlight=False)
    console.print(table)
    if svg:
        console.save_svg(svg, title=f"lengthwise demo --model {model}", code_format=_plain_svg())


def _plain_svg() -> str:
    """rich's picture without the fonts that it would fetch from elsewhere."""
    from rich._export_format import CONSOLE_SVG_FORMAT

    return re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


# ---- measure


@app.command()
def measure(
    text: Annotated[str, typer.Argument(help="The text; - reads it from stdin.")],
    unit: Annotated[
        list[str] | None, typer.Option(metavar="UNIT", help="Count in this unit; may be given again. [default: all]")
    ] = None,
    tokenizer: Annotated[str | None, typer.Option(help="Count tokens too, as this model does: name or folder.")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Measure each line of stdin; a line of JSON each.")] = False,
    as_json: Json = False,
) -> None:
    """Say how long a text is, white space at both ends aside.

    \b
    lengthwise measure "Où est-il ?"
    lengthwise measure - --unit words < chapter.txt
    lengthwise measure - --lines --tokenizer smollm2 < titles.txt

    With a single --unit it prints only the number. JSON names the rule that each unit counts by (its signature).
    """
    if lines and text != "-":
        raise UsageError("--lines measures the lines of stdin; give - as the text")
    units = _units(unit or [], tokenizer)
    counter = _tokenizer(tokenizer) if tokenizer else None
    lengths = partial(_lengths, units=units, tokenizer=counter)
    rules = {"signatures": {unit.name: unit.signature for unit in units}}
    rules |= {"tokenizer": tokenizer} if tokenizer else {}  # type: ignore[dict-item]
    if lines:
        _measure_lines(lengths, rules)
        return
    found = lengths(_decoded(_stdin().read(), "stdin") if text == "-" else text)
    if as_json:
        _print_json({"lengths": found, **rules})
    elif unit and len(units) == 1:
        print(found[units[0].name])
    else:
        for name, length in found.items():
            print(f"{name:<13} {length:>7}")


def _units(names: list[str], tokenizer: str | None) -> "list[Unit]":
    from .units import UNITS, unit_named

    units = [unit_named(name) for name in names] or [unit for unit in UNITS.values() if unit.name != "tokens"]
    if tokenizer:
        units.append(UNITS["tokens"])
    elif UNITS["tokens"] in units:
        raise UsageError("each model has its own tokens: say whose, for example --tokenizer smollm2")
    return list(dict.fromkeys(units))


def _tokenizer(name: str) -> Any:
    folder = _folder(name)
    from transformers import AutoTokenizer

    _hush()
    return AutoTokenizer.from_pretrained(folder)


def _lengths(text: str, units: "list[Unit]", tokenizer: Any) -> dict[str, int]:
    from .units import measure

    return {unit.name: measure(text, unit.name, tokenizer=tokenizer) for unit in units}


def _measure_lines(lengths: Callable[[str], dict[str, int]], rules: dict[str, Any]) -> None:
    errors = 0
    for number, line in enumerate(_stdin(), 1):
        try:
            _print_json({"lengths": lengths(_decoded(line, f"line {number}")), **rules})
        except ValueError as error:
            errors += 1
            _print_json({"error": str(error)})
    if errors:
        _complain(f"{errors} lines could not be measured")
        raise typer.Exit(SOME_DO_NOT_FIT)


# ---- models


@app.command()
def models(as_json: Json = False) -> None:
    """List the models that have a short name.

    \b
    lengthwise models
    lengthwise write "Describe a lighthouse." --length "at most 20 words" --model ./my-model

    --model takes these names, the path of a folder in Hugging Face's layout, and hub ids (owner/name).
    """
    from .models import known

    rows = known()
    if as_json:
        _print_json([asdict(row) | {"path": row.path and str(row.path)} for row in rows])
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("model", "", "size", "licence", "where", box=None, pad_edge=False)
    for row in rows:
        size = f"{row.size / 1e6:.0f} MB"
        table.add_row(row.name, row.description, size, row.licence, row.where + (f": {row.path}" if row.path else ""))
    console = Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 1000)  # a pipe has no edge
    console.print(table)
    console.print("\n--model takes these names, a folder, or a hub id (owner/name).")
