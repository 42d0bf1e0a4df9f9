"""Streams, exit codes, messages and progress bars of all commands. Texts and JSON go to stdout, messages to stderr."""

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from ..generation.generator import Written
    from ..length.budget import Budget
    from ..models.typical_lengths import Task

MAX_NAMED = 8  # words of each list in a note; the JSON has all
TOO_LONG, DISK_FULL, BAD_USAGE, SOME_DO_NOT_FIT, INTERRUPTED, CLOSED_PIPE = 1, 4, 2, 3, 130, 141

# The module that defines UsageError depends on the version of typer; this path to the class does not.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def usage_message(error: Any) -> str:
    """Return the text of a usage error; a number out of range becomes '--beams must be at least 1'."""
    faults = error.__cause__.errors() if hasattr(error.__cause__, "errors") else []  # by pydantic, for typer
    bounds = faults[0].get("ctx", {}) if faults else {}
    for bound, words in (("ge", "at least"), ("le", "at most")):
        if bound in bounds:
            return f"{error.param.opts[0]} must be {words} {bounds[bound]:g}"
    return error.format_message().rstrip(".")


def print_message(message: str) -> None:
    """Print a message to stderr in one line. Its lines are joined as sentences or by semicolons."""
    joined = ""
    for line in filter(None, map(str.strip, message.splitlines())):
        if joined and joined[-1] not in ".:;?!":
            joined += "." if line.startswith("What to do") else ";"
        joined += f" {line}" if joined else line
    print(f"lengthwise: {joined}", file=sys.stderr, flush=True)


def existing_file(text: str) -> Path | None:
    with suppress(OSError, ValueError):  # the text is too long for a name
        return Path(text) if Path(text).is_file() else None
    return None


def warn_if_file(text: str) -> None:
    """Warn if a text is also the name of a file, because the user may have wanted the file's content."""
    if text != "-" and existing_file(text):
        print_message(f"{text!r} is used as the text itself; to read the file, give - and < {shlex.quote(text)}")


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number with the words for one or for several; by default these have an s.

    >>> counted(1, "text"), counted(1200, "text"), counted(0, "is new", "are new")
    ('1 text', '1,200 texts', '0 are new')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


@contextmanager
def report_interrupt(progress: Callable[[], str]) -> Iterator[None]:
    """Make `progress()` the message of a Ctrl-C that interrupts the block."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(progress()) from None


def verdict(one: "Written") -> str:
    """Return '12 of at most 20 chars · fits · complete'."""
    parts = [f"{one.length} {one.unit}"]
    if one.budget:
        parts = [f"{one.length} of {one.budget}", "fits" if one.fits else "does not fit"]
    parts.append("complete" if one.complete else "not complete")
    return " · ".join([*parts, *filter(None, [_abridged(getattr(one, "note", None) or "")])])


def _abridged(note: str) -> str:
    """Return a note with the first `MAX_NAMED` words of each of its lists.

    >>> _abridged("left out: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10; check: and old")
    'left out: 1, 2, 3, 4, 5, 6, 7, 8, …; check: and old'
    """
    lists = (part.split(", ") for part in note.split("; "))
    return "; ".join(", ".join([*some[:MAX_NAMED], *["…"] * (len(some) > MAX_NAMED)]) for some in lists)


def print_verdict(one: "Written", dim: bool) -> None:
    """Print the error or the verdict as a message; with `dim`, print the verdict dimly and only on a terminal."""
    if one.error is not None or not dim:
        print_message(one.error or verdict(one))
    elif sys.stdout.isatty():
        console().print(verdict(one), style="dim")


def print_explanation(model: str, task: "Task", budget: "Budget", source: str, as_json: bool) -> None:
    """Print where the budget lies among the lengths of what the model writes for such a source."""
    from ..models.typical_lengths import explain

    found = explain(model, task, budget, source)
    if as_json:
        print_json(found.as_json())
    else:
        print(found, flush=True)


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)


def console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def status(message: str) -> Iterator[Callable[[str], None]]:
    """Show a message on stderr during the block, if it is a terminal; yield a function that changes the message."""
    if sys.stderr.isatty():
        with console().status(message) as shown:
            yield shown.update
    else:
        yield lambda message: None


def progress_bar(disable: bool = False) -> "Progress":
    """Return a progress bar on stderr that disappears at the end. Without a terminal, nothing is shown."""
    from rich.progress import Progress

    hidden = disable or not sys.stderr.isatty()
    return Progress(
        console=console(),
        disable=hidden,
        redirect_stdout=False,
        transient=True,
        speed_estimate_period=600.0,  # seconds: a batch may take a minute
    )


def stdin() -> BinaryIO:
    """Return stdin as bytes. Not sys.stdin: Python crashes at exit if a waiting thread holds its lock."""
    return open(0, "rb", closefd=False)


def decode(data: bytes, what: str) -> str:
    """Return `data` as text; the error names it as `what`."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} is not UTF-8: byte {data[error.start]:#x} at {error.start}; convert it") from None
