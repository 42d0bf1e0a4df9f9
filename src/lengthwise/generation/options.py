"""Decoding options: greedy, beam search or sampling, from the caller's arguments.

Imports no torch, so that the command line can reject contradictions before a model is loaded.
"""

import math
import secrets
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

SAMPLING = {"temperature": 0.8, "top_p": 0.95}  # for candidates, if the caller gives no temperature
TEXT_SEED_STEP = 1_000_003  # between the seeds of the texts of one call, so that no two texts draw the same numbers
# Set by the budget or by the writer.
_RESERVED = (
    "logits_processor",
    "max_new_tokens",
    "max_length",
    "num_return_sequences",
    "streamer",
    "stopping_criteria",
)
_PENALTIES = ("repetition_penalty", "no_repeat_ngram_size")  # a caller's own replaces the loop guard


@dataclass(frozen=True)
class DecodingOptions:
    """How texts are decoded."""

    beams: int
    sampling: dict[str, Any] | None  # temperature, top_p, top_k; None: no sampling
    seed: int
    engine: dict[str, Any]  # the rest, for the engine
    guards_loops: bool = True  # see `loops.py`

    @property
    def one_by_one(self) -> bool:
        """Whether rows are decoded token by token and never reordered: no beams and no assistant model.

        Only then can endings be repaired.
        """
        assisted = any(self.engine.get(name) for name in ("assistant_model", "prompt_lookup_num_tokens"))
        return self.beams == 1 and not assisted


def decoding_options(candidates: int, seed: int | None, generation: dict[str, Any]) -> DecodingOptions:
    """Return the options that a caller of `write` asks for; raise a `ValueError` if they contradict each other."""
    if taken := [name for name in _RESERVED if name in generation]:
        raise ValueError(f"{taken[0]} is set by the budget; it cannot be given")
    if "forced_bos_token_id" in generation:
        raise ValueError("forced_bos_token_id is a setting of the model; set it in model.generation_config")
    # Some translators renormalise scores. If a limit leaves one token, it would then have probability 1.
    options = {"renormalize_logits": False} | generation
    guards_loops = all(options.get(name) is None for name in _PENALTIES)
    beams = options.pop("num_beams", 1)
    sample = options.pop("do_sample", None)
    sampled = is_sampling(candidates, beams, options.get("temperature"), sample)
    if seed is not None and not isinstance(seed, Integral):
        raise ValueError(f"seed must be a whole number; got {seed!r}")
    seed = secrets.randbits(62) if seed is None else int(seed)
    given = {name: options.pop(name) for name in ("temperature", "top_p", "top_k") if name in options}
    unused = [f"{name}={value}" for name, value in given.items() if value]
    if sample is False and unused:
        raise ValueError(f"do_sample=False is greedy decoding, which has no {unused[0]}; give one of them")
    sampling = SAMPLING | {name: value for name, value in given.items() if value is not None}
    if not sampled:
        return DecodingOptions(beams, None, seed, options, guards_loops)
    if not 0 < (temperature := sampling["temperature"]) < math.inf:
        raise ValueError(f"temperature must be above 0 where tokens are sampled; got {temperature}")
    if not _is_number(top_p := sampling["top_p"]) or not 0 <= top_p <= 1:
        raise ValueError(f"top_p must be a share between 0 and 1; got {top_p!r}")
    if not _is_number(top_k := sampling.get("top_k", 0)) or top_k < 0:
        raise ValueError(f"top_k must be a number of tokens, or 0 for all; got {top_k!r}")
    return DecodingOptions(beams, sampling, seed, options, guards_loops)


def is_sampling(
    candidates: int = 1, beams: int = 1, temperature: float | None = None, do_sample: bool | None = None
) -> bool:
    """Return whether tokens are sampled; raise a `ValueError` if the options contradict each other.

    `temperature`, `do_sample`: None where the caller does not give them. Candidates without beams are sampled.
    """
    for name, number in (("candidates", candidates), ("beams", beams)):
        if not isinstance(number, Integral) or number < 1:
            raise ValueError(f"{name} must be a whole number, at least 1; got {number!r}")
    # The comparison is false for NaN as well.
    if temperature is not None and (not _is_number(temperature) or not 0 <= temperature < math.inf):
        raise ValueError(f"temperature must be a number, 0 or above; got {temperature!r}")
    if beams > 1:
        if temperature:
            raise ValueError("beam search does not sample; give beams or a temperature, not both")
        if do_sample:
            raise ValueError(f"beam search does not sample; got do_sample={do_sample} and {beams} beams: give one")
        if beams < candidates:
            raise ValueError(f"{candidates} candidates need at least as many beams; got {beams}")
        return False
    if candidates > 1 and temperature == 0:
        raise ValueError("greedy candidates are all equal: give a temperature above 0, or as many beams")
    if do_sample is None:
        return candidates > 1 or bool(temperature)
    if not do_sample and candidates > 1:
        advice = f"leave do_sample={do_sample} out to sample, or give as many beams"
        raise ValueError(f"greedy candidates are all equal; got {candidates}: {advice}")
    return do_sample


def _is_number(value: Any) -> bool:
    return isinstance(value, Real)
