"""The budget of a request to an inference server: read from its sampling parameters, and refused if it cannot hold."""

from typing import Any

from ..length.budget import Budget, as_budget

BUDGET, PREFIX = "length", "length_prefix"  # keys of `extra_args`


def request_budget(parameters: Any) -> Budget | None:
    """Return the budget in `extra_args["length"]` of these sampling parameters; None if there is none."""
    value = (parameters.extra_args or {}).get(BUDGET)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"{BUDGET} is a string such as 'at most 280 chars'; got {value!r}")
    return as_budget(value)


def request_prefix(parameters: Any) -> str:
    """Return the text in `extra_args["length_prefix"]`: the end of the prompt that is the beginning of the text."""
    prefix = (parameters.extra_args or {}).get(PREFIX, "")
    if not isinstance(prefix, str):
        raise ValueError(f"{PREFIX} is the text that the prompt ends with; got {prefix!r}")
    prefix.encode()  # raises a ValueError for half a surrogate pair
    return prefix


def check_request(parameters: Any) -> None:
    """Raise a `ValueError` that says why the budget of this request cannot be read or kept."""
    prefix, budget = request_prefix(parameters), request_budget(parameters)
    if budget is None:
        if prefix:
            raise ValueError(f"{PREFIX} needs a budget in {BUDGET}, such as 'at most 280 chars'")
        return
    if budget.of_source:
        asked = f"{BUDGET} {str(budget)!r} is relative to a source, which the server does not have"
        raise ValueError(f"{asked}; give a count, such as 'at most 280 chars'")
    if getattr(parameters, "ignore_eos", False):
        raise ValueError(f"{BUDGET} {str(budget)!r} cannot be kept with ignore_eos, because the text cannot end")
    if getattr(parameters, "structured_outputs", None) is not None:
        together = "cannot be kept with structured_outputs (response_format)"
        raise ValueError(f"{BUDGET} {str(budget)!r} {together}: the grammar may allow no token that fits")
    if budget.low and getattr(parameters, "stop", None):
        stops = f"the stop strings {parameters.stop!r} may end the text before it"
        raise ValueError(f"{BUDGET} {str(budget)!r} has a minimum, and {stops}; leave out one of them")
    tokens = parameters.max_tokens
    if tokens is not None and budget.unit in ("tokens", "words") and budget.low > tokens and not prefix:
        asked = f"{BUDGET} {str(budget)!r} takes more than max_tokens={tokens}"
        raise ValueError(f"{asked}; leave max_tokens out, or raise it")
