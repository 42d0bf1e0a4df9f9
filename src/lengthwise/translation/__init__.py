"""Translation under length limits: line by line, within a length, with its placeholders.

The names load when they are first used: the command line parses its input with `line_input`, which needs no torch.
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
