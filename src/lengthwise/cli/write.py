"""`lengthwise write`: one prompt or the lines of stdin, each answered within a length."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..generation.options import is_sampling
from .loading import Device, Dtype, load
from .stdin_lines import Lines
from .terminal import (
    SOME_DO_NOT_FIT,
    Json,
    UsageError,
    complain,
    console,
    decoded,
    print_json,
    tell_of_file,
    telling_if_stopped,
)

if TYPE_CHECKING:
    from ..generation.generator import Writer, Written
    from ..length.budget import Budget


def write(
    prompt: Annotated[str, typer.Argument(help="What to write about; - reads prompts from stdin, one a line.")],
    length: Annotated[
        str, typer.Option(help="How long: 'at most 280 chars', '40-60 words', '~100 tokens', ... Must be given.")
    ] = "",
    model: Annotated[str, typer.Option(help="A name that `lengthwise models` lists, a folder or hub id.")] = "smollm2",
    candidates: Annotated[int, typer.Option(min=1, metavar="N", help="Write so many and keep the best.")] = 1,
    temperature: Annotated[
        float | None, typer.Option(min=0, metavar="T", help="SeededSampler tokens at random; 0 takes the likeliest.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The same seed draws the same text.")] = 0,
    system: Annotated[str | None, typer.Option(help="Instructions that come before the prompt.")] = None,
    beams: Annotated[int, typer.Option(min=1, metavar="N", help="Search with so many beams, do not draw.")] = 1,
    device: Device = None,
    dtype: Dtype = None,
    as_json: Json = False,
) -> None:
    """Write a text that fits.

    \b
    lengthwise write "Describe a lighthouse." --length "at most 280 chars"
    lengthwise write - --length "40-60 words" --candidates 4 < prompts.txt > texts.jsonl

    One prompt gives a text, or with --json an object; prompts from stdin give a line of JSON each, in their order.
    Ctrl-C says how many were written.
    Lines that arrive together are written together; drawn at random, each by itself, with seeds that count up from
    --seed: the text of a line depends on no other line.
    Ends with 3 if a text does not fit: the best one is printed all the same.
    """
    from ..length.budget import as_budget

    if not length:
        raise UsageError("how long may the text be? For example --length 'at most 280 chars'")
    if not prompt.strip():
        raise UsageError("the prompt is empty; there is nothing to write about")
    for argument in (prompt, system or ""):
        decoded(argument.encode("utf-8", "surrogateescape"), "an argument")
    budget = as_budget(length)
    tell_of_file(prompt)
    drawn = is_sampling(candidates, beams, temperature)  # or told here, before a model is loaded, why that cannot be
    generation = _generation(temperature, beams)
    lines = Lines() if prompt == "-" else None  # stdin is read while the model loads
    writer = load(model, device, dtype=dtype)
    _warn_of_window(writer, budget)
    fixed = {"budgets": budget, "system": system, "candidates": candidates, **generation}
    writes: Callable[..., list[Written]] = partial(writer.write, **fixed)
    if lines is None:
        with _counting(writer.model):
            [written] = writes([prompt], seed=seed)
        all_fit = _show(prompt, written, as_json)
    else:
        # What is drawn for a row depends on its place in the batch, and which lines are there together is chance.
        size = 1 if drawn else max(1, writer.batch_size // max(candidates, beams))
        all_fit = _write_lines(writes, lines, size, seed)
    if not all_fit:
        raise typer.Exit(SOME_DO_NOT_FIT)


def _generation(temperature: float | None, beams: int) -> dict[str, Any]:
    """The options of `generate`: those that were given."""
    return {
        **({} if temperature is None else {"temperature": temperature}),
        **({} if beams == 1 else {"num_beams": beams}),
    }


def _warn_of_window(writer: "Writer", budget: "Budget") -> None:
    """A limit beyond the model's reach is none: a small model that repeats itself writes on for many minutes."""
    window = writer.window
    reach = window * (1 if budget.unit in ("tokens", "words") else 8)  # characters: more than usual
    if not budget.of_source and budget.low <= reach < (budget.high or 0):  # beyond it even at its least: an error
        complain(f"'{budget}' is more than the model can write; it stops at its window of {window:,} tokens")


@contextmanager
def _counting(model: Any) -> Iterator[None]:
    """On a terminal, how many tokens there are so far: a long text may take minutes."""
    with console().status("writing") as status:
        if not sys.stderr.isatty():
            yield
            return
        steps = count(1)
        hook = model.register_forward_hook(lambda *_: status.update(f"writing: {next(steps):,} tokens"))
        try:
            yield
        finally:
            hook.remove()


def _show(prompt: str, written: "Written", as_json: bool) -> bool:
    if as_json:
        print_json({"prompt": prompt, **written.as_json()})
    elif written.error is None:
        print(written.text, flush=True)
    if written.error is not None:
        complain(written.error)
        return False
    if sys.stdout.isatty():
        console().print(_verdict(written), style="dim")
    elif not (written.fits and written.complete):
        complain(_verdict(written))
    return written.fits


def _verdict(written: "Written") -> str:
    fits = "fits" if written.fits else "does not fit"
    complete = "complete" if written.complete else "not complete"
    return f"{written.length} of {written.budget} · {fits} · {complete}"


def _write_lines(writes: Callable[..., "list[Written]"], lines: Lines, size: int, seed: int) -> bool:
    from rich.progress import Progress

    done = misfits = torn = errors = 0
    # On one terminal the lines themselves show how far it is, and a bar would stand in their way.
    quiet = sys.stdout.isatty() or not sys.stderr.isatty()
    progress = Progress(console=console(), disable=quiet, redirect_stdout=False, transient=True)
    with telling_if_stopped(lambda: lines.stopped(done, "written")), progress as bar:
        task = bar.add_task("writing", total=None)
        for batch in lines.batches(size):
            for prompt, written in _write_batch(writes, batch, done + 1, (seed + done) % 2**63):
                done += 1
                print_json({"prompt": prompt, **written.as_json()})
                misfits += written.error is None and not written.fits
                torn += written.fits and not written.complete
                errors += written.error is not None
            bar.update(task, completed=done, total=lines.seen)
    if misfits or errors or torn:
        told = f"{misfits} do not fit, {torn} fit but are not complete, and {errors} could not be written"
        complain(f"of {done} texts, {told}")
    return not (misfits or errors)


def _write_batch(
    writes: Callable[..., "list[Written]"], batch: list[bytes], number: int, seed: int
) -> "Iterator[tuple[str, Written]]":
    """The lines of stdin and their texts; the first has this number. A bad line gives a row that says so."""
    prompts, faults = [], {}
    for place, line in enumerate(batch):
        try:
            prompts.append(decoded(line, f"line {number + place}").rstrip("\r\n"))
        except ValueError as error:
            faults[place] = str(error)
            prompts.append("")  # which is not written
    for place, written in enumerate(writes(prompts, seed=seed)):
        if place in faults:
            yield batch[place].decode("utf-8", "replace").rstrip("\r\n"), replace(written, error=faults[place])
        else:
            yield prompts[place], written
