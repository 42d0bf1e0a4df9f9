"""Write the folder of a converted model: its graphs, and `onnx.json` with its sizes and special ids.

The tokenizer's files are written by the caller.
"""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import gpt2_graph, llama_graph
from .file_names import EMBEDDINGS, ENCODER, SETTINGS
from .gpt2 import Gpt2
from .llama import Llama
from .marian import Marian
from .marian_graphs import save_decoder, save_encoder
from .weights import Channels8, dense


def save_converted(model: Llama | Gpt2, folder: Path, *, eos: list[int], pad: int) -> None:
    """Write the graph and the settings of a decoder into `folder`."""
    if isinstance(model, Llama):
        llama_graph.save_graph(model, folder)
    else:
        gpt2_graph.save_graph(model, folder)
    _save_settings(folder, {"eos": eos, "pad": pad, "shape": asdict(model.shape)})


def save_marian(model: Marian, folder: Path, *, eos: list[int], pad: int, start: int, never: list[int]) -> None:
    """Write the graphs, the embeddings and the settings of an encoder-decoder into `folder`.

    `start`: the id before each text. `never`: ids that are never written.
    """
    from safetensors.numpy import save_file

    save_encoder(model, folder)
    save_decoder(model, folder)
    arrays: dict[str, Any] = {"positions": model.positions}
    for name, table in (("source", model.embedding), ("target", model.target_embedding)):
        if isinstance(table, Channels8):
            arrays |= {name: table.q, f"{name}_scale": table.scale}
        elif table is not None:
            arrays[name] = dense(table)
    save_file(arrays, folder / EMBEDDINGS)
    shutil.copymode(folder / ENCODER, folder / EMBEDDINGS)  # only the owner could read it
    ids = {"eos": eos, "pad": pad, "start": start, "never": never}
    _save_settings(folder, {"type": "marian", **ids, "shape": asdict(model.shape)})


def _save_settings(folder: Path, settings: dict[str, Any]) -> None:
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
