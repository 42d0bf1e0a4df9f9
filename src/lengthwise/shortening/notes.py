"""Notes: what a short text lacks and what it has added, in words."""

from ..translation.placeholders import changed_placeholders
from . import words
from .content import dropped, invented, numbers_in_words


def notes_on(source: str, text: str) -> str | None:
    """Return what a shortened text lacks, negations first, and what it has added; None if nothing."""
    gone = [*changed_placeholders(source, text), *dropped(source, text), *numbers_in_words(source, text)]
    gone.sort(key=lambda word: not (word in words.QUALIFIERS or words.NEGATION.fullmatch(word)))
    notes = [("left out", gone), ("not in the source", invented(source, text))]
    return "; ".join(f"{what}: {', '.join(some)}" for what, some in notes if some) or None
