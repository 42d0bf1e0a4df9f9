"""Write the folder of a converted model: its graph, and `onnx.json` with its sizes and the ids that end and pad a text.

The tokenizer's files are written by the caller.
"""

import json
from dataclasses import asdict
from pathlib import Path

from .graphs import save_graph
from .llama import Llama

SETTINGS = "onnx.json"


def save_converted(model: Llama, folder: Path, *, eos: list[int], pad: int) -> None:
    """Write the graph and the settings of a decoder into `folder`."""
    save_graph(model, folder)
    settings = {"eos": eos, "pad": pad, "shape": asdict(model.shape)}
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
