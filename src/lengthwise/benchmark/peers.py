"""Peers: the programs that run the same models, as far as they are installed. What is missing is named."""

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from ..errors import how_to_install
from ..generation.generator import Writer
from ..generation.load import load

OURS = "onnx"
_INSTALL = {  # peer: its package as Python imports it, how it is installed
    "transformers": ("transformers", how_to_install("torch")),
    "gguf": ("llama_cpp", how_to_install("gguf")),
    "ctranslate2": ("ctranslate2", "run pip install ctranslate2"),
}
NAMES = {"gguf": "llama.cpp"}  # of engines whose name is not that of the program


@dataclass
class Peers:
    """Writers by engine, ours first. `missing`: peers that cannot run here, each with the reason."""

    writers: dict[str, Writer] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def why_missing(peer: str) -> str | None:
    """Return why the peer cannot run here; None if it can."""
    package, install = _INSTALL[peer]
    if find_spec(package) is None:
        return f"not installed; {install}"
    return None


def load_peers(model: str, engines: Sequence[str]) -> Peers:
    """Return writers of the same model on onnxruntime and on those of `engines` that are installed and can run it."""
    found = Peers({OURS: load(model, engine=OURS, device="cpu")})
    for engine in engines:
        reason = why_missing(engine)
        if reason is None:
            try:
                found.writers[engine] = load(model, engine=engine, device="cpu")
            except (OSError, ValueError) as error:
                reason = f"it cannot run {model}: {str(error).partition(chr(10))[0]}"
        if reason is not None:
            found.missing[NAMES.get(engine, engine)] = reason
    return found


def versions() -> dict[str, str]:
    """Return the versions of the installed libraries that decide the speed."""
    found = {}
    for name in ("onnxruntime", "numpy", "torch", "transformers", "ctranslate2", "llama-cpp-python"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
