"""The ONNX graph of a Llama-type decoder for onnxruntime.

Token ids and a KV cache go in; last hidden states and logits of chosen steps come out. The cache is updated in place:
its inputs and outputs are bound to the same buffers. Rows of a batch can have different numbers of tokens.
The countdown head is part of the graph. Its weights are inputs, so that any head of this width can be used; a model
without one gets zeros, which change nothing.
"""

from pathlib import Path

import numpy as np

from .countdown_head import countdown_head
from .graph_builder import FLOAT, INT32, INT64, OURS, Graph
from .llama import Layer, Llama, Shape
from .weights import Floats

GRAPH = "model.onnx"


def save_graph(model: Llama, folder: Path) -> None:
    """Write the graph of the decoder, with its weights, into `folder`."""
    graph = Graph()
    ids = graph.input("ids", INT64, ["batch", "time"])
    last = graph.input("last", INT32, ["batch"])  # the index of the last token of each row, counted with the cache
    total = graph.input("total", INT32, [])  # tokens of the longest row, counted with the cache
    hidden = _decoder(graph, model, ids, last, total)
    steps = graph.input("steps", INT64, ["n"])  # which of the batch * time steps predict a token
    hidden = graph.node("Gather", hidden, steps)
    logits = graph.linear(countdown_head(graph, hidden, model.shape.width), model.output)
    graph.output(hidden, "hidden", ["n", model.shape.width])
    graph.output(logits, "logits", ["n", model.shape.vocabulary])
    graph.save(folder / GRAPH)


def _decoder(graph: Graph, model: Llama, ids: str, last: str, total: str) -> str:
    """Return the last hidden states: (batch * time, width)."""
    shape = model.shape
    cosine, sine = (graph.constant(table) for table in _rotations(shape))
    x = graph.rows(model.embedding, graph.node("Reshape", ids, graph.constant(np.array([-1]))))
    normed = graph.norm(x, model.layers[0].attention_norm, shape.epsilon)
    wide = graph.constant(np.array([(shape.heads + 2 * shape.kv_heads) * shape.head_size]))
    sizes = graph.node("Concat", graph.node("Shape", ids), wide, axis=0)
    norms = [*(layer.attention_norm for layer in model.layers[1:]), model.norm]
    for n, (layer, norm) in enumerate(zip(model.layers, norms, strict=True)):
        attended = _attention(graph, layer, n, shape, normed, sizes, (last, total, cosine, sine))
        normed, x = _add_and_norm(graph, x, attended, layer.mlp_norm, shape)
        gate, up = graph.node("Split", graph.linear(normed, layer.gate_up), outputs=2, axis=-1, num_outputs=2)
        active = graph.node("Mul", graph.silu(gate), up)
        normed, x = _add_and_norm(graph, x, graph.linear(active, layer.down), norm, shape)
    return normed


def _attention(
    graph: Graph, layer: Layer, n: int, shape: Shape, normed: str, sizes: str, rest: tuple[str, str, str, str]
) -> str:
    """Return the output of one attention layer, (batch * time, width), and update the cache of this layer."""
    qkv = graph.linear(normed, layer.qkv)
    if layer.qkv_bias is not None:
        qkv = graph.node("Add", qkv, graph.constant(layer.qkv_bias))
    qkv = graph.node("Reshape", qkv, sizes)
    cache = ["batch", shape.kv_heads, "capacity", shape.head_size]
    past = [graph.input(f"{kind}.{n}", FLOAT, cache) for kind in ("key", "value")]
    found, *present = graph.node(
        "GroupQueryAttention",
        *(qkv, "", "", *past, *rest),
        outputs=3,
        domain=OURS,
        num_heads=shape.heads,
        kv_num_heads=shape.kv_heads,
        do_rotary=1,
    )
    for kind, value in zip(("key", "value"), present, strict=True):
        graph.output(value, f"new_{kind}.{n}", cache)
    flat = graph.node("Reshape", found, graph.constant(np.array([-1, shape.heads * shape.head_size])))
    return graph.linear(flat, layer.output)


def _add_and_norm(graph: Graph, x: str, more: str, norm: Floats, shape: Shape) -> tuple[str, str]:
    """Return the RMS norm of x + more, and the sum itself."""
    normed, _, _, total = graph.node(
        "SkipSimplifiedLayerNormalization",
        *(x, more, graph.constant(norm)),
        outputs=4,
        domain=OURS,
        epsilon=shape.epsilon,
    )
    return normed, total


def _rotations(shape: Shape) -> tuple[Floats, Floats]:
    """Return the cosines and sines of the rotary positions: (window, head size / 2) each."""
    speeds = shape.rope_base ** (-np.arange(0, shape.head_size, 2) / shape.head_size)
    angles = np.outer(np.arange(shape.window), speeds)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
