"""Notes: what a short text lacks, what it has added, and where it may read badly, in words."""

import regex

from ..length.weak_words import WEAK_WORDS, language_of
from ..translation.placeholders import changed_placeholders, split_placeholders
from . import words
from .content import dropped, invented, numbers_in_words
from .torn import torn

NOT_ENGLISH = "the text may not be English"


def may_be_foreign(text: str) -> bool:
    """Return whether a text has more articles, prepositions and the like of another language than of English.

    At least two, or one beside a letter such as "é"; or most of its letters are not Latin.

    >>> may_be_foreign("Le fichier n'est pas là."), may_be_foreign("The café is open."), may_be_foreign("保存")
    (True, False, True)
    """
    plain = " ".join(part for part, is_placeholder in split_placeholders(text) if not is_placeholder)
    letters = regex.findall(r"\p{L}", plain)
    if 2 * len(regex.findall(r"\p{Latin}", plain)) < len(letters):
        return True
    found = regex.findall(r"[\p{L}\p{M}'’]+", plain.lower())
    language = language_of(found)
    known = sum(any(word in some for some in WEAK_WORDS[language][:4]) for word in found)
    return language != "en" and (known > 1 or not "".join(letters).isascii())


def notes_on(source: str, text: str) -> str | None:
    """Return what a shortened text lacks, negations first, what it has added, and where it is torn; None if nothing."""
    gone = [*changed_placeholders(source, text), *dropped(source, text), *numbers_in_words(source, text)]
    gone.sort(key=lambda word: not (word in words.QUALIFIERS or words.NEGATION.fullmatch(word)))
    notes = [("left out", gone), ("not in the source", invented(source, text)), ("check", torn(source, text))]
    return "; ".join(f"{what}: {', '.join(some)}" for what, some in notes if some) or None
