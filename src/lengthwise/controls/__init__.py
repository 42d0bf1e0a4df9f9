"""Ways of telling a model about length. A new one is a file, a line in `CONTROLS`, and a test."""

from typing import Any

from .base import Control, Signal
from .countdown_head import CountdownHead
from .encoding import EncodingControl
from .length_tokens import LengthTokens
from .prompt import PromptControl

CONTROLS: dict[str, type[Control]] = {
    "encoding": EncodingControl,
    "planner": CountdownHead,
    "prompt": PromptControl,
    "tokens": LengthTokens,
}

__all__ = [
    "CONTROLS",
    "Control",
    "EncodingControl",
    "LengthTokens",
    "CountdownHead",
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
