"""Record a function as a CUDA graph, which launches all its kernels at once."""

import warnings
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import torch

_BEFORE = 3  # runs before the recording, in which CUDA libraries initialise
_unrecorded: WeakSet[Any] = WeakSet()  # models of which a recording has failed


def record(model: Any, step: Callable[[], None], pool: Any = None) -> tuple[Callable[[], None], int]:
    """Return a function that runs a step of `model` as a graph, and how often `step` was run for that.

    `step` changes tensors in place, since the graph refers to them by address. The recording itself changes none. If it
    or a run before it fails, `step` is run once more, as usual. If that fails too, its error is raised; else a warning
    names the cause, and `step` itself is returned: now, and whenever a step of this model is to be recorded. Memory
    that is exhausted is always an error. `pool`: memory that graphs share. Other threads may use the GPU meanwhile.
    """
    if model in _unrecorded:
        return step, 0
    current, taken = torch.cuda.current_stream(), 0
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(current)
    try:
        with torch.cuda.stream(aside):
            for _ in range(_BEFORE):
                step()
                taken += 1
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            step()
        return graph.replay, taken
    except Exception as error:
        first = error.__context__ or error  # where a step fails while it is recorded, the end of the recording does too
        if isinstance(first, torch.OutOfMemoryError):
            raise
        cause = f"{type(first).__name__}: {first}".splitlines()[0]
    finally:
        torch.cuda.set_stream(current)  # a recording that fails does not restore it
        current.wait_stream(aside)
    step()
    _unrecorded.add(model)
    warnings.warn(f"decoding goes on without CUDA graphs, which failed: {cause}", stacklevel=2)
    return step, taken + 1
