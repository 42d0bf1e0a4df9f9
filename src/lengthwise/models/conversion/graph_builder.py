"""A builder of ONNX graphs for onnxruntime: nodes, constants, and layers whose weights are dense or in 8 or 4 bits.

Weights in 4-bit blocks keep their values. onnxruntime's fast product takes blocks without a minimum, so
    d·q + m = d·(q − 8) + (m + 8·d)
is computed as that product plus a small one with the sum of each block of the input.
Weights with one scale for each output are multiplied in integers: each row of the input is rounded to 8 bits by its own
largest number, so that a row of a batch does not depend on the others.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .overflow import signed_weights_overflow
from .weights import BLOCK, Blocks8, Channels8, Dense, Floats, Linear, Weight

OURS = "com.microsoft"  # operators of onnxruntime
FLOAT, INT32, INT64 = 1, 6, 7  # types of tensors in ONNX
_INT8_ACTIVATIONS = 4  # MatMulNBits: inputs are rounded to 8 bits, block by block
_LEVELS, _ZERO = 127, 128  # numbers of a rounded row are from -127 to 127, stored with 128 added


class Graph:
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

    def constant(self, array: NDArray[Any] | np.generic) -> str:
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
        self.outputs.append(helper.make_tensor_value_info(name, FLOAT, shape))

    def save(self, path: Path) -> None:
        """Write the graph to `path` and its constants to a file beside it."""
        import onnx
        from onnx import helper

        graph = helper.make_graph(self.nodes, path.stem, self.inputs, self.outputs, self.constants)
        versions = [helper.make_opsetid("", 21), helper.make_opsetid(OURS, 1)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=10)
        beside = path.with_suffix(".weights")
        onnx.save_model(model, path, save_as_external_data=True, location=beside.name, size_threshold=1024)
        shutil.copymode(path, beside)  # only the owner could read it

    # ---- layers

    def linear(self, x: str, weight: Weight) -> str:
        """Return x · weightᵀ: (n, in) -> (n, out)."""
        if isinstance(weight, Dense):
            return self.node("MatMul", x, self.constant(weight.values.T))
        if isinstance(weight, Channels8):
            return self._integer_product(x, weight)
        out, blocks, _ = weight.q.shape
        sizes = {"K": blocks * BLOCK, "N": out, "block_size": BLOCK, "accuracy_level": _INT8_ACTIVATIONS}
        scale = self.constant(weight.scale.reshape(-1))
        if isinstance(weight, Blocks8):
            q = self.constant(weight.q.view(np.uint8) ^ 128)  # numbers from -128 become numbers from 0
            return self.node("MatMulNBits", x, q, scale, domain=OURS, bits=8, **sizes)
        q = self.constant(weight.q[..., ::2] | weight.q[..., 1::2] << 4)
        product = self.node("MatMulNBits", x, q, scale, domain=OURS, bits=4, **sizes)
        split = self.node("Reshape", x, self.constant(np.array([-1, blocks, BLOCK])))
        sums = self.node("ReduceSum", split, self.constant(np.array([2])), keepdims=0)  # (n, blocks)
        offset = weight.minimum + 8 * weight.scale  # (out, blocks)
        return self.node("Gemm", sums, self.constant(offset.T), product)

    def _integer_product(self, x: str, weight: Channels8) -> str:
        """Return x · weightᵀ, computed from x in 8 bits: each row is divided by its largest number."""
        largest = self.node("ReduceMax", self.node("Abs", x), self.constant(np.array([-1])), keepdims=1)
        largest = self.node("Max", largest, self.constant(np.float32(1e-12)))
        step, zero = self.constant(np.float32(1 / _LEVELS)), self.constant(np.uint8(_ZERO))
        q = self.node("QuantizeLinear", self.node("Div", x, largest), step, zero)
        weights, weight_zero = weight.q.T, self.constant(np.int8(0))
        if signed_weights_overflow():  # onnxruntime would convert them, which takes most of the time of its start
            weights, weight_zero = weights.view(np.uint8) ^ 128, zero  # numbers from -128 become numbers from 0
        inputs = (q, self.constant(weights), step, self.constant(weight.scale), zero, weight_zero)
        return self.node("Mul", self.node("MatMulIntegerToFloat", *inputs, domain=OURS), largest)

    def affine(self, x: str, layer: Linear) -> str:
        """Return x · weightᵀ + bias: (n, in) -> (n, out)."""
        return self.node("Add", self.linear(x, layer.weight), self.constant(layer.bias))

    def norm(self, x: str, gain: Floats, epsilon: float) -> str:
        """Return the RMS norm of each row of x, times `gain`."""
        return self.node("SimplifiedLayerNormalization", x, self.constant(gain), epsilon=epsilon, axis=-1)

    def silu(self, x: str) -> str:
        """Return x · sigmoid(x)."""
        return self.node("QuickGelu", x, domain=OURS, alpha=1.0)

    def rows(self, table: Weight, ids: str) -> str:
        """Return the rows of `table` with these ids: (n,) -> (n, in)."""
        if isinstance(table, Dense):
            return self.node("Gather", self.constant(table.values), ids)
        if not isinstance(table, Blocks8):
            raise ValueError(f"an embedding of the kind {type(table).__name__} is not supported")
        q = self.node("Cast", self.node("Gather", self.constant(table.q), ids), to=FLOAT)
        values = self.node("Mul", q, self.node("Gather", self.constant(table.scale[..., None]), ids))
        return self.node("Reshape", values, self.constant(np.array([-1, table.scale.shape[1] * BLOCK])))
