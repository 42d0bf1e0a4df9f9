"""The command line: parses, calls, prints.

A command is a function in a file of its name; this one lists them and tells whatever goes wrong in one line. How texts
are written and measured is for others to know; what is slow to import is imported by the command that needs it, so that
help and `measure` come at once.
Exit codes: 0 all fits, 2 bad usage, 3 some text does not fit or could not be written, 130 Ctrl-C, 141 closed pipe.
"""

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ..version import __version__
from . import data
from .demo import demo
from .evaluate import evaluate
from .loading import shortly
from .measure import measure
from .models import models
from .score import score
from .terminal import BAD_USAGE, CLOSED_PIPE, INTERRUPTED, UsageError, complain
from .train import train
from .translate import translate
from .write import write

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


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
        complain(f"{error.format_message().rstrip('.')}; see {command} --help")  # type: ignore[attr-defined]
        return BAD_USAGE
    except (ValueError, OSError) as error:
        complain(shortly(str(error)))
        return BAD_USAGE
    except ImportError as error:
        if error.name:  # an import that failed; without a name it is our own word on what to install
            raise
        complain(str(error))
        return BAD_USAGE
    return 0


def _run(args: list[str]) -> None:
    # Not `app()`: it prints errors over several lines and has its own idea of interrupts and closed pipes.
    command = typer.main.get_command(app)
    with command.make_context("lengthwise", args) as context:
        command.invoke(context)


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
    lengthwise evaluate smollm2 test.jsonl --length reference:words
    lengthwise models
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


for command in (write, translate, demo, measure, models, train, evaluate, score):
    app.command()(command)
app.add_typer(data.app, name="data")
