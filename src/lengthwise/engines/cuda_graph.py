"""Record a function as a CUDA graph, which launches all its kernels at once."""

from collections.abc import Callable
from typing import Any

import torch

_BEFORE = 3  # runs before the recording, in which CUDA libraries initialise


def record(step: Callable[[], None], pool: Any = None) -> tuple[Any, int]:
    """Return a graph of `step`, and how often `step` was run for that. The recording itself changes no tensor.

    `step` changes tensors in place, since the graph refers to them by address. `pool`: memory that graphs share.
    """
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(_BEFORE):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        step()
    return graph, _BEFORE
