"""Searching: which way to look for a text is asked for, the likeliest token, beams or a draw; and do the numbers agree?

Told without torch, so that a command line can complain before a model is loaded. Knows three numbers; not how a search
is carried out, nor which options `generate` wants for it.
"""

import math


def draws(candidates: int = 1, beams: int = 1, temperature: float | None = None) -> bool:
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
