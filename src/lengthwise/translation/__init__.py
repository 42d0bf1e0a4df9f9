"""Translation for places where room is short: line by line, no longer than asked for, placeholders intact."""

from .translator import Translation, Translator

__all__ = ["Translation", "Translator"]
