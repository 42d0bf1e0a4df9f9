"""The command line: parse, call, print.

Each command is a function in a file of its name; this file lists them and prints every expected error in one line. Slow
imports (torch, transformers) are made by the command that needs them, so that help and `measure` start at once.
Exit codes: 0 all fits, 2 bad usage, 3 some text does not fit or could not be written, 130 Ctrl-C, 141 closed pipe.
"""

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ..errors import ModelNotFound
from ..version import __version__
from . import data, demo, evaluate, measure, models, score, train, translate, write
from .terminal import BAD_USAGE, CLOSED_PIPE, INTERRUPTED, UsageError, print_message, usage_message

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Errors that a user can correct are printed in one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")  # a pipe has no locale
    try:
        _run(list(sys.argv[1:] if args is None else args))
        sys.stdout.flush()  # raises BrokenPipeError here, where it is handled
    except typer.Exit as end:
        return end.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout at its end and would print an error: let it flush to the null device.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except UsageError as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "lengthwise")
        print_message(f"{usage_message(error)}; see {command} --help")
        return BAD_USAGE
    except ModelNotFound as error:
        print_message(error.short)
        return BAD_USAGE
    except (ValueError, OSError) as error:
        print_message(str(error))
        return BAD_USAGE
    except ImportError as error:
        if error.name:  # an import failed; Lengthwise's own errors say what to install and have no name
            raise
        print_message(str(error))
        return BAD_USAGE
    return 0


def _run(args: list[str]) -> None:
    # Not `app()`: it prints errors in several lines, and handles interrupts and closed pipes in its own way.
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
    """Text that fits: a model writes it within the length that you give.

    \b
    lengthwise write "Describe a lighthouse." --length "at most 280 chars"
    lengthwise measure "Où est-il ?"
    lengthwise evaluate smollm2 test.jsonl --length reference:words
    lengthwise models
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


for command in (
    write.write,
    translate.translate,
    demo.demo,
    measure.measure,
    models.models,
    train.train,
    evaluate.evaluate,
    score.score,
):
    app.command()(command)
app.add_typer(data.app, name="data")
