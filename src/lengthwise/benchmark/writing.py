"""Tokens per second of writing: greedy decoding with the hard budget and, if the model has one, the countdown head.

The end token is out of reach, so every row of every engine has as many tokens.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..constraint.mask import LengthConstraint
from ..engines.base import LengthInputs
from ..generation.generator import Writer
from .peers import OURS
from .rounds import Clock, in_turns, times_as_fast
from .texts import prompts

_WORDS = 200  # of the budget: more than the tokens that are decoded


class _Decoded(NamedTuple):
    first: float  # seconds to the first token
    steps: float  # seconds of the tokens after it


def speeds(writers: Mapping[str, Writer], size: int, tokens: int, rounds: int, clock: Clock) -> dict[str, Any]:
    """Return tokens/s and seconds to the first token of each engine, and the ratios of ours to the others."""
    for writer in writers.values():
        _decoded(writer, 1, 1, clock)  # tables of the hard budget are made on first use
    turns = in_turns({name: partial(_decoded, one, size, tokens, clock) for name, one in writers.items()}, rounds)
    steps = {name: [one.steps for one in own] for name, own in turns.items()}
    return {
        "batch": size,
        "tokens_per_second": {name: size * tokens / min(own) for name, own in steps.items()},
        "first_token_seconds": {name: min(one.first for one in own) for name, own in turns.items()},
        "times_as_fast_as": {name: times_as_fast(steps[OURS], own) for name, own in steps.items() if name != OURS},
    }


def _decoded(writer: Writer, size: int, tokens: int, clock: Clock) -> _Decoded:
    engine: Any = writer.engine
    ids = [engine.prompt_ids(prompt) for prompt in prompts(size)]
    lengths = None
    if "words" in engine.units:
        lengths = LengthInputs([_WORDS] * size, [engine.units.index("words")] * size, [False] * size, [0] * size)
    constraint = LengthConstraint(writer.meter("words"), [_WORDS] * size, [_WORDS] * size, eos=engine.eos)
    began = clock.now()
    rows = engine.prefill(ids, lengths, max_new_tokens=tokens + 1)
    chosen = constraint.apply(rows.scores).argmax(1)
    first = clock.now()
    for _ in range(tokens):
        constraint.update(chosen)
        rows.step(chosen)
        chosen = constraint.apply(rows.scores).argmax(1)
    return _Decoded(first - began, clock.now() - first)


def divergence(writers: Mapping[str, Writer], reference: str, texts: int, tokens: int) -> dict[str, Any]:
    """Return the KL of our next-token distributions from those of the reference, at the tokens that it writes."""
    engines = [writers[name].engine for name in (reference, OURS)]
    ids = [engines[0].prompt_ids(prompt) for prompt in prompts(texts)]
    rows, found = [engine.prefill(ids) for engine in engines], []
    for _ in range(tokens):
        one, other = (np.asarray(each.scores, np.float64) for each in rows)
        one, other = (scores - np.logaddexp.reduce(scores, 1, keepdims=True) for scores in (one, other))
        found.append((np.exp(one) * (one - other)).sum(1))
        chosen = rows[0].scores.argmax(1)
        for each in rows:
            each.step(chosen)
    return {"reference": reference, "mean": float(np.mean(found)), "largest": float(np.max(found))}
