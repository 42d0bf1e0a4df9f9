"""What the ONNX graphs of decoders have in common: their inputs and outputs, and attention with a KV cache.

Token ids and a KV cache go in; last hidden states and logits of chosen steps come out. The cache is updated in place:
its inputs and outputs are bound to the same buffers. Rows of a batch can have different numbers of tokens.
The countdown head is part of the graph. Its weights are inputs, so that any head of this width can be used; a model
without one gets zeros, which change nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .countdown_head import countdown_head
from .decoder import DecoderShape
from .file_names import GRAPH
from .graph_builder import FLOAT, INT32, INT64, OURS, Graph
from .weights import Weight


@dataclass(frozen=True)
class Inputs:
    """The names of the inputs of a decoder."""

    ids: str  # (batch, time)
    last: str  # (batch,), the index of the last token of each row, counted with the cache
    total: str  # (), tokens of the longest row, counted with the cache


def save_decoder(folder: Path, shape: DecoderShape, decoder: Callable[[Graph, Inputs], str], output: Weight) -> None:
    """Write a graph with its weights into `folder`. `decoder` returns the last hidden states: (batch * time, width)."""
    graph = Graph()
    inputs = Inputs(
        graph.input("ids", INT64, ["batch", "time"]),
        graph.input("last", INT32, ["batch"]),
        graph.input("total", INT32, []),
    )
    hidden = decoder(graph, inputs)
    steps = graph.input("steps", INT64, ["n"])  # which of the batch * time steps predict a token
    hidden = graph.node("Gather", hidden, steps)
    logits = graph.linear(countdown_head(graph, hidden, shape.width), output)
    graph.output(hidden, "hidden", ["n", shape.width])
    graph.output(logits, "logits", ["n", shape.vocabulary])
    graph.save(folder / GRAPH)


class Attention:
    """Causal attention with a KV cache. `rotations`: constants with the cosines and sines of rotary positions."""

    def __init__(self, graph: Graph, shape: DecoderShape, inputs: Inputs, rotations: tuple[str, ...] = ()) -> None:
        self._graph, self._shape = graph, shape
        self._rest = (inputs.last, inputs.total, *rotations)
        self._rotary = int(bool(rotations))
        wide = graph.constant(np.array([(shape.heads + 2 * shape.kv_heads) * shape.head_size]))
        self._sizes = graph.node("Concat", graph.node("Shape", inputs.ids), wide, axis=0)

    def layer(self, n: int, qkv: str, **attributes: Any) -> str:
        """Return what the heads of layer `n` read, (batch * time, heads * head size), and update its cache.

        `qkv`: queries, keys and values, in one product, (batch * time, ...).
        """
        graph, shape = self._graph, self._shape
        cache = ["batch", shape.kv_heads, "capacity", shape.head_size]
        past = [graph.input(f"{kind}.{n}", FLOAT, cache) for kind in ("key", "value")]
        found, *present = graph.node(
            "GroupQueryAttention",
            *(graph.node("Reshape", qkv, self._sizes), "", "", *past, *self._rest),
            outputs=3,
            domain=OURS,
            num_heads=shape.heads,
            kv_num_heads=shape.kv_heads,
            do_rotary=self._rotary,
            **attributes,
        )
        for kind, value in zip(("key", "value"), present, strict=True):
            graph.output(value, f"new_{kind}.{n}", cache)
        return graph.node("Reshape", found, graph.constant(np.array([-1, shape.heads * shape.head_size])))
