"""Llama-type decoders (Llama, Mistral, Qwen2) as arrays: their shape and the weights of each layer.

`of_arrays` reads the names that transformers gives to weights; `gguf_llama.py` reads GGUF files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .decoder import DecoderShape, refuse
from .weights import Dense, Floats, Weight, stacked


@dataclass(frozen=True)
class Shape(DecoderShape):
    """The sizes of a decoder with rotary positions."""

    rope_base: float
    epsilon: float  # of the RMS norms


@dataclass(frozen=True)
class Layer:
    """One layer. Queries, keys and values are one product, and so are the gate and the up projection."""

    attention_norm: Floats  # (width,)
    qkv: Weight
    qkv_bias: Floats | None
    output: Weight
    mlp_norm: Floats  # (width,)
    gate_up: Weight
    down: Weight


@dataclass(frozen=True)
class Llama:
    """The weights of a decoder."""

    shape: Shape
    embedding: Weight  # (vocabulary, width)
    layers: list[Layer]
    norm: Floats  # (width,)
    output: Weight  # (vocabulary, width)


def of_arrays(config: Mapping[str, Any], arrays: Mapping[str, Any]) -> Llama:
    """Return the decoder that a config.json of transformers and its weights, as numpy arrays, describe."""
    shape = _shape(config)

    def dense(name: str) -> Dense:
        return Dense(vector(f"{name}.weight"))

    def vector(name: str) -> Floats:
        return np.asarray(arrays[f"model.{name}"], np.float32)

    layers = []
    for n in range(shape.layers):
        attention, mlp = f"layers.{n}.self_attn", f"layers.{n}.mlp"
        projections = [f"{attention}.{name}_proj" for name in "qkv"]
        biased = f"model.{projections[0]}.bias" in arrays
        layers.append(
            Layer(
                attention_norm=vector(f"layers.{n}.input_layernorm.weight"),
                qkv=stacked([dense(name) for name in projections]),
                qkv_bias=np.concatenate([vector(f"{name}.bias") for name in projections]) if biased else None,
                output=dense(f"{attention}.o_proj"),
                mlp_norm=vector(f"layers.{n}.post_attention_layernorm.weight"),
                gate_up=stacked([dense(f"{mlp}.{name}_proj") for name in ("gate", "up")]),
                down=dense(f"{mlp}.down_proj"),
            )
        )
    embedding = dense("embed_tokens")
    tied = config.get("tie_word_embeddings") or "lm_head.weight" not in arrays
    output = embedding if tied else Dense(np.asarray(arrays["lm_head.weight"], np.float32))
    return Llama(shape, embedding, layers, vector("norm.weight"), output)


def _shape(config: Mapping[str, Any]) -> Shape:
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    strange = {
        "scaled rotary positions": rope.get("rope_type", "default") != "default",
        "partial rotary positions": rope.get("partial_rotary_factor", 1.0) != 1.0,
        "a sliding window": bool(config.get("sliding_window")) and config.get("use_sliding_window", True),
        "biases after attention": bool(config.get("attention_bias")),
        "biases in its MLP": bool(config.get("mlp_bias")),
        f"the activation {config.get('hidden_act')}": config.get("hidden_act", "silu") != "silu",
    }
    heads = config["num_attention_heads"]
    size = config.get("head_dim") or config["hidden_size"] // heads
    strange[f"heads of size {size}, which is no multiple of 16"] = size % 16 != 0
    refuse(strange)
    return Shape(
        vocabulary=config["vocab_size"],
        width=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_size=size,
        window=config["max_position_embeddings"],
        rope_base=float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0),
        epsilon=config["rms_norm_eps"],
    )
