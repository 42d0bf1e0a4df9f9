"""Whether onnxruntime's products of unsigned and signed 8-bit numbers overflow on this CPU: on x86 without VNNI.

Sums of two products are kept in 16 bits there. Products of unsigned numbers are exact everywhere, but slower with VNNI.
"""

from functools import cache

import numpy as np

_DEPTH, _WIDTH = 64, 16  # large enough for the kernels that whole models use


@cache
def signed_weights_overflow() -> bool:
    """Return whether a product of the largest numbers, unsigned inputs and signed weights, is wrong here."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    weights = numpy_helper.from_array(np.full((_DEPTH, _WIDTH), 127, np.int8), "weights")
    inputs = helper.make_tensor_value_info("inputs", TensorProto.UINT8, ["n", _DEPTH])
    output = helper.make_tensor_value_info("output", TensorProto.INT32, ["n", _WIDTH])
    node = helper.make_node("MatMulInteger", ["inputs", "weights"], ["output"])
    graph = helper.make_graph([node], "product", [inputs], [output], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    [found] = session.run(["output"], {"inputs": np.full((2, _DEPTH), 255, np.uint8)})
    return bool((found != _DEPTH * 255 * 127).any())
