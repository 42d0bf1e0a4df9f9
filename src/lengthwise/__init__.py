"""Lengthwise: text that fits.

Each public name imports its module when it is first used, so `import lengthwise` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import needing_torch
from .gc_paused import gc_paused
from .version import __version__

_NAMES = {
    "length.budget": ["Budget", "about", "at_least", "at_most", "between", "exactly", "ratio"],
    "length.units": ["UNITS", "measure"],
    "controls.attach": ["attach", "detach"],
    "controls": [
        "Alibi",
        "CountdownHead",
        "EncodingControl",
        "GroupedAttention",
        "InitialCell",
        "LengthAwareAttention",
        "LengthTokens",
        "MultipliedInput",
        "PromptControl",
    ],
    "models.checkpoint": ["save"],
    "endpoints.load": ["load"],
    "endpoints.repair": ["repair"],
    "generation.generator": ["Writer", "Written"],
    "shortening.endpoint": ["EndpointShortener"],
    "shortening.records": ["Shortened"],
    "shortening.shortener": ["Shortener", "shorten"],
    "translation.endpoint": ["EndpointTranslator"],
    "translation.records": ["Translation"],
    "translation.translator": ["Translator"],
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from .controls import (
        Alibi,
        CountdownHead,
        EncodingControl,
        GroupedAttention,
        InitialCell,
        LengthAwareAttention,
        LengthTokens,
        MultipliedInput,
        PromptControl,
    )
    from .controls.attach import attach, detach
    from .endpoints.load import load
    from .endpoints.repair import repair
    from .generation.generator import Writer, Written
    from .length.budget import Budget, about, at_least, at_most, between, exactly, ratio
    from .length.units import UNITS, measure
    from .models.checkpoint import save
    from .shortening.endpoint import EndpointShortener
    from .shortening.records import Shortened
    from .shortening.shortener import Shortener, shorten
    from .translation.endpoint import EndpointTranslator
    from .translation.records import Translation
    from .translation.translator import Translator


@needing_torch
def __getattr__(name: str) -> Any:
    if name in _HOME:
        with gc_paused():
            return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'lengthwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
