"""Weights in blocks: read as the gguf library reads them, and computed with as their values say."""

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from gguf import quants

from lengthwise.models.conversion import gguf_llama
from lengthwise.models.conversion.graph_builder import FLOAT, Graph
from lengthwise.models.conversion.weights import Dense, dense, quantised, reordered, stacked

VALUES = np.random.default_rng(0).normal(size=(6, 96)).astype(np.float32)


def read(kind):
    """The weight that a GGUF file of this kind has for `VALUES`, and its values as the gguf library reads them."""
    data = quants.quantize(VALUES, kind)
    return gguf_llama._READERS[kind.name](data), quants.dequantize(data, kind)


def product(weight, x):
    """x · weightᵀ, computed by onnxruntime."""
    import onnxruntime
    from onnx import helper

    graph = Graph()
    graph.output(graph.linear(graph.input("x", FLOAT, ["n", x.shape[1]]), weight), "y", ["n", "out"])
    made = helper.make_graph(graph.nodes, "g", graph.inputs, graph.outputs, graph.constants)
    versions = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(made, opset_imports=versions, ir_version=10).SerializeToString()
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


@pytest.mark.parametrize("kind", [Kind.F32, Kind.F16, Kind.Q8_0, Kind.Q4_1])
def test_blocks_have_the_values_of_the_file(kind):
    weight, expected = read(kind)
    np.testing.assert_array_equal(dense(weight), expected)


@pytest.mark.parametrize("kind", [Kind.F32, Kind.Q8_0, Kind.Q4_1])
def test_onnxruntime_multiplies_by_these_values(kind):
    weight, values = read(kind)
    x = np.random.default_rng(1).normal(size=(5, 96)).astype(np.float32)
    expected = x @ values.T
    error = np.abs(product(weight, x) - expected).max() / np.abs(expected).max()
    assert error < (1e-6 if kind is Kind.F32 else 0.01)  # inputs are rounded to 8 bits


@pytest.mark.parametrize("kind", [Kind.F32, Kind.Q8_0, Kind.Q4_1])
def test_rows_are_reordered_and_stacked_without_rounding(kind):
    weight, values = read(kind)
    order = np.array([3, 0, 5, 1, 2, 4])
    found = stacked([weight, reordered(weight, order)])
    np.testing.assert_array_equal(dense(found), np.concatenate([values, values[order]]))


def test_weights_of_different_kinds_cannot_be_stacked():
    with pytest.raises(ValueError, match="different kinds: Dense, Blocks8"):
        stacked([Dense(VALUES), quantised(Dense(VALUES))])


def test_quantising_rounds_by_half_a_step():
    weight = quantised(Dense(VALUES))
    assert (np.abs(dense(weight) - VALUES) <= weight.scale.repeat(32, 1) / 2 + 1e-7).all()
