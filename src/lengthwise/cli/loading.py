"""Load models and tokenizers by name, with a status line and without the output of libraries.

A wrong name fails before torch is imported, which takes seconds. `lengthwise.models` finds the models.
"""

import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..gc_paused import gc_paused
from . import options
from .terminal import UsageError, status

if TYPE_CHECKING:
    from ..endpoints.writer import EndpointWriter
    from ..generation.generator import Writer


def load(
    name: str,
    device: str | None = None,
    *,
    fitted: bool = False,
    dtype: str | None = None,
    engine: str | None = "transformers",
) -> "Writer":
    """Return a writer for the model called `name`. `engine`: None chooses it by model and device."""
    from ..generation.load import load

    # Before torch is imported, and before the status line, which would hide a download's progress.
    engine = prepare(name, device, dtype=dtype, engine=engine)
    with status("loading the model"), gc_paused():
        given: dict[str, Any] = {"dtype": dtype} if dtype else {}
        if engine == "transformers":
            silence_libraries()
            import torch

            given = {"dtype": getattr(torch, dtype)} if dtype else {}
        return load(name, engine=engine, device=device, fitted=fitted, **given)


def prepare(name: str, device: str | None, *, dtype: str | None = None, engine: str | None) -> str:
    """Fetch or convert the model called `name`, if it is not cached, and return the engine that runs it."""
    from ..endpoints.client import is_endpoint
    from ..generation.load import ENGINES, default_engine

    if is_endpoint(name):
        raise UsageError(f"only write, translate and shorten can use a model behind an API; got --model {name}")
    if dtype not in (None, *options.DTYPES):
        raise UsageError(f"--dtype must be {' or '.join(options.DTYPES)}; got {dtype!r}")
    engine = engine or default_engine(name, device, **({"dtype": dtype} if dtype else {}))
    if engine not in ENGINES:
        raise UsageError(f"--engine must be {' or '.join(ENGINES)}; got {engine!r}")
    # What an engine needs on disk before it loads a model. One that needs nothing has no entry.
    needs: dict[str, Callable[[str], Any]] = {"transformers": folder, "onnx": converted, "gguf": gguf_file}
    if engine in needs:
        needs[engine](name)
    return engine


def load_in_bfloat16(name: str, device: str | None) -> "Writer":
    """Return a writer of transformers. On a GPU the model is converted to bfloat16, unless it is stored as float16."""
    writer = load(name, device)
    if writer.model.device.type == "cuda" and str(writer.model.dtype) != "torch.float16":
        writer.model.bfloat16()
    return writer


def load_endpoint(name: str, max_calls: int | None) -> "EndpointWriter":
    """Return a writer for the model behind an API that is called openai:NAME@URL."""
    from ..endpoints.client import Endpoint
    from ..endpoints.writer import MAX_CALLS, EndpointWriter

    return EndpointWriter(Endpoint.named(name), max_calls=max_calls or MAX_CALLS)


def check_options(remote: bool, local_only: dict[str, Any], remote_only: dict[str, Any]) -> None:
    """Raise if an option is given that the kind of model does not have."""
    for name, value in (local_only if remote else remote_only).items():
        if value:
            kind = "runs here" if remote else "is behind an API (--model openai:NAME@URL)"
            raise UsageError(f"{name} is for a model that {kind}")


def folder(name: str) -> Path:
    """Return the folder of the model called `name`, which is fetched if it is not cached."""
    from ..models.registry import resolve

    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # read when the hub's library is imported
    return resolve(name)


def converted(name: str) -> None:
    """Convert the model called `name` for the onnx engine, if it is a known one and not cached."""
    from ..models.onnx_model import resolve_onnx

    resolve_onnx(name)


def gguf_file(name: str) -> None:
    """Fetch the GGUF file of the model called `name`, if it is a known one and not cached."""
    from ..models.gguf_model import find_gguf
    from ..models.llama_cpp_model import library

    library()  # raises if it is not installed
    find_gguf(name)


def silence_libraries() -> None:
    """Turn off log messages, progress bars and, unless Python runs with -W, warnings of the libraries."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if not sys.warnoptions:
        warnings.simplefilter("ignore")


def load_tokenizer(name: str) -> Any:
    """Return the tokenizer of the model called `name`."""
    path = folder(name)
    from ..models.checkpoint import load_tokenizer as load_from

    silence_libraries()
    return load_from(path)


def load_counter(name: str) -> Any:
    """Return a function that counts tokens as `load_tokenizer` does; it avoids the slow import of transformers."""
    if (file := _tokenizer_file(folder(name))) is None:
        return load_tokenizer(name)
    from tokenizers import Tokenizer

    encode = Tokenizer.from_file(str(file)).encode
    return lambda text, add_special_tokens: {"input_ids": encode(text, add_special_tokens=add_special_tokens).ids}


def _tokenizer_file(path: Path) -> Path | None:
    """Return the tokenizer.json of a model with a short name. Others give None: transformers may change theirs."""
    from ..models.registry import known

    if path not in [row.path for row in known()]:
        return None
    if (own := path / "tokenizer.json").exists():
        return own
    return _tokenizer_file(folder(json.loads((path / "lengthwise.json").read_text("utf-8"))["base_model"]))
