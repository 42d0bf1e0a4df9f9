"""GPT-2-type decoders (GPT-2, DistilGPT-2) as arrays: their shape and the weights of each layer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .decoder import DecoderShape, refuse
from .weights import Dense, Floats, Linear, Norm, Weight

_ACTIVATIONS = ("gelu_new", "gelu_fast", "gelu_pytorch_tanh")  # names of one function


@dataclass(frozen=True)
class Shape(DecoderShape):
    """The sizes of a decoder with learnt positions."""

    epsilon: float  # of the layer norms


@dataclass(frozen=True)
class Layer:
    """One layer. Queries, keys and values are one product; `scale` is the factor of the attention's logits."""

    attention_norm: Norm
    qkv: Linear
    scale: float
    output: Linear
    mlp_norm: Norm
    up: Linear
    down: Linear


@dataclass(frozen=True)
class Gpt2:
    """The weights of a decoder."""

    shape: Shape
    embedding: Weight  # (vocabulary, width)
    positions: Floats  # (window, width)
    layers: list[Layer]
    norm: Norm
    output: Weight  # (vocabulary, width)


def of_arrays(config: Mapping[str, Any], arrays: Mapping[str, Any]) -> Gpt2:
    """Return the decoder that a config.json of transformers and its weights, as numpy arrays, describe."""
    shape = _shape(config)
    prefix = "" if "wte.weight" in arrays else "transformer."  # the checkpoints of OpenAI have none

    def vector(name: str) -> Floats:
        return np.asarray(arrays[f"{prefix}{name}"], np.float32)

    def linear(name: str) -> Linear:  # stored as (in, out)
        return Linear(Dense(vector(f"{name}.weight").T), vector(f"{name}.bias"))

    def norm(name: str) -> Norm:
        return Norm(vector(f"{name}.weight"), vector(f"{name}.bias"))

    def layer(n: int) -> Layer:
        scale = shape.head_size**-0.5 if config.get("scale_attn_weights", True) else 1.0
        return Layer(
            attention_norm=norm(f"h.{n}.ln_1"),
            qkv=linear(f"h.{n}.attn.c_attn"),
            scale=scale / (n + 1) if config.get("scale_attn_by_inverse_layer_idx") else scale,
            output=linear(f"h.{n}.attn.c_proj"),
            mlp_norm=norm(f"h.{n}.ln_2"),
            up=linear(f"h.{n}.mlp.c_fc"),
            down=linear(f"h.{n}.mlp.c_proj"),
        )

    embedding = Dense(vector("wte.weight"))
    tied = config.get("tie_word_embeddings", True) or "lm_head.weight" not in arrays
    output = embedding if tied else Dense(np.asarray(arrays["lm_head.weight"], np.float32))
    layers = [layer(n) for n in range(shape.layers)]
    return Gpt2(shape, embedding, vector("wpe.weight"), layers, norm("ln_f"), output)


def _shape(config: Mapping[str, Any]) -> Shape:
    activation = config.get("activation_function", "gelu_new")
    heads, width = config["n_head"], config["n_embd"]
    refuse(
        {
            f"the activation {activation}": activation not in _ACTIVATIONS,
            "cross-attention": bool(config.get("add_cross_attention")),
        }
    )
    return Shape(
        vocabulary=config["vocab_size"],
        width=width,
        layers=config["n_layer"],
        heads=heads,
        kv_heads=heads,
        head_size=width // heads,
        window=config["n_positions"],
        epsilon=config.get("layer_norm_epsilon", 1e-5),
    )
