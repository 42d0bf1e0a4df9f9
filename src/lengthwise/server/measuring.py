"""Measuring: the length of a text in each unit, whether it fits a budget, and where it passes its limit."""

from collections.abc import Callable
from typing import Any

from ..length.budget import Budget
from ..length.units import UNITS, measure, unit_named
from ..protocols import Tokenizer
from .errors import ApiError
from .openai_shapes import MeasureRequest


def measured(asked: MeasureRequest, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the lengths of a text; with a budget also its length, whether it fits, and `limit_at`."""
    budget = asked.budget()
    try:
        units = [unit_named(name).name for name in asked.units] or list(UNITS)
    except ValueError as error:
        raise ApiError(400, str(error), param="units") from None
    lengths = {unit: measure(asked.text, unit, tokenizer=tokenizer) for unit in units}
    found: dict[str, Any] = {"object": "measure", "lengths": lengths}
    if budget is None:
        return found
    if budget.of_source:
        raise ApiError(400, f"'{budget}' is relative to a source; give a length in counts", param="length")
    length = measure(asked.text, budget.unit, tokenizer=tokenizer)
    own = {"length": length, "unit": budget.unit, "budget": str(budget), "fits": budget.fits(length)}
    return {**found, **own, "limit_at": limit_at(asked.text, budget, tokenizer)}


def limit_at(text: str, budget: Budget, tokenizer: Tokenizer) -> int | None:
    """Return how many characters of the text are within the budget's maximum; None if all are."""
    most = budget.high

    def within(end: int) -> bool:
        return most is None or measure(text[:end], budget.unit, tokenizer=tokenizer) <= most

    return None if within(len(text)) else _last(within, len(text))


def _last(holds: Callable[[int], bool], end: int) -> int:
    """Return the last number below `end` for which `holds`, which it does up to some number and not beyond."""
    low, high = 0, end
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
