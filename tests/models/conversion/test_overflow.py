"""Signed 8-bit weights are made unsigned only on CPUs where products with them overflow."""

import onnx
import pytest
from onnx import TensorProto, helper

from lengthwise.engines import onnx_session
from lengthwise.models.conversion import overflow


def test_the_bytes_are_the_graph_of_one_product():
    kinds = {"inputs": TensorProto.UINT8, "weights": TensorProto.INT8}
    values = [helper.make_tensor_value_info(name, kind, [None, None]) for name, kind in kinds.items()]
    output = helper.make_tensor_value_info("output", TensorProto.INT32, [None, None])
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["inputs", "weights"], ["output"])], "product", values, [output]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    model.ClearField("producer_name")
    assert onnx.load_from_string(overflow.PRODUCT) == model


@pytest.mark.parametrize("overflows", [True, False])
def test_sessions_change_weights_only_where_products_overflow(overflows, monkeypatch, tmp_path):
    """With VNNI, products of unsigned weights take more than twice as long as those of signed ones."""
    monkeypatch.setattr(onnx_session, "signed_weights_overflow", lambda: overflows)
    (tmp_path / "graph.onnx").write_bytes(overflow.PRODUCT)
    options = onnx_session._open(tmp_path / "graph.onnx").get_session_options()
    if overflows:
        assert options.get_session_config_entry(onnx_session.UNSIGNED_WEIGHTS) == "1"
    else:
        with pytest.raises(RuntimeError):  # not set
            options.get_session_config_entry(onnx_session.UNSIGNED_WEIGHTS)
