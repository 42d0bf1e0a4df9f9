"""Texts per second of whole calls, with prefill, endings and repair: what a machine makes of a long list of prompts."""

from typing import Any

from ..generation.generator import Writer
from .rounds import Clock
from .texts import prompts


def written(writer: Writer, count: int, budget: str, clock: Clock) -> dict[str, Any]:
    """Return how fast so many texts are written in batches, and how many of them are complete."""
    seconds, found = clock.timed(lambda: writer.write(prompts(count), budget, seed=0))
    return {
        "budget": budget,
        "texts": count,
        "batch": writer.batch_size,
        "tokens": sum(one.tokens for one in found),
        "complete": sum(one.fits and one.complete for one in found),
        "texts_per_second": count / seconds,
    }
