"""Record a function as a CUDA graph, which launches all its kernels at once."""

from collections.abc import Callable
from typing import Any

import torch

_BEFORE = 3  # runs before the recording, in which CUDA libraries initialise


def record(step: Callable[[], None], pool: Any = None) -> tuple[Any, int]:
    """Return a graph of `step`, and how often `step` was run for that. The recording itself changes no tensor.

    `step` changes tensors in place, since the graph refers to them by address. `pool`: memory that graphs share. Other
    threads may use the GPU meanwhile.
    """
    current = torch.cuda.current_stream()
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(current)
    with torch.cuda.stream(aside):
        for _ in range(_BEFORE):
            step()
    current.wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            step()
    except RuntimeError:
        torch.cuda.set_stream(current)  # a recording that fails does not restore it
        raise
    return graph, _BEFORE
