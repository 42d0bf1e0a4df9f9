"""The cost of a decoding step against batch size and context, beside the bound that memory bandwidth sets.

A step reads every weight once and the KV cache of every row. No step can be faster than reading them.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..engines.onnx import OnnxEngine
from ..engines.threads import threads
from ..generation.requests import BATCH_TOKENS
from ..models.onnx_model import OnnxModel
from .passes import bytes_read
from .rounds import Clock

_BUFFER = 1 << 25  # numbers of 4 bytes: more than caches of CPUs hold


def bandwidth(clock: Clock, rounds: int = 10) -> float:
    """Return the bytes per second at which the threads of the engines can copy memory, read and written; the best."""
    source, target, parts = np.ones(_BUFFER, np.float32), np.ones(_BUFFER, np.float32), threads()
    pieces = list(zip(np.array_split(source, parts), np.array_split(target, parts), strict=True))
    with ThreadPoolExecutor(parts) as pool:
        times = [
            clock.timed(lambda: list(pool.map(lambda piece: np.copyto(piece[1], piece[0]), pieces)))[0]
            for _ in range(rounds)
        ]
    return 2 * source.nbytes / min(times)


def costs(
    model: OnnxModel, batches: Sequence[int], contexts: Sequence[int], clock: Clock, steps: int
) -> dict[str, Any]:
    """Return the milliseconds of a step in each batch size and context, and the bound for each."""
    engine, speed, weights = OnnxEngine(model), bandwidth(clock), bytes_read(model.graph)
    shape, rows = model.shape, []
    per_token = 2 * shape.layers * shape.kv_heads * shape.head_size * np.dtype(np.float32).itemsize
    for batch in batches:
        for context in contexts:
            if batch * context > BATCH_TOKENS:  # generation makes such batches smaller
                continue
            bound = (weights + batch * context * per_token) / speed
            seconds = _step(engine, batch, context, clock, steps)
            rows.append(
                {"batch": batch, "context": context, "milliseconds": 1e3 * seconds, "bound_milliseconds": 1e3 * bound}
            )
    return {"bandwidth_gb_per_second": speed / 1e9, "weights_mb": weights / 1e6, "steps": rows}


def _step(engine: OnnxEngine, batch: int, context: int, clock: Clock, steps: int) -> float:
    """Return the seconds of the fastest of several steps. The cache is filled with zeros: numbers do not matter."""
    graph = engine.graph
    cache = graph.cache(batch)
    cache.reserve(context + steps)
    cache.used[:] = context
    ids, last, state = [[engine.pad]] * batch, [np.zeros(1, np.int64)] * batch, np.full(batch, graph.head.identity)
    return min(clock.timed(lambda: graph.run(cache, ids, last, [state]))[0] for _ in range(steps))
