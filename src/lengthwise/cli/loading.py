"""Models by name, for commands: loaded with a word to the user and none from the libraries.

A wrong name is told before torch takes its seconds. Where models come from, `lengthwise.models` knows.
"""

import json
import os
import re
import sys
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..gc_paused import gc_paused
from .terminal import UsageError, console

if TYPE_CHECKING:
    from pathlib import Path

    from ..generation.generator import Writer

Device = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Where to run: cpu, cuda, cuda:1, ... [default: cuda if it is there, else cpu]"),
]
DTYPES = ("float32", "bfloat16", "float16")
Dtype = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Numbers to compute with: float32, bfloat16 (faster in batches on a CPU that has AMX) or float16. "
        "[default: as saved, but no float16 on a CPU]",
    ),
]


def load(name: str, device: str | None = None, *, fitted: bool = False, dtype: str | None = None) -> "Writer":
    if dtype not in (None, *DTYPES):
        raise UsageError(f"--dtype is {' or '.join(DTYPES)}; got {dtype!r}")
    folder(name)  # a wrong name is told before torch takes its seconds, and a download may show how far it is
    with console().status("loading the model"), gc_paused():
        hush()
        import torch

        from ..generation.load import load

        return load(name, device=device, fitted=fitted, **({"dtype": getattr(torch, dtype)} if dtype else {}))


def folder(name: str) -> "Path":
    from ..models.registry import ModelNotFound, resolve

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
    from ..models.checkpoint import load_tokenizer as load_from

    hush()
    return load_from(path)


def load_counter(name: str) -> Any:
    """What counts tokens as `load_tokenizer` does, without the seconds that transformers takes, where that is sure."""
    file = _whole_tokenizer(folder(name))
    if file is None:
        return load_tokenizer(name)
    from tokenizers import Tokenizer

    encode = Tokenizer.from_file(str(file)).encode
    return lambda text, add_special_tokens: {"input_ids": encode(text, add_special_tokens=add_special_tokens).ids}


def _whole_tokenizer(path: "Path") -> "Path | None":
    """The tokenizer.json of a model with a short name; of other folders transformers may make another tokenizer."""
    from ..models.registry import known

    if path not in [row.path for row in known()]:
        return None
    if (own := path / "tokenizer.json").exists():
        return own
    return _whole_tokenizer(folder(json.loads((path / "lengthwise.json").read_text("utf-8"))["base_model"]))
