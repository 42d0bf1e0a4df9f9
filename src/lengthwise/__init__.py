"""Lengthwise: text that fits.

The public names, nothing else. Each loads the module it lives in when first used, so `import lengthwise` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .gc_paused import gc_paused
from .version import __version__

_HOME = {
    "Budget": "length.budget",
    "about": "length.budget",
    "at_least": "length.budget",
    "at_most": "length.budget",
    "between": "length.budget",
    "exactly": "length.budget",
    "ratio": "length.budget",
    "UNITS": "length.units",
    "measure": "length.units",
    "attach": "controls.attach",
    "detach": "controls.attach",
    "CountdownHead": "controls",
    "EncodingControl": "controls",
    "LengthTokens": "controls",
    "PromptControl": "controls",
    "save": "models.checkpoint",
    "load": "generation.load",
    "Writer": "generation.generator",
    "Written": "generation.generator",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from .controls import CountdownHead, EncodingControl, LengthTokens, PromptControl
    from .controls.attach import attach, detach
    from .generation.generator import Writer, Written
    from .generation.load import load
    from .length.budget import Budget, about, at_least, at_most, between, exactly, ratio
    from .length.units import UNITS, measure
    from .models.checkpoint import save


def __getattr__(name: str) -> Any:
    if name in _HOME:
        with gc_paused():
            return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'lengthwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
