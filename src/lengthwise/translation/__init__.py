"""Translation under length limits: lines that fit their budgets and keep their placeholders.

The names are imported on first use: the command line parses its input with `line_input`, without importing torch.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["Translation", "Translator"]

if TYPE_CHECKING:
    from .records import Translation
    from .translator import Translator


def __getattr__(name: str) -> Any:
    if name in __all__:
        from . import translator

        return getattr(translator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
