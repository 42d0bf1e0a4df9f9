"""Notes: what a short text lacks, what it has added, and where it may read badly, in words."""

from ..translation.placeholders import changed_placeholders
from . import words
from .content import dropped, invented, numbers_in_words
from .note_labels import CHECK, LEFT_OUT, NEW
from .torn import torn


def notes_on(source: str, text: str) -> str | None:
    """Return what a shortened text lacks, negations first, what it has added, and where it is torn; None if nothing."""
    gone = [*changed_placeholders(source, text), *dropped(source, text), *numbers_in_words(source, text)]
    gone.sort(key=lambda word: not (word in words.QUALIFIERS or words.NEGATION.fullmatch(word)))
    notes = [(LEFT_OUT, gone), (NEW, invented(source, text)), (CHECK, torn(source, text))]
    return "; ".join(f"{what}: {', '.join(some)}" for what, some in notes if some) or None
