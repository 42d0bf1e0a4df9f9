"""Search: how texts are looked for, out of what a caller says and `generate` understands.

Greedy unless beams, a temperature or several candidates are asked for. Do the numbers agree: `searching.py`, one floor
up. Knows options; what is written with them is no matter here.
"""

import math
import secrets
from dataclasses import dataclass
from typing import Any

from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

SAMPLING = {"temperature": 0.8, "top_p": 0.95}  # for candidates, when the caller names no temperature
OURS = ("logits_processor", "max_new_tokens", "max_length", "num_return_sequences", "streamer", "stopping_criteria")


@dataclass(frozen=True)
class Search:
    """How texts are looked for. `drawn`: temperature, top_p, top_k, or None where nothing is drawn by us."""

    beams: int
    drawn: dict[str, Any] | None
    seed: int
    options: dict[str, Any]  # the rest, for `generate`

    @property
    def simple(self) -> bool:
        """One token after the other, of as many rows as one likes: no beams, no assistant, which takes a single row."""
        assisted = any(self.options.get(name) for name in ("assistant_model", "prompt_lookup_num_tokens"))
        return self.beams == 1 and not assisted


def searching(candidates: int, seed: int | None, generation: dict[str, Any]) -> Search:
    """What is asked for; an error if it cannot be."""
    if taken := [name for name in OURS if name in generation]:
        raise ValueError(f"{taken[0]} is set by the budget; it cannot be given")
    # `generate` itself never draws: `SeededSampler` does, and a model's own settings are not asked.
    quiet = {"do_sample": False, **dict.fromkeys(("temperature", "top_p", "top_k"))}
    # Renormalised, as some translators want it, the one token that a limit leaves costs nothing, and torn texts win.
    options = {"renormalize_logits": False} | generation
    beams = options.pop("num_beams", 1)
    drawn = options.pop("do_sample", is_sampling(candidates, beams, options.get("temperature")))
    seed = secrets.randbits(62) if seed is None else seed
    knobs = {name: options.pop(name) for name in ("temperature", "top_p", "top_k") if name in options}
    given = {name: value for name, value in knobs.items() if value is not None}
    return Search(beams, SAMPLING | given if drawn and beams == 1 else None, seed, options | quiet)


def warpers(drawn: dict[str, Any]) -> list[Any]:
    """The processors that shape what is drawn from."""
    makers = (("temperature", TemperatureLogitsWarper), ("top_k", TopKLogitsWarper), ("top_p", TopPLogitsWarper))
    return [make(drawn[name]) for name, make in makers if drawn.get(name) not in (None, 1.0)]


def is_sampling(candidates: int = 1, beams: int = 1, temperature: float | None = None) -> bool:
    """Are tokens drawn at random? An error if the numbers contradict each other. `temperature` None: nobody says."""
    _check_each(candidates, beams, temperature)
    if beams > 1:
        if temperature:
            raise ValueError("beams search and a temperature draws; give one of them")
        if beams < candidates:
            raise ValueError(f"{candidates} candidates need as many beams; got {beams}")
        return False
    if candidates > 1 and temperature == 0:
        raise ValueError("candidates differ only if drawn: give a temperature above 0, or as many beams")
    return candidates > 1 or bool(temperature)


def _check_each(candidates: int, beams: int, temperature: float | None) -> None:
    for name, number in (("candidates", candidates), ("beams", beams)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1; got {number}")
    if temperature is not None and not 0 <= temperature < math.inf:  # which is false for NaN, too
        raise ValueError(f"temperature must be a number, 0 or above; got {temperature}")
