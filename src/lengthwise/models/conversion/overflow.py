"""Whether onnxruntime's products of unsigned and signed 8-bit numbers overflow on this CPU: on x86 without VNNI.

Sums of two products are kept in 16 bits there. Products of unsigned numbers are exact everywhere, but with VNNI they
take more than twice as long.
"""

from functools import cache

import numpy as np

_DEPTH, _WIDTH = 64, 16  # large enough for the kernels that whole models use
# A graph with one node, output = MatMulInteger(inputs, weights), as a file of ONNX (`test_overflow.py` makes it). It is
# kept as bytes because importing onnx would take longer than the product and the rest of the start of a small model.
PRODUCT = bytes.fromhex(
    "080a3a760a280a06696e707574730a077765696768747312066f7574707574220d4d61744d756c496e7465676572120770726f647563745a"
    "140a06696e70757473120a0a08080212040a000a005a150a0777656967687473120a0a08080312040a000a0062140a066f7574707574120a"
    "0a08080612040a000a0042040a001015"
)


@cache
def signed_weights_overflow() -> bool:
    """Return whether a product of the largest numbers, unsigned inputs and signed weights, is wrong here."""
    import onnxruntime

    session = onnxruntime.InferenceSession(PRODUCT, providers=["CPUExecutionProvider"])
    inputs, weights = np.full((2, _DEPTH), 255, np.uint8), np.full((_DEPTH, _WIDTH), 127, np.int8)
    [found] = session.run(["output"], {"inputs": inputs, "weights": weights})
    return bool((found != _DEPTH * 255 * 127).any())
