"""Convert the model folder of a Llama-type decoder for the onnx engine: config.json, safetensors, tokenizer.json.

A folder that has only a countdown head is converted with its base model. numpy reads the weights; torch is not needed.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import atomic
from ..description import DESCRIPTION, WEIGHTS, base_folder, describe
from .folder import save_converted
from .llama import Layer, Llama, of_arrays
from .weights import BLOCK, Dense, Weight, quantised

_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
_KINDS: dict[str, Any] = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def export(folder: Path, out: Path, *, bits: int = 8) -> None:
    """Write the model in `folder`, converted, to the new folder `out`; `bits`: of its weights, 8 or 32."""
    if out.exists():
        raise ValueError(f"{out} exists; name a new folder")
    if (folder / "adapter_config.json").exists():
        raise ValueError(f"the model in {folder} is an adapter; merge it into its base model first")
    controls = [config["control"] for config in describe(folder)["controls"]]
    if controls not in ([], ["countdown_head"]):
        raise ValueError(f"the onnx engine runs no control but a countdown head; {folder} has {', '.join(controls)}")
    base = folder if (folder / "config.json").exists() else base_folder(folder)
    config = json.loads((base / "config.json").read_text("utf-8"))
    model = of_arrays(config, dict(_arrays(base)))
    ids = config | _json(base / "generation_config.json")
    if ids.get("eos_token_id") is None:
        raise ValueError(f"the model in {base} names no end-of-text token: write eos_token_id in its config.json")
    eos = ids["eos_token_id"] if isinstance(ids["eos_token_id"], list) else [ids["eos_token_id"]]
    pad = eos[0] if ids.get("pad_token_id") is None else ids["pad_token_id"]
    with atomic.folder(out) as partial:
        for name in _TOKENIZER:
            source = folder if (folder / name).exists() else base
            if (source / name).exists():
                shutil.copyfile(source / name, partial / name)
        if missing := [name for name in _TOKENIZER[:2] if not (partial / name).exists()]:
            raise ValueError(f"the model in {base} has no {missing[0]}; save its tokenizer with transformers")
        for name in (DESCRIPTION, WEIGHTS) if controls else ():
            shutil.copyfile(folder / name, partial / name)
        save_converted(_in_8_bits(model) if bits == 8 else model, partial, eos=eos, pad=pad)


def _json(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text("utf-8"))) if file.exists() else {}


def _arrays(folder: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the name and the values of each weight in the folder's safetensors files."""
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        raise ValueError(f"the model in {folder} has no safetensors files; save it with a newer transformers")
    for file in files:
        data = np.memmap(file, np.uint8, "r")
        start = 8 + int(data[:8].view(np.uint64)[0])
        for name, about in json.loads(bytes(data[8:start])).items():
            if name == "__metadata__":
                continue
            if (kind := about["dtype"]) not in _KINDS:
                raise ValueError(f"{file.name} has weights of the type {kind}; only {', '.join(_KINDS)} are read")
            first, last = about["data_offsets"]
            values = np.frombuffer(data[start + first : start + last], _KINDS[kind]).reshape(about["shape"])
            if kind == "BF16":  # the first half of a float32
                values = (values.astype(np.uint32) << 16).view(np.float32)
            yield name, values.astype(np.float32)


def _in_8_bits(model: Llama) -> Llama:
    """Return the decoder with its products in 8-bit blocks. Widths that are no multiple of 32 stay as they are."""

    def rounded(weight: Weight) -> Weight:
        fits = isinstance(weight, Dense) and weight.values.shape[1] % BLOCK == 0
        return quantised(weight) if fits and isinstance(weight, Dense) else weight

    layers = [
        Layer(
            attention_norm=layer.attention_norm,
            qkv=rounded(layer.qkv),
            qkv_bias=layer.qkv_bias,
            output=rounded(layer.output),
            mlp_norm=layer.mlp_norm,
            gate_up=rounded(layer.gate_up),
            down=rounded(layer.down),
        )
        for layer in model.layers
    ]
    return Llama(model.shape, rounded(model.embedding), layers, model.norm, rounded(model.output))
