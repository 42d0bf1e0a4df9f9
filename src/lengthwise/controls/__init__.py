"""Length controls: ways of giving a model a length as input. A new one is a file, a line in `CONTROLS`, and a test."""

from typing import Any

from .alibi import Alibi
from .base import Control, Signal
from .countdown_head import CountdownHead
from .encoding import EncodingControl
from .grouped_attention import GroupedAttention
from .initial_cell import InitialCell
from .length_aware_attention import LengthAwareAttention
from .length_tokens import LengthTokens
from .multiplied_input import MultipliedInput
from .prompt import PromptControl
from .sentence_separator import SentenceSeparator

CONTROLS: dict[str, type[Control]] = {
    "encoding": EncodingControl,
    "countdown_head": CountdownHead,
    "multiplied_input": MultipliedInput,
    "initial_cell": InitialCell,
    "prompt": PromptControl,
    "length_tokens": LengthTokens,
    "length_aware_attention": LengthAwareAttention,
    "alibi": Alibi,
    "grouped_attention": GroupedAttention,
    "sentence_separator": SentenceSeparator,
}

# Names of controls and of their options in recipes and checkpoints of earlier versions.
OLD_NAMES = {"planner": "countdown_head", "tokens": "length_tokens", "volume": "gain"}

__all__ = [
    "CONTROLS",
    "Alibi",
    "Control",
    "CountdownHead",
    "EncodingControl",
    "GroupedAttention",
    "InitialCell",
    "LengthAwareAttention",
    "LengthTokens",
    "MultipliedInput",
    "PromptControl",
    "SentenceSeparator",
    "Signal",
    "control_from",
    "with_new_names",
]


def control_from(config: dict[str, Any]) -> Control:
    """Return the control that a `config()` describes."""
    options = with_new_names(config)
    name = options.pop("control", None)
    if name not in CONTROLS:
        raise ValueError(f"unknown control {name!r}; the controls are {', '.join(CONTROLS)}")
    try:
        return CONTROLS[name](**options)
    except TypeError as error:
        raise ValueError(f"control {name!r} does not take these options: {error}") from None


def with_new_names(config: dict[str, Any]) -> dict[str, Any]:
    """Return `config` with the current names of its control and options."""
    renamed = {OLD_NAMES.get(key, key): value for key, value in config.items()}
    if "control" in renamed:
        renamed["control"] = OLD_NAMES.get(renamed["control"], renamed["control"])
    return renamed
