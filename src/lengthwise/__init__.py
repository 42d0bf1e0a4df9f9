"""Lengthwise: text that fits.

The public names, nothing else. Each loads the module it lives in when first used, so `import lengthwise` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .uncollected import uncollected

__version__ = "0.1.0"

_HOME = {
    "Budget": "budget",
    "about": "budget",
    "at_least": "budget",
    "at_most": "budget",
    "between": "budget",
    "exactly": "budget",
    "ratio": "budget",
    "UNITS": "units",
    "measure": "units",
    "attach": "attachment",
    "detach": "attachment",
    "EncodingControl": "controls",
    "LengthTokens": "controls",
    "PlannerControl": "controls",
    "PromptControl": "controls",
    "load": "checkpoint",
    "save": "checkpoint",
    "Writer": "decode.write",
    "Written": "decode.write",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from .attachment import attach, detach
    from .budget import Budget, about, at_least, at_most, between, exactly, ratio
    from .checkpoint import load, save
    from .controls import EncodingControl, LengthTokens, PlannerControl, PromptControl
    from .decode.write import Writer, Written
    from .units import UNITS, measure


def __getattr__(name: str) -> Any:
    if name in _HOME:
        with uncollected():
            return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'lengthwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
