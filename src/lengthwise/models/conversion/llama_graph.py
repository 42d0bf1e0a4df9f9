"""The ONNX graph of a Llama-type decoder for onnxruntime: RMS norms before each part, rotary positions, gated MLP."""

from functools import partial
from pathlib import Path

import numpy as np

from .decoder_graph import Attention, Inputs, save_decoder
from .graph_builder import OURS, Graph
from .llama import Llama, Shape
from .weights import Floats


def save_graph(model: Llama, folder: Path) -> None:
    """Write the graph of the decoder, with its weights, into `folder`."""
    save_decoder(folder, model.shape, partial(_decoder, model), model.output)


def _decoder(model: Llama, graph: Graph, inputs: Inputs) -> str:
    """Return the last hidden states: (batch * time, width)."""
    shape = model.shape
    cosine, sine = (graph.constant(table) for table in _rotations(shape))
    attention = Attention(graph, shape, inputs, (cosine, sine))
    x = graph.rows(model.embedding, graph.node("Reshape", inputs.ids, graph.constant(np.array([-1]))))
    normed = graph.norm(x, model.layers[0].attention_norm, shape.epsilon)
    norms = [*(layer.attention_norm for layer in model.layers[1:]), model.norm]
    for n, (layer, norm) in enumerate(zip(model.layers, norms, strict=True)):
        qkv = graph.linear(normed, layer.qkv)
        if layer.qkv_bias is not None:
            qkv = graph.node("Add", qkv, graph.constant(layer.qkv_bias))
        attended = graph.linear(attention.layer(n, qkv), layer.output)
        normed, x = _add_and_norm(graph, x, attended, layer.mlp_norm, shape)
        gate, up = graph.node("Split", graph.linear(normed, layer.gate_up), outputs=2, axis=-1, num_outputs=2)
        active = graph.node("Mul", graph.silu(gate), up)
        normed, x = _add_and_norm(graph, x, graph.linear(active, layer.down), norm, shape)
    return normed


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
