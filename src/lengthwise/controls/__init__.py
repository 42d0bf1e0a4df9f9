"""Ways of telling a model about length. A new one is a file, a line in `CONTROLS`, and a test."""

from typing import Any

from .base import Control, Signal
from .encoding import EncodingControl
from .planner import PlannerControl
from .prompt import PromptControl
from .tokens import LengthTokens

CONTROLS: dict[str, type[Control]] = {
    "encoding": EncodingControl,
    "planner": PlannerControl,
    "prompt": PromptControl,
    "tokens": LengthTokens,
}

__all__ = [
    "CONTROLS",
    "Control",
    "EncodingControl",
    "LengthTokens",
    "PlannerControl",
    "PromptControl",
    "Signal",
    "control_from",
]


def control_from(config: dict[str, Any]) -> Control:
    """The control that `config()` described."""
    options = dict(config)
    name = options.pop("control", None)
    if name not in CONTROLS:
        raise ValueError(f"unknown control {name!r}; the controls are {', '.join(CONTROLS)}")
    try:
        return CONTROLS[name](**options)
    except TypeError as error:
        raise ValueError(f"control {name!r} does not take these options: {error}") from None
