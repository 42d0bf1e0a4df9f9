"""Products in 8 bits are exact with signed weights and, for CPUs where these overflow, with unsigned ones."""

import numpy as np
import pytest

from lengthwise.engines.onnx_session import Session
from lengthwise.models.conversion import graph_builder
from lengthwise.models.conversion.graph_builder import FLOAT, Graph
from lengthwise.models.conversion.weights import Channels8


@pytest.mark.parametrize("unsigned", [False, True])
def test_products_of_the_largest_numbers_are_exact(unsigned, tmp_path, monkeypatch):
    monkeypatch.setattr(graph_builder, "signed_weights_overflow", lambda: unsigned)
    q = np.random.default_rng(1).choice([-127, 127], (16, 64)).astype(np.int8)
    graph = Graph()
    x = graph.input("x", FLOAT, ["n", 64])
    graph.output(graph.linear(x, Channels8(np.full(16, 0.5, np.float32), q)), "y", ["n", 16])
    graph.save(tmp_path / "product.onnx")
    x = np.random.default_rng(2).choice([-1, 1], (3, 64)).astype(np.float32)
    [y] = Session(tmp_path / "product.onnx").run(["y"], {"x": x})
    np.testing.assert_allclose(y, 0.5 * x @ q.T, rtol=1e-5)
