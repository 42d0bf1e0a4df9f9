"""The countdown head as nodes of a graph. Its weights are inputs, so that a graph serves any head of its width.

A model without a head gets zeros, which change nothing. `controls/countdown_head.py` has the formula.
"""

import numpy as np

from .graph_builder import FLOAT, INT64, Graph


def countdown_head(graph: Graph, hidden: str, width: int) -> str:
    """Return the hidden states after the countdown head: (n, width)."""
    state = graph.input("state", INT64, ["n"])
    inner, outer = graph.input("inner", FLOAT, [width, "units"]), graph.input("outer", FLOAT, ["units", width])
    gain, shift, choice = (
        graph.node("Gather", graph.input(name, FLOAT, ["states", size]), state)
        for name, size in (("gain", "units"), ("shift", "units"), ("choice", width))
    )
    normed = graph.norm(hidden, np.ones(width, np.float32), float(np.finfo(np.float32).eps))
    read = graph.node("Add", graph.node("Mul", graph.node("MatMul", normed, inner), gain), shift)
    change = graph.node("Add", choice, graph.node("MatMul", graph.silu(read), outer))
    return graph.node("Add", hidden, change)
