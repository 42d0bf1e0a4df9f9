"""Models by name, for commands: loaded with a word to the user and none from the libraries.

A wrong name is told before torch takes its seconds. Where models come from, `lengthwise.models` knows.
"""

import os
import re
import sys
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .terminal import console

if TYPE_CHECKING:
    from pathlib import Path

    from ..decode.write import Writer

Device = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Where to run: cpu, cuda, cuda:1, ... [default: cuda if it is there, else cpu]"),
]


def load(name: str, device: str | None = None) -> "Writer":
    folder(name)  # a wrong name is told before torch takes its seconds, and a download may show how far it is
    with console().status("loading the model"):
        hush()
        from ..checkpoint import load

        return load(name, device=device)


def folder(name: str) -> "Path":
    from ..models import ModelNotFound, resolve

    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # read when the hub's library is imported
    try:
        return resolve(name)
    except ModelNotFound as error:
        raise ValueError(str(error)) from error


def shortly(message: str) -> str:
    """Without the places where a model was looked for; of the hub, which has reasons, the first sentence it said."""
    hub = re.search(r"^ +\d+\. the hub: (.+?)(?:\. .*)?$", message, re.MULTILINE)
    said = f" The hub: {hub[1].rstrip('.')}." if hub else ""
    return re.sub(r" Tried, in order:(?:\n +\d+\. .*)+", said, message)


def hush() -> None:
    """No chatter from the libraries, unless Python was told to warn."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if not sys.warnoptions:
        warnings.simplefilter("ignore")


def load_tokenizer(name: str) -> Any:
    path = folder(name)
    from ..checkpoint import load_tokenizer as load_from

    hush()
    return load_from(path)
