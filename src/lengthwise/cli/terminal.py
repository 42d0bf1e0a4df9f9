"""What every command shares with the terminal: its streams, its exit codes, its way of complaining.

Texts and JSON go to stdout, all that is said about them to stderr. This file knows no command and no model.
"""

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

BAD_USAGE, SOME_DO_NOT_FIT, INTERRUPTED, CLOSED_PIPE = 2, 3, 130, 141

# typer carries its click under a name that differs between versions; of what it shows, this is the common way there.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


# How typer, by version, says that a number is too small or too large.
_TOO_SMALL = re.compile(
    r"Invalid value for '(--[^']+)': (?:Input should be greater than or equal to |\S+ is not in the range x>=)(\S+)"
)
_TOO_LARGE = re.compile(
    r"Invalid value for '(--[^']+)': (?:Input should be less than or equal to |\S+ is not in the range x<=)(\S+)"
)


def complain(message: str) -> None:
    """In one line: what lines say is joined as sentences or by a semicolon."""
    lines = "\n".join(line.strip() for line in message.splitlines() if line.strip())
    line = re.sub(r"(?<=[.:;?!])\n", " ", re.sub(r"(?<![.:;?!])\n(?=What to do)", ".\n", lines)).replace("\n", "; ")
    line = _TOO_LARGE.sub(r"\1 must be at most \2", _TOO_SMALL.sub(r"\1 must be at least \2", line))
    print(f"lengthwise: {line}", file=sys.stderr, flush=True)


def file_named(text: str) -> Path | None:
    """The file that is called so, if there is one."""
    with suppress(OSError, ValueError):  # too long for a name
        return Path(text) if Path(text).is_file() else None
    return None


def tell_of_file(text: str) -> None:
    """The name of a file is a text like any other here, and somebody may have meant what is in the file."""
    if text != "-" and file_named(text):
        complain(f"{text!r} is taken as the text itself; for what is in that file give - and < {shlex.quote(text)}")


@contextmanager
def telling_if_stopped(how_far: Callable[[], str]) -> Iterator[None]:
    """Ctrl-C says how far it came."""
    try:
        yield
    except KeyboardInterrupt:
        complain(how_far())
        raise


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)


def console() -> "Console":
    """For what is told beside the texts."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def progress_bar() -> "Progress":
    """On a terminal a bar that goes when all is done; in a pipe nothing."""
    from rich.progress import Progress

    return Progress(console=console(), disable=not sys.stderr.isatty(), redirect_stdout=False, transient=True)


def stdin() -> BinaryIO:
    """Not sys.stdin: its lock, held by a thread that waits for a line, would crash Python at its end."""
    return open(0, "rb", closefd=False)


def decoded(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} is not UTF-8: byte {data[error.start]:#x} at {error.start}; convert it") from None
