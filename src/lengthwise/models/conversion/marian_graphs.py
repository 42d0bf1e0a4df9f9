"""The ONNX graphs of a Marian encoder-decoder for onnxruntime: the encoder, and one pass of the decoder.

Embeddings go in; the engine (`engines/onnx_marian_graphs.py`) looks them up, so that both graphs share one table, and
adds positions and length encodings. The encoder returns the keys and values of the decoder's cross-attention.
A pass of the decoder appends `time` tokens to each source. The tokens may be those of several beams: a token sees the
columns of the cache, and the new tokens, that its row of the mask shows. So beams of a source share the keys and values
of the source, and a cache is never reordered. The keys and values of the new tokens are returned, to be stored by the
engine: nothing is copied within the graph.
"""

from pathlib import Path

import numpy as np

from .countdown_head import countdown_head
from .file_names import DECODER, ENCODER
from .graph_builder import FLOAT, INT64, OURS, Graph
from .marian import DecoderLayer, EncoderLayer, Marian
from .marian_shape import Shape
from .weights import Linear, Norm

_EPSILON = 1e-5  # of the layer norms


def save_encoder(model: Marian, folder: Path) -> None:
    """Write the graph of the encoder, with its weights, into `folder`."""
    shape, graph = model.shape, Graph()
    inputs = graph.input("inputs", FLOAT, ["batch", "time", shape.width])
    mask = graph.input("mask", FLOAT, ["batch", 1, 1, "time"])  # 0 for tokens, a large negative number for padding
    sizes = _Sizes(graph, inputs, shape.width, model.encoder_heads)
    x = sizes.flat(inputs)
    for layer in model.encoder:
        query, key, value = sizes.split_heads(graph.affine(x, layer.qkv), 3)
        logits = graph.node("Add", _product(graph, query, key), mask)
        attended = graph.node("MatMul", graph.node("Softmax", logits, axis=-1), value)
        x = _add_and_norm(graph, x, sizes.join_heads(attended), layer.output, layer.norm)
        x = _mlp(graph, x, layer, shape)
    cross = _Sizes(graph, inputs, shape.width, shape.heads).heads(graph.affine(x, model.cross), 2 * shape.layers)
    graph.output(cross, "cross", [2 * shape.layers, "batch", shape.heads, "time", shape.head_size])
    graph.save(folder / ENCODER)


def save_decoder(model: Marian, folder: Path) -> None:
    """Write the graph of the decoder, with its weights, into `folder`."""
    shape, graph = model.shape, Graph()
    inputs = graph.input("inputs", FLOAT, ["batch", "time", shape.width])
    masks = {
        "past": graph.input("mask", FLOAT, ["batch", 1, "time", "seen"]),  # the columns of the cache, then new tokens
        "cross": graph.input("source_mask", FLOAT, ["batch", 1, 1, "source"]),
    }
    sizes = _Sizes(graph, inputs, shape.width, shape.heads)
    x, new = sizes.flat(inputs), []
    capacity = graph.node("Shape", graph.input("key.0", FLOAT, _cache(shape, "capacity")), start=2, end=3)
    parts = graph.node("Concat", capacity, graph.node("Shape", inputs, start=1, end=2), axis=0)
    for n, layer in enumerate(model.decoder):
        past = [name if name == "key.0" else graph.input(name, FLOAT, _cache(shape, "capacity")) for name in _names(n)]
        query, *own = sizes.split_heads(graph.affine(x, layer.qkv), 3)
        attended = _cached_attention(graph, query, past, own, masks["past"], parts)
        x = _add_and_norm(graph, x, sizes.join_heads(attended), layer.output, layer.norm)
        x = _cross_attention(graph, x, layer, n, sizes, shape, masks["cross"])
        x = _mlp(graph, x, layer, shape)
        new += own
    hidden = graph.node("Gather", x, graph.input("steps", INT64, ["n"]))  # which tokens predict one that is asked for
    logits = graph.affine(countdown_head(graph, hidden, shape.width), model.output)
    graph.output(hidden, "hidden", ["n", shape.width])
    graph.output(logits, "logits", ["n", shape.vocabulary])
    for name, value in zip((name for n in range(shape.layers) for name in _names(n)), new, strict=True):
        graph.output(value, f"new_{name}", _cache(shape, "time"))
    graph.save(folder / DECODER)


