"""The ONNX graph of a GPT-2-type decoder for onnxruntime: layer norms before each part, learnt positions, GELU."""

from functools import partial
from pathlib import Path

import numpy as np

from .decoder_graph import Attention, Inputs, save_decoder
from .gpt2 import Gpt2
from .graph_builder import INT64, OURS, Graph
from .weights import Linear, Norm


def save_graph(model: Gpt2, folder: Path) -> None:
    """Write the graph of the decoder, with its weights, into `folder`."""
    save_decoder(folder, model.shape, partial(_decoder, model), model.output)


def _decoder(model: Gpt2, graph: Graph, inputs: Inputs) -> str:
    """Return the last hidden states: (batch * time, width)."""
    shape, flat = model.shape, graph.constant(np.array([-1]))
    attention = Attention(graph, shape, inputs)
    x = graph.rows(model.embedding, graph.node("Reshape", inputs.ids, flat))
    positions = graph.node("Reshape", _positions(graph, inputs), flat)
    x = graph.node("Add", x, graph.node("Gather", graph.constant(model.positions), positions))
    first = model.layers[0].attention_norm
    constants = (graph.constant(array) for array in (first.gain, first.shift))
    normed = graph.node("LayerNormalization", x, *constants, epsilon=shape.epsilon, axis=-1)
    norms = [*(layer.attention_norm for layer in model.layers[1:]), model.norm]
    for n, (layer, norm) in enumerate(zip(model.layers, norms, strict=True)):
        attended = attention.layer(n, graph.affine(normed, layer.qkv), scale=layer.scale)
        normed, x = _add_and_norm(graph, x, attended, layer.output, layer.mlp_norm, shape.epsilon)
        up = graph.linear(normed, layer.up.weight)
        active = graph.node("FastGelu", up, graph.constant(layer.up.bias), domain=OURS)
        normed, x = _add_and_norm(graph, x, active, layer.down, norm, shape.epsilon)
    return normed


def _positions(graph: Graph, inputs: Inputs) -> str:
    """Return the position of each id: (batch, time).

    New ids of a row end at its last token. Rows of a first pass are padded behind: there, positions begin at 0.
    """
    zero, one = graph.constant(np.int64(0)), graph.constant(np.int64(1))
    time = graph.node("Squeeze", graph.node("Shape", inputs.ids, start=1, end=2))
    last = graph.node("Cast", inputs.last, to=INT64)
    first = graph.node("Max", graph.node("Sub", last, graph.node("Sub", time, one)), zero)
    column = graph.node("Unsqueeze", first, graph.constant(np.array([1])))
    return graph.node("Add", column, graph.node("Range", zero, time, one))


def _add_and_norm(graph: Graph, x: str, inner: str, layer: Linear, norm: Norm, epsilon: float) -> tuple[str, str]:
    """Return the layer norm of x + layer(inner), and the sum itself."""
    product = graph.linear(inner, layer.weight)
    constants = (graph.constant(array) for array in (norm.gain, norm.shift, layer.bias))
    normed, _, _, total = graph.node(
        "SkipLayerNormalization", x, product, *constants, outputs=4, domain=OURS, epsilon=epsilon
    )
    return normed, total
