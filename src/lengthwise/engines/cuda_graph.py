"""Record a function as a CUDA graph, which launches all its kernels at once."""

import warnings
from collections.abc import Callable
from typing import Any

import torch

_BEFORE = 3  # runs before the recording, in which CUDA libraries initialise


def record(step: Callable[[], None], pool: Any = None) -> tuple[Callable[[], None], int]:
    """Return a function that runs `step` as a graph, and how often `step` was run for that.

    `step` changes tensors in place, since the graph refers to them by address. The recording itself changes none. If it
    fails, a warning says so, and `step` itself is returned. `pool`: memory that graphs share. Other threads may use the
    GPU meanwhile.
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
    except RuntimeError as error:
        torch.cuda.set_stream(current)  # a recording that fails does not restore it
        if isinstance(error, torch.OutOfMemoryError):
            raise
        warnings.warn(f"decoding goes on without CUDA graphs, which failed: {error}", stacklevel=2)
        return step, _BEFORE
    return graph.replay, _BEFORE