class _Sizes:
    """Reshapes between tokens of all rows, (batch · time, width), and heads, (batch, heads, time, head size)."""

    def __init__(self, graph: Graph, inputs: str, width: int, heads: int) -> None:
        self._graph, self._width, self._heads = graph, width, heads
        self._rows = graph.node("Shape", inputs, start=0, end=2)  # batch, time

    def flat(self, x: str) -> str:
        return self._graph.node("Reshape", x, self._graph.constant(np.array([-1, self._width])))

    def heads(self, x: str, parts: int) -> str:
        """Return (parts, batch, heads, time, head size) of a product with so many parts."""
        size = self._width // self._heads
        shape = self._graph.constant(np.array([parts, self._heads, size]))
        split = self._graph.node("Reshape", x, self._graph.node("Concat", self._rows, shape, axis=0))
        return self._graph.node("Transpose", split, perm=[2, 0, 3, 1, 4])

    def split_heads(self, x: str, parts: int) -> list[str]:
        """Return each of the parts: (batch, heads, time, head size)."""
        axis, found = self._graph.constant(np.array([0])), self.heads(x, parts)
        split = self._graph.node("Split", found, outputs=parts, axis=0, num_outputs=parts) if parts > 1 else [found]
        return [self._graph.node("Squeeze", one, axis) for one in split]

    def join_heads(self, x: str) -> str:
        return self.flat(self._graph.node("Transpose", x, perm=[0, 2, 1, 3]))


def _cache(shape: Shape, columns: str) -> list[str | int]:
    return ["batch", shape.heads, columns, shape.head_size]


def _names(layer: int) -> tuple[str, str]:
    return f"key.{layer}", f"value.{layer}"


def _product(graph: Graph, query: str, key: str) -> str:
    """Return the logits of an attention, without a mask."""
    return graph.node("FusedMatMul", query, key, domain=OURS, transB=1)


def _cached_attention(graph: Graph, query: str, past: list[str], new: list[str], mask: str, parts: str) -> str:
    """Return the self-attention of new tokens to the cache and to each other.

    The two are not joined: that would copy the cache in every step.
    """
    logits = graph.node("Concat", *(_product(graph, query, keys) for keys in (past[0], new[0])), axis=-1)
    weights = graph.node("Softmax", graph.node("Add", logits, mask), axis=-1)
    split = graph.node("Split", weights, parts, outputs=2, axis=-1)
    return graph.node("Add", *(graph.node("MatMul", w, v) for w, v in zip(split, (past[1], new[1]), strict=True)))


def _cross_attention(graph: Graph, x: str, layer: DecoderLayer, n: int, sizes: _Sizes, shape: Shape, mask: str) -> str:
    key, value = (graph.input(f"cross_{name}", FLOAT, _cache(shape, "source")) for name in _names(n))
    [query] = sizes.split_heads(graph.affine(x, layer.cross_query), 1)
    logits = graph.node("Add", _product(graph, query, key), mask)
    attended = graph.node("MatMul", graph.node("Softmax", logits, axis=-1), value)
    return _add_and_norm(graph, x, sizes.join_heads(attended), layer.cross_output, layer.cross_norm)


def _mlp(graph: Graph, x: str, layer: EncoderLayer, shape: Shape) -> str:
    up = graph.affine(x, layer.up)
    active = graph.silu(up) if shape.activation == "silu" else graph.node(shape.activation.capitalize(), up)
    return _add_and_norm(graph, x, active, layer.down, layer.mlp_norm)


def _add_and_norm(graph: Graph, x: str, inner: str, layer: Linear, norm: Norm) -> str:
    """Return the layer norm of x + layer(inner)."""
    product = graph.linear(inner, layer.weight)
    constants = (graph.constant(array) for array in (norm.gain, norm.shift, layer.bias))
    return graph.node("SkipLayerNormalization", x, product, *constants, domain=OURS, epsilon=_EPSILON)
