"""The embeddings of a converted decoder, read from the file of its graph's weights. Nothing else of it is read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..length.meter import Integers

Floats = NDArray[np.float32]


def read_embedding(graph: Path) -> Callable[[Integers], Floats]:
    """Return a function from ids to their embeddings, (…,) -> (…, width).

    The graph looks ids up in its first tables: in one of floats, or in one of 8-bit blocks and then in their scales.
    """
    import onnx  # a third of a second

    model = onnx.load(graph, load_external_data=False).graph
    stored = {one.name: one for one in model.initializer}
    looked_up = [node.input[0] for node in model.node if node.op_type == "Gather" and node.input[0] in stored]
    table = _mapped(graph, stored[looked_up[0]])
    if table.dtype == np.float32:
        return lambda ids: table[ids]
    scale = _mapped(graph, stored[looked_up[1]])

    def rows(ids: Integers) -> Floats:
        found = table[ids] * scale[ids]  # (…, blocks, numbers)
        return found.reshape(*ids.shape, -1)

    return rows


def _mapped(graph: Path, tensor: Any) -> NDArray[Any]:
    """Return a tensor of the graph, mapped into memory where it has a file of its own."""
    from onnx import TensorProto, helper, numpy_helper

    if tensor.data_location != TensorProto.EXTERNAL:
        return np.asarray(numpy_helper.to_array(tensor))
    place = {entry.key: entry.value for entry in tensor.external_data}
    kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    offset = int(place.get("offset", 0))
    return np.memmap(graph.parent / place["location"], kind, "r", offset, tuple(tensor.dims))
