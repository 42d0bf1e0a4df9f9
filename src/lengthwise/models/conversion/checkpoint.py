"""Convert a model folder for the onnx engine: config.json, safetensors and the tokenizer's files.

A folder that has only a length control is converted with its base model. numpy reads the weights; torch is not needed.
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
from ..packed import PACKED, read_packed
from . import gpt2, llama, marian
from .folder import save_converted, save_marian
from .weights import BLOCK, Dense, Weight, by_channel, quantised, with_weights

_TOKENIZERS = (("tokenizer.json", "tokenizer_config.json"), ("source.spm", "target.spm", "vocab.json"))
_ALSO = ("tokenizer_config.json", "chat_template.jinja")
# Modules that read the weights of a type of decoder; a new family adds a line.
_DECODERS: dict[str, Any] = {"llama": llama, "mistral": llama, "qwen2": llama, "gpt2": gpt2}
_CONTROLS = {"marian": ("countdown_head", "encoding")}  # by the type of the model
_KINDS: dict[str, Any] = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def export(folder: Path, out: Path, *, bits: int = 8) -> None:
    """Write the model in `folder`, converted, to the new folder `out`; `bits`: of its weights, 8 or 32."""
    if out.exists():
        raise ValueError(f"{out} exists; name a new folder")
    with atomic.folder(out) as partial:
        convert(folder, partial, bits=bits)


def convert(folder: Path, out: Path, *, bits: int = 8) -> None:
    """Write the model in `folder`, converted, into the empty folder `out`."""
    if (folder / "adapter_config.json").exists():
        raise ValueError(f"the model in {folder} is an adapter; merge it into its base model first")
    base = folder if (folder / "config.json").exists() else base_folder(folder)
    config = json.loads((base / "config.json").read_text("utf-8"))
    if (kind := config.get("model_type")) not in (*_DECODERS, "marian"):
        raise ValueError(f"the onnx engine runs models of the types {', '.join(_DECODERS)}, marian; got {kind}")
    controls = [control["control"] for control in describe(folder)["controls"]]
    allowed = _CONTROLS.get(kind, ("countdown_head",))
    if controls not in ([], *([name] for name in allowed)):
        names = " or ".join(name.replace("_", " ") for name in allowed)
        raise ValueError(f"the onnx engine runs no control but a {names}; {folder} has {', '.join(controls)}")
    ids = config | _json(base / "generation_config.json")
    if ids.get("eos_token_id") is None:
        raise ValueError(f"the model in {base} names no end-of-text token: write eos_token_id in its config.json")
    save = _save_marian if kind == "marian" else _save_decoder
    save(config, dict(read_arrays(base)), ids, out, bits)
    _copy_tokenizer(folder, base, out)
    for name in (DESCRIPTION, WEIGHTS) if controls else ():
        shutil.copyfile(folder / name, out / name)


def _save_decoder(config: dict[str, Any], arrays: dict[str, Any], ids: dict[str, Any], out: Path, bits: int) -> None:
    model = _DECODERS[config["model_type"]].of_arrays(config, arrays)
    save_converted(with_weights(model, _in_blocks) if bits == 8 else model, out, eos=_ends(ids), pad=_pad(ids))


def _in_blocks(weight: Dense) -> Weight:
    """Return the weight in 8-bit blocks; a width that is no multiple of 32 stays as it is."""
    return quantised(weight) if weight.values.shape[1] % BLOCK == 0 else weight


def _save_marian(config: dict[str, Any], arrays: dict[str, Any], ids: dict[str, Any], out: Path, bits: int) -> None:
    model = marian.of_arrays(config, arrays)
    if bits == 8:
        model = with_weights(model, by_channel)
    never = [words[0] for words in ids.get("bad_words_ids") or () if len(words) == 1]
    start = ids.get("decoder_start_token_id")
    start = config["decoder_start_token_id"] if start is None else start
    save_marian(model, out, eos=_ends(ids), pad=_pad(ids), start=start, never=never)


def _ends(ids: dict[str, Any]) -> list[int]:
    return list(ids["eos_token_id"]) if isinstance(ids["eos_token_id"], list) else [ids["eos_token_id"]]


def _pad(ids: dict[str, Any]) -> int:
    return _ends(ids)[0] if ids.get("pad_token_id") is None else int(ids["pad_token_id"])


def _copy_tokenizer(folder: Path, base: Path, out: Path) -> None:
    """Copy the files of the tokenizer: those of `folder`, or else those of its base model."""
    for name in dict.fromkeys([name for files in _TOKENIZERS for name in files] + [*_ALSO]):
        source = folder if (folder / name).exists() else base
        if (source / name).exists():
            shutil.copyfile(source / name, out / name)
    if not any(all((out / name).exists() for name in files) for files in _TOKENIZERS):
        raise ValueError(f"the model in {base} has no {_TOKENIZERS[0][0]}; save its tokenizer with transformers")


def _json(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text("utf-8"))) if file.exists() else {}


def read_arrays(folder: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the name and the values of each weight in the folder's safetensors files."""
    if (packed := folder / PACKED).exists():
        yield from read_packed(packed)
        return
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
