"""Merge a LoRA adapter, as PEFT saves it, into a Llama-type decoder or a Marian translator: W + scale · B · A.

Hu et al. 2022, LoRA. numpy is enough; neither torch nor PEFT is imported.
"""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .llama import Llama, Shape
from .safetensors_file import read_file
from .weights import Dense, Floats, Weight, dense

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
# The linear layers in each weight of a `Layer`, in the order in which their outputs are stacked.
_LINEAR = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "output": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}
_NAMES = [name for names in _LINEAR.values() for name in names]
_MARIAN = ("out_proj", "q_proj", "k_proj", "v_proj")
_MARIAN_NAMES = [f"{part}.{name}" for part in ("self_attn", "encoder_attn") for name in _MARIAN] + ["fc1", "fc2"]
_LAYERS = rf"layers\.\d+\.(?:{'|'.join(_NAMES)})|(?:en|de)coder\.layers\.\d+\.(?:{'|'.join(_MARIAN_NAMES)})"
_TENSOR = re.compile(rf"base_model\.model\.model\.({_LAYERS})\.lora_([AB])\.weight")
_PLAIN_INITS = (None, True, False, "gaussian", "eva", "orthogonal")  # the others change the base's weights as well
# Settings that are read here, or that only say how the adapter was made and which layers it has: these are in its
# weights. Others may mean another formula; PEFT adds some with each version.
_KNOWN = {
    *("lora_alpha", "r", "rank_pattern", "use_rslora"),
    *("target_modules", "exclude_modules", "layers_to_transform", "layers_pattern", "fan_in_fan_out"),
    *("lora_dropout", "eva_config", "qalora_group_size", "megatron_core", "inference_mode", "ensure_weight_tying"),
    *("base_model_name_or_path", "revision", "task_type", "auto_mapping", "peft_version"),
}


@dataclass(frozen=True)
class Adapter:
    """The factors of each change, by the name of the linear layer that is changed."""

    folder: Path
    alpha: float
    root: bool  # rsLoRA: alpha is divided by the root of the rank
    a: dict[str, Floats]  # (rank, in)
    b: dict[str, Floats]  # (out, rank)

    def merged(self, model: Llama) -> Llama:
        """Return the decoder with the adapter in it. Weights that it changes become dense, the others stay."""
        parts = {f"layers.{n}.{name}" for n in range(model.shape.layers) for name in _NAMES}
        if unknown := sorted(self.a.keys() - parts):
            raise self._misfit(f"it changes {unknown[0]}, and the base has {model.shape.layers} layers")
        layers = []
        for n, layer in enumerate(model.layers):
            weights: dict[str, Any] = {
                field: self._weight(f"layers.{n}", field, getattr(layer, field), model.shape) for field in _LINEAR
            }
            layers.append(replace(layer, **weights))
        return replace(model, layers=layers)

    def merged_arrays(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return the arrays of a Marian model, by the names of transformers, with the adapter in them."""
        names = {part: f"model.{part}.weight" for part in self.a}
        if unknown := sorted(part for part, name in names.items() if name not in arrays):
            raise self._misfit(f"it changes {unknown[0]}, which the base does not have")
        return arrays | {
            name: arrays[name].astype(np.float32) + self._change(part, arrays[name].shape)
            for part, name in names.items()
        }

    def _weight(self, layer: str, field: str, weight: Weight, shape: Shape) -> Weight:
        parts = [f"{layer}.{name}" for name in _LINEAR[field]]
        if self.a.keys().isdisjoint(parts):
            return weight
        values = dense(weight).copy()
        query, key = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
        own = np.split(values, [query, query + key] if field == "qkv" else len(parts))  # views
        for part, rows in zip(parts, own, strict=True):
            if part in self.a:
                rows += self._change(part, rows.shape)
        return Dense(values)

    def _change(self, part: str, shape: tuple[int, ...]) -> Floats:
        a, b = self.a[part], self.b[part]
        if (len(b), a.shape[1]) != shape:
            raise self._misfit(f"{part} is {len(b)} x {a.shape[1]}, in the base {' x '.join(map(str, shape))}")
        scale = self.alpha / len(a) ** (0.5 if self.root else 1)
        change: Floats = (b @ a) * np.float32(scale)
        return change

    def _misfit(self, why: str) -> ValueError:
        return ValueError(f"the adapter in {self.folder} does not fit its base model: {why}")


def read_adapter(folder: Path) -> Adapter:
    """Return the adapter in `folder`; raise a `ValueError` if it is more than LoRA of linear layers."""
    config = json.loads((folder / CONFIG).read_text("utf-8"))
    _refuse(folder, config)
    if not (folder / WEIGHTS).exists():
        raise ValueError(f"the adapter in {folder} is damaged: {WEIGHTS} is missing")
    try:
        stored = dict(read_file(folder / WEIGHTS))
    except ValueError as error:
        raise ValueError(f"the adapter in {folder} is damaged ({error}); copy the folder again") from error
    found: dict[str, dict[str, Floats]] = {"A": {}, "B": {}}
    for name, values in stored.items():
        if (match := _TENSOR.fullmatch(name)) is None:
            linear = f"{', '.join(name.partition('.')[2] for name in _NAMES)} in Llama-type models"
            known = f"{linear}, and of the layers of Marian"
            raise ValueError(f"{_refusal(folder)}: it has {name}, and only LoRA of {known} can be merged")
        found[match[2]][match[1]] = values
    if found["A"].keys() != found["B"].keys():
        raise ValueError(
            f"the adapter in {folder} is damaged: {min(found['A'].keys() ^ found['B'].keys())} has one factor"
        )
    return Adapter(folder, config["lora_alpha"], bool(config.get("use_rslora")), found["A"], found["B"])


def _refuse(folder: Path, config: dict[str, Any]) -> None:
    plain = {"peft_type": ("LORA",), "bias": ("none",), "init_lora_weights": _PLAIN_INITS}
    for name, value in config.items():
        if value not in plain[name] if name in plain else value and name not in _KNOWN:
            raise ValueError(
                f"{_refusal(folder)}: {CONFIG} has {name}: {json.dumps(value)}; run it with the engine "
                "transformers, or merge it into its base model with PEFT and convert that"
            )


def _refusal(folder: Path) -> str:
    return f"the adapter in {folder} cannot be converted for the onnx engine"
