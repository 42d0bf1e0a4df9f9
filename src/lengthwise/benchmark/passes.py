"""Passes: how often onnxruntime runs a graph for a text, and of which operators a graph consists.

These numbers do not depend on the machine's speed, so tests can hold them fixed.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from ..generation.generator import Writer


@dataclass
class Passes:
    """The number of runs inside a block."""

    count: int = 0


@contextmanager
def counted() -> Iterator[Passes]:
    """Count the runs of all sessions of onnxruntime inside the block."""
    from onnxruntime import InferenceSession

    found, methods = Passes(), {name: getattr(InferenceSession, name) for name in ("run", "run_with_iobinding")}

    def counting(method: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            found.count += 1
            return method(*args, **kwargs)

        return run

    for name, method in methods.items():
        setattr(InferenceSession, name, counting(method))
    try:
        yield found
    finally:
        for name, method in methods.items():
            setattr(InferenceSession, name, method)


def of_texts(writer: Writer, prompts: Sequence[str], budgets: Sequence[str]) -> list[dict[str, Any]]:
    """Return how many passes each text takes, alone, beside the tokens that it has."""
    rows = []
    for prompt, budget in zip(prompts, budgets, strict=True):
        with counted() as passes:
            [text] = writer.write([prompt], budget)
        rows.append({"prompt": prompt, "budget": budget, "tokens": text.tokens, "passes": passes.count})
    return rows


def operators(graph: Path) -> dict[str, int]:
    """Return how many nodes of each kind the graph has, the most frequent first."""
    return dict(Counter(node.op_type for node in _graph(graph).node).most_common())


def bytes_read(graph: Path) -> int:
    """Return the bytes of the weights that every pass reads: all but tables, of which it reads a few rows."""
    import onnx

    loaded = _graph(graph)
    tables = {node.input[0] for node in loaded.node if node.op_type == "Gather"}
    tables |= {name for node in loaded.node if node.op_type == "GroupQueryAttention" for name in node.input[7:9]}
    sizes = {
        one.name: prod(one.dims) * onnx.helper.tensor_dtype_to_np_dtype(one.data_type).itemsize
        for one in loaded.initializer
    }
    return sum(size for name, size in sizes.items() if name not in tables)


def _graph(path: Path) -> Any:
    import onnx

    return onnx.load(path, load_external_data=False).graph
