"""The command line: parse, call, print.

Each command is a function in a file of the same name. Only the command that runs is imported, and commands import torch
and transformers only where they need them, because these imports take seconds.
Exit codes: 0 all fits, 1 `check` found a text outside its limit, 2 bad usage, 3 some text does not fit or could not
be written, 4 the disk is full, 130 Ctrl-C, 141 closed pipe.
"""

import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from ..errors import ModelNotFound, without_torch
from ..version import __version__
from .options import flag
from .terminal import BAD_USAGE, CLOSED_PIPE, DISK_FULL, INTERRUPTED, UsageError, print_message, usage_message

COMMANDS = (
    *("write", "translate", "shorten", "check", "serve", "demo", "measure", "models"),
    *("export", "train", "discriminator", "evaluate", "score", "contrast", "bench", "data"),
)


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Errors that a user can correct are printed in one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")  # the default depends on the locale
    given = list(sys.argv[1:] if args is None else args)
    try:
        # Not `app()`, which prints errors in several lines and handles interrupts and closed pipes itself.
        command = typer.main.get_command(app(given[:1] if given[:1] and given[0] in COMMANDS else COMMANDS))
        with command.make_context("lengthwise", given) as context:
            command.invoke(context)
        sys.stdout.flush()  # raises BrokenPipeError here, where it is handled
    except typer.Exit as end:
        return end.exit_code
    except KeyboardInterrupt as stop:
        print_message(str(stop) or "stopped")
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout when it exits and would print an error, so stdout becomes the null device.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except UsageError as error:
        asked = getattr(getattr(error, "ctx", None), "command_path", "lengthwise")
        print_message(f"{usage_message(error)}; see {asked} --help")
        return BAD_USAGE
    except (ValueError, OSError, ImportError) as error:
        if isinstance(error, ImportError) and error.name:  # errors without a name say what to install
            if (advice := without_torch(error)) is None:
                raise
            error = advice
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            print_message(f"the disk is full: cannot write {error.filename or 'all of the output'}; free some space")
            return DISK_FULL
        print_message(error.short if isinstance(error, ModelNotFound) else str(error))
        return BAD_USAGE
    return 0


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"lengthwise {__version__}")
        raise typer.Exit


def lengthwise(
    context: typer.Context,
    version: Annotated[bool, flag("--version", "Show the version.", callback=_show_version, is_eager=True)] = False,
) -> None:
    """Text that fits: a model writes within the length that you give.

    \b
    lengthwise write "Describe a sunset over the sea." --length "at most 280 chars"
    lengthwise shorten article.txt --whole --as headline --length 30,50,75
    lengthwise measure "Où est-il ?"
    lengthwise evaluate smollm2 test.jsonl --length reference:words
    lengthwise models
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


def app(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """Return the program with the commands of these names."""
    found = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    found.callback(invoke_without_command=True)(lengthwise)
    for name in names:
        module = import_module(f".{name}", __name__)
        if name == "data":
            found.add_typer(module.app, name=name)
        else:
            found.command()(getattr(module, name))  # the function of the same name
    return found
