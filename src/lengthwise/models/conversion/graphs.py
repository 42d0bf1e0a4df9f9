"""The ONNX graph of a Llama-type decoder for onnxruntime.

Token ids and a KV cache go in; last hidden states and logits of chosen steps come out. The cache is updated in place:
its inputs and outputs are bound to the same buffers. Rows of a batch can have different numbers of tokens.
The countdown head is part of the graph. Its weights are inputs, so that any head of this width can be used; a model
without one gets zeros, which change nothing.

Weights in 4-bit blocks keep their values. onnxruntime's fast product takes blocks without a minimum, so
    d·q + m = d·(q − 8) + (m + 8·d)
is computed as that product plus a small one with the sum of each block of the input.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .llama import Layer, Llama, Shape
from .weights import BLOCK, Blocks4, Blocks8, Dense, Floats, Weight

GRAPH = "model.onnx"
_OURS = "com.microsoft"  # operators of onnxruntime
_INT8_ACTIVATIONS = 4  # MatMulNBits: inputs are rounded to 8 bits, block by block
_FLOAT, _INT32, _INT64 = 1, 6, 7  # types of tensors in ONNX


class _Graph:
    """Nodes, constants, inputs and outputs of a graph that is being built."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def node(self, op: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Append a node and return the name of its output, or the names of several."""
        from onnx import helper

        name = f"{op}.{len(self.nodes)}"
        names = [f"{name}.{n}" for n in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=name, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array: NDArray[Any]) -> str:
        """Add a constant and return its name."""
        from onnx import numpy_helper

        name = f"constant.{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def input(self, name: str, kind: int, shape: list[Any]) -> str:
        from onnx import helper

        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, value: str, name: str, shape: list[Any]) -> None:
        """Name `value` as an output."""
        from onnx import helper

        for node in self.nodes:
            for names in (node.input, node.output):
                for n, one in enumerate(names):
                    names[n] = name if one == value else one
        self.outputs.append(helper.make_tensor_value_info(name, _FLOAT, shape))

    def save(self, path: Path) -> None:
        """Write the graph to `path` and its constants to a file beside it."""
        import onnx
        from onnx import helper

        graph = helper.make_graph(self.nodes, path.stem, self.inputs, self.outputs, self.constants)
        versions = [helper.make_opsetid("", 21), helper.make_opsetid(_OURS, 1)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=10)
        beside = path.with_suffix(".weights")
        onnx.save_model(model, path, save_as_external_data=True, location=beside.name, size_threshold=1024)
        shutil.copymode(path, beside)  # only the owner could read it

    # ---- layers

    def linear(self, x: str, weight: Weight) -> str:
        """Return x · weightᵀ: (n, in) -> (n, out)."""
        if isinstance(weight, Dense):
            return self.node("MatMul", x, self.constant(weight.values.T))
        out, blocks, _ = weight.q.shape
        sizes = {"K": blocks * BLOCK, "N": out, "block_size": BLOCK, "accuracy_level": _INT8_ACTIVATIONS}
        scale = self.constant(weight.scale.reshape(-1))
        if isinstance(weight, Blocks8):
            q = self.constant(weight.q.view(np.uint8) ^ 128)  # numbers from -128 become numbers from 0
            return self.node("MatMulNBits", x, q, scale, domain=_OURS, bits=8, **sizes)
        q = self.constant(weight.q[..., ::2] | weight.q[..., 1::2] << 4)
        product = self.node("MatMulNBits", x, q, scale, domain=_OURS, bits=4, **sizes)
        split = self.node("Reshape", x, self.constant(np.array([-1, blocks, BLOCK])))
        sums = self.node("ReduceSum", split, self.constant(np.array([2])), keepdims=0)  # (n, blocks)
        offset = weight.minimum + 8 * weight.scale  # (out, blocks)
        return self.node("Gemm", sums, self.constant(offset.T), product)

    def norm(self, x: str, gain: Floats, epsilon: float) -> str:
        """Return the RMS norm of each row of x, times `gain`."""
        return self.node("SimplifiedLayerNormalization", x, self.constant(gain), epsilon=epsilon, axis=-1)

    def silu(self, x: str) -> str:
        """Return x · sigmoid(x)."""
        return self.node("QuickGelu", x, domain=_OURS, alpha=1.0)

    def rows(self, table: Weight, ids: str) -> str:
        """Return the rows of `table` with these ids: (n,) -> (n, in)."""
        if isinstance(table, Dense):
            return self.node("Gather", self.constant(table.values), ids)
        if isinstance(table, Blocks4):
            raise ValueError("an embedding in 4-bit blocks is not supported")
        q = self.node("Cast", self.node("Gather", self.constant(table.q), ids), to=_FLOAT)
        values = self.node("Mul", q, self.node("Gather", self.constant(table.scale[..., None]), ids))
        return self.node("Reshape", values, self.constant(np.array([-1, table.scale.shape[1] * BLOCK])))


