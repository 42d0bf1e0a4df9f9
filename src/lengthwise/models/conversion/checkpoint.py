"""Convert a model folder for the onnx engine: config.json, safetensors and the tokenizer's files.

A folder that has only a length control is converted with its base model, and an adapter is merged into its own.
numpy reads the weights; torch is not needed.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ... import atomic
from .. import registry
from ..cache import Say
from ..description import DESCRIPTION, DISCRIMINATOR, WEIGHTS, base_folder, describe, name_of_base
from ..packed import PACKED, read_packed
from . import gpt2, llama, marian
from .file_names import MARIAN_CONTROLS
from .folder import save_converted, save_marian
from .lora import CONFIG, Adapter, read_adapter
from .safetensors_file import read_file
from .weights import BLOCK, Dense, Floats, Weight, by_channel, dense, quantised, with_weights

_TOKENIZERS = (("tokenizer.json", "tokenizer_config.json"), ("source.spm", "target.spm", "vocab.json"))
_ALSO = ("tokenizer_config.json", "chat_template.jinja")
# Modules that read the weights of a type of decoder; a new family adds a line.
_DECODERS: dict[str, Any] = {"llama": llama, "mistral": llama, "qwen2": llama, "gpt2": gpt2}
_CONTROLS = {"marian": MARIAN_CONTROLS}  # by the type of the model


def export(folder: Path, out: Path, *, bits: int = 8) -> None:
    """Write the model in `folder`, converted, to the new folder `out`; `bits`: of its weights, 8 or 32."""
    if out.exists():
        raise ValueError(f"{out} exists; name a new folder")
    with atomic.folder(out) as partial:
        convert(folder, partial, bits=bits)


def convert(folder: Path, out: Path, *, bits: int = 8, say: Say = registry.say) -> None:
    """Write the model in `folder`, converted, into the empty folder `out`."""
    adapter = read_adapter(folder) if (folder / CONFIG).exists() else None
    if adapter and (known := registry.source_of(name_of_base(folder))) and known.convert:
        _check_controls(folder, "llama")
        known.convert(out, say, lambda model: _stored(adapter.merged(model), bits))
        _copy_tokenizer([folder], out)
    else:
        _convert_checkpoint(folder, adapter, out, bits)
    for name in (DESCRIPTION, WEIGHTS) if describe(folder)["controls"] else ():
        shutil.copyfile(folder / name, out / name)
    if (folder / DISCRIMINATOR).exists():
        shutil.copyfile(folder / DISCRIMINATOR, out / DISCRIMINATOR)


def _convert_checkpoint(folder: Path, adapter: Adapter | None, out: Path, bits: int) -> None:
    whole = (folder / "config.json").exists() and not adapter
    base = folder if whole else base_folder(folder)
    config = json.loads((base / "config.json").read_text("utf-8"))
    if (kind := config.get("model_type")) not in (*_DECODERS, "marian"):
        raise ValueError(f"the onnx engine runs models of the types {', '.join(_DECODERS)}, marian; got {kind}")
    if adapter and kind != "marian" and _DECODERS.get(kind) is not llama:
        types = ", ".join([*(name for name, module in _DECODERS.items() if module is llama), "marian"])
        raise ValueError(f"the onnx engine runs adapters of models of the types {types}; {base} has {kind}")
    _check_controls(folder, kind)
    ids = config | _json(base / "generation_config.json")
    if ids.get("eos_token_id") is None:
        raise ValueError(f"the model in {base} names no end-of-text token: write eos_token_id in its config.json")
    arrays = dict(read_arrays(base))
    if kind == "marian":
        _save_marian(config, adapter.merged_arrays(arrays) if adapter else arrays, ids, out, bits)
    else:
        model = _DECODERS[kind].of_arrays(config, arrays)
        model = adapter.merged(model) if adapter else model
        save_converted(_stored(model, bits), out, eos=_ends(ids), pad=_pad(ids))
    _copy_tokenizer([folder, base], out)


def _check_controls(folder: Path, kind: str) -> None:
    controls = [control["control"] for control in describe(folder)["controls"]]
    allowed = _CONTROLS.get(kind, ("countdown_head", "prompt"))
    if controls not in ([], *([name] for name in allowed)):
        names = " or ".join(name.replace("_", " ") for name in allowed)
        raise ValueError(f"the onnx engine runs no control but a {names}; {folder} has {', '.join(controls)}")


def _stored(model: Any, bits: int) -> Any:
    """Return the decoder with its weights as they are stored: in blocks, or all dense."""
    return with_weights(model, _in_blocks if bits == 8 else lambda weight: Dense(dense(weight)))


def _in_blocks(weight: Weight) -> Weight:
    """Return a dense weight in 8-bit blocks; others, and a width that is no multiple of 32, stay as they are."""
    if isinstance(weight, Dense) and weight.values.shape[1] % BLOCK == 0:
        return quantised(weight)
    return weight


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


def _copy_tokenizer(folders: list[Path], out: Path) -> None:
    """Copy the files of the tokenizer: each from the first of the folders that has it."""
    for name in dict.fromkeys([name for files in _TOKENIZERS for name in files] + [*_ALSO]):
        if source := next((folder / name for folder in folders if (folder / name).exists()), None):
            shutil.copyfile(source, out / name)
    if not any(all((out / name).exists() for name in files) for files in _TOKENIZERS):
        raise ValueError(f"the model in {folders[-1]} has no {_TOKENIZERS[0][0]}; save its tokenizer with transformers")


def _json(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text("utf-8"))) if file.exists() else {}


def read_arrays(folder: Path) -> Iterator[tuple[str, Floats]]:
    """Yield the name and the values of each weight in the folder's safetensors files."""
    if (packed := folder / PACKED).exists():
        yield from read_packed(packed)
        return
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        raise ValueError(f"the model in {folder} has no safetensors files; save it with a newer transformers")
    for file in files:
        yield from read_file(file)
