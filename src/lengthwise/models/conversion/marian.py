"""Read a Marian encoder-decoder as arrays: its shape and the weights of each layer, by the names of transformers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .marian_shape import Shape
from .weights import Dense, Floats, Linear, Norm, Weight, stacked

_ACTIVATIONS = ("relu", "swish", "silu", "gelu")


@dataclass(frozen=True)
class EncoderLayer:
    """Self-attention and MLP, each with a norm behind it.

    Queries, keys and values are one product; queries are divided by √(head size).
    """

    qkv: Linear
    output: Linear
    norm: Norm
    up: Linear
    down: Linear
    mlp_norm: Norm


@dataclass(frozen=True)
class DecoderLayer(EncoderLayer):
    """The same, with cross-attention between the two; its keys and values are computed after the encoder."""

    cross_query: Linear
    cross_output: Linear
    cross_norm: Norm


@dataclass(frozen=True)
class Marian:
    """The weights of an encoder-decoder."""

    shape: Shape
    encoder_heads: int
    embedding: Weight  # (vocabulary, width) of sources, times the scale of embeddings
    target_embedding: Weight | None  # of targets; None: the same
    positions: Floats  # (window, width)
    encoder: list[EncoderLayer]
    cross: Linear  # keys and values of each decoder layer, in one product: (2 · layers · width, width)
    decoder: list[DecoderLayer]
    output: Linear  # (vocabulary, width)


def of_arrays(config: Mapping[str, Any], arrays: Mapping[str, Any]) -> Marian:
    """Return the model that a config.json of transformers and its weights, as numpy arrays, describe."""
    shape, read = _shape(config), _Reader(arrays)
    scale = np.float32(shape.width**0.5 if config.get("scale_embedding") else 1)
    shared = arrays.get("model.shared.weight")
    source, target = (arrays.get(f"model.{part}.embed_tokens.weight", shared) for part in ("encoder", "decoder"))
    same = source is target or np.array_equal(source, target)
    output = target if config.get("tie_word_embeddings", True) else arrays["lm_head.weight"]
    positions = arrays.get("model.decoder.embed_positions.weight")
    cross = [f"model.decoder.layers.{n}.encoder_attn.{part}_proj" for n in range(shape.layers) for part in "kv"]
    encoder_heads = config["encoder_attention_heads"]
    bias = arrays.get("final_logits_bias", np.zeros(shape.vocabulary))
    return Marian(
        shape=shape,
        encoder_heads=encoder_heads,
        embedding=Dense(source * scale),
        target_embedding=None if same else Dense(target * scale),
        positions=_sinusoids(shape) if positions is None else positions.astype(np.float32),
        encoder=[
            EncoderLayer(**read.layer(f"model.encoder.layers.{n}", shape.width // encoder_heads))
            for n in range(config["encoder_layers"])
        ],
        cross=read.linear(*cross),
        decoder=[read.decoder_layer(f"model.decoder.layers.{n}", shape.head_size) for n in range(shape.layers)],
        output=Linear(Dense(output.astype(np.float32)), bias.reshape(-1).astype(np.float32)),
    )


class _Reader:
    """Reads layers from the arrays of a checkpoint."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.arrays = arrays

    def vector(self, name: str) -> Floats:
        return np.asarray(self.arrays[name], np.float32)

    def linear(self, *names: str, factor: float = 1.0) -> Linear:
        """Return one product with the outputs of all; the first is multiplied by `factor`."""
        factors = [np.float32(factor), *[np.float32(1)] * (len(names) - 1)]
        weights = [Dense(self.vector(f"{name}.weight") * f) for name, f in zip(names, factors, strict=True)]
        biases = [self.vector(f"{name}.bias") * f for name, f in zip(names, factors, strict=True)]
        return Linear(stacked(weights), np.concatenate(biases))

    def norm(self, name: str) -> Norm:
        return Norm(self.vector(f"{name}.weight"), self.vector(f"{name}.bias"))

    def layer(self, name: str, head_size: int) -> dict[str, Any]:
        """Return the parts that layers of both stacks have."""
        attention = f"{name}.self_attn"
        return {
            "qkv": self.linear(*(f"{attention}.{part}_proj" for part in "qkv"), factor=head_size**-0.5),
            "output": self.linear(f"{attention}.out_proj"),
            "norm": self.norm(f"{name}.self_attn_layer_norm"),
            "up": self.linear(f"{name}.fc1"),
            "down": self.linear(f"{name}.fc2"),
            "mlp_norm": self.norm(f"{name}.final_layer_norm"),
        }

    def decoder_layer(self, name: str, head_size: int) -> DecoderLayer:
        return DecoderLayer(
            **self.layer(name, head_size),
            cross_query=self.linear(f"{name}.encoder_attn.q_proj", factor=head_size**-0.5),
            cross_output=self.linear(f"{name}.encoder_attn.out_proj"),
            cross_norm=self.norm(f"{name}.encoder_attn_layer_norm"),
        )


def _shape(config: Mapping[str, Any]) -> Shape:
    activation = config.get("activation_function", "gelu")
    if activation not in _ACTIVATIONS:
        raise ValueError(f"the onnx engine cannot run a model with the activation {activation}")
    if config.get("decoder_vocab_size", config["vocab_size"]) != config["vocab_size"]:
        raise ValueError("the onnx engine cannot run a model with different vocabularies of sources and targets")
    return Shape(
        vocabulary=config["vocab_size"],
        width=config["d_model"],
        layers=config["decoder_layers"],
        heads=config["decoder_attention_heads"],
        window=config["max_position_embeddings"],
        activation="silu" if activation == "swish" else activation,
    )


def _sinusoids(shape: Shape) -> Floats:
    """Return Marian's positions: sines in the first half, cosines in the second, (window, width)."""
    speeds = 10_000.0 ** (-2 * np.arange((shape.width + 1) // 2) / shape.width)
    angles = np.outer(np.arange(shape.window), speeds)
    return np.concatenate([np.sin(angles), np.cos(angles)], 1).astype(np.float32)