def save_graph(model: Llama, folder: Path) -> None:
    """Write the graph of the decoder, with its weights, into `folder`."""
    graph = _Graph()
    ids = graph.input("ids", _INT64, ["batch", "time"])
    last = graph.input("last", _INT32, ["batch"])  # the index of the last token of each row, counted with the cache
    total = graph.input("total", _INT32, [])  # tokens of the longest row, counted with the cache
    hidden = _decoder(graph, model, ids, last, total)
    steps = graph.input("steps", _INT64, ["n"])  # which of the batch * time steps predict a token
    hidden = graph.node("Gather", hidden, steps)
    logits = graph.linear(_countdown_head(graph, hidden, model.shape.width), model.output)
    graph.output(hidden, "hidden", ["n", model.shape.width])
    graph.output(logits, "logits", ["n", model.shape.vocabulary])
    graph.save(folder / GRAPH)


def _decoder(graph: _Graph, model: Llama, ids: str, last: str, total: str) -> str:
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
    graph: _Graph, layer: Layer, n: int, shape: Shape, normed: str, sizes: str, rest: tuple[str, str, str, str]
) -> str:
    """Return the output of one attention layer, (batch * time, width), and update the cache of this layer."""
    qkv = graph.linear(normed, layer.qkv)
    if layer.qkv_bias is not None:
        qkv = graph.node("Add", qkv, graph.constant(layer.qkv_bias))
    qkv = graph.node("Reshape", qkv, sizes)
    cache = ["batch", shape.kv_heads, "capacity", shape.head_size]
    past = [graph.input(f"{kind}.{n}", _FLOAT, cache) for kind in ("key", "value")]
    found, *present = graph.node(
        "GroupQueryAttention",
        *(qkv, "", "", *past, *rest),
        outputs=3,
        domain=_OURS,
        num_heads=shape.heads,
        kv_num_heads=shape.kv_heads,
        do_rotary=1,
    )
    for kind, value in zip(("key", "value"), present, strict=True):
        graph.output(value, f"new_{kind}.{n}", cache)
    flat = graph.node("Reshape", found, graph.constant(np.array([-1, shape.heads * shape.head_size])))
    return graph.linear(flat, layer.output)


def _add_and_norm(graph: _Graph, x: str, more: str, norm: Floats, shape: Shape) -> tuple[str, str]:
    """Return the RMS norm of x + more, and the sum itself."""
    normed, _, _, total = graph.node(
        "SkipSimplifiedLayerNormalization",
        *(x, more, graph.constant(norm)),
        outputs=4,
        domain=_OURS,
        epsilon=shape.epsilon,
    )
    return normed, total


def _rotations(shape: Shape) -> tuple[Floats, Floats]:
    """Return the cosines and sines of the rotary positions: (window, head size / 2) each."""
    speeds = shape.rope_base ** (-np.arange(0, shape.head_size, 2) / shape.head_size)
    angles = np.outer(np.arange(shape.window), speeds)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _countdown_head(graph: _Graph, hidden: str, width: int) -> str:
    """Return the hidden states after the countdown head: (n, width); see `controls/countdown_head.py`."""
    state = graph.input("state", _INT64, ["n"])
    inner, outer = graph.input("inner", _FLOAT, [width, "units"]), graph.input("outer", _FLOAT, ["units", width])
    gain, shift, choice = (
        graph.node("Gather", graph.input(name, _FLOAT, ["states", size]), state)
        for name, size in (("gain", "units"), ("shift", "units"), ("choice", width))
    )
    normed = graph.norm(hidden, np.ones(width, np.float32), float(np.finfo(np.float32).eps))
    read = graph.node("Add", graph.node("Mul", graph.node("MatMul", normed, inner), gain), shift)
    change = graph.node("Add", choice, graph.node("MatMul", graph.silu(read), outer))
    return graph.node("Add", hidden, change)
