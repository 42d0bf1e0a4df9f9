"""Casing: capitals at the start of sentences, and all-capital sources, which the model receives in sentence case.

Translation models were trained on few sentences in capitals: of twelve such interface strings, en-it left all in
English, fully or in part.
"""

from collections.abc import Callable
from functools import lru_cache

import regex

from .placeholders import split_placeholders

_LETTER = regex.compile(r"\p{L}")
_NOT_CAPITAL = regex.compile(r"(?!\p{Lu})\p{L}")
_WORD = regex.compile(r"(?<![\p{L}\d])\p{L}+(?![\p{L}\d])")  # neither MP3 nor the stand-in X1

# At the start of a text, after quotation marks and tags; neither "x86" nor "a.out".
_FIRST_WORD = regex.compile(r"(?:<a\d+>|[^\p{L}\p{N}<{%$/\\])*+(\p{L}+)(?![\p{N}_.-]\S)")


@lru_cache(maxsize=4096)  # sources and translations are asked for again and again
def is_all_caps(text: str) -> bool:
    """Return whether the text outside placeholders is in capitals and not just an acronym.

    >>> is_all_caps("SAVE {name}?"), is_all_caps("Save"), is_all_caps("USB")
    (True, False, False)
    """
    words = " ".join(piece for piece, is_placeholder in split_placeholders(text) if not is_placeholder)
    # "USB", "IMAP" and "README" alone are names; in lower case they have another meaning.
    longest_name = 6 if len(text.split()) == 1 else 3
    return max(map(len, _WORD.findall(words)), default=0) > longest_name and _NOT_CAPITAL.search(words) is None


def to_sentence_case(text: str) -> str:
    """Return the text in sentence case if it is all in capitals, else unchanged.

    >>> to_sentence_case("DELETE THE FILE {NAME}?")
    'Delete the file {NAME}?'
    """
    if not is_all_caps(text):
        return text
    lower = _outside_placeholders(text, lambda piece: _WORD.sub(lambda word: _lower(word[0]), piece))
    (head, _), *_ = split_placeholders(lower)  # empty where a placeholder comes first
    return _LETTER.sub(lambda letter: letter[0].upper(), head, count=1) + lower[len(head) :]


def restore_case(source: str, text: str) -> str:
    """Return the translation in capitals if the source is. A letter whose capital is longer (ß) is kept.

    >>> restore_case("DELETE {name}?", "Eliminare {name}?")
    'ELIMINARE {name}?'
    """
    return _outside_placeholders(text, lambda piece: "".join(map(_upper, piece))) if is_all_caps(source) else text


def with_first_capital(source: str, text: str) -> str:
    """Return the translation with a capital at its start if the source has one. A word like *iPhone* stays as it is.

    >>> with_first_capital("Supported phones", "telefoni gestiti"), with_first_capital("Phones", "iPhone")
    ('Telefoni gestiti', 'iPhone')
    """
    first, found = _FIRST_WORD.match(source), _FIRST_WORD.match(text)
    if not (first and found and first[1][0].isupper() and found[1].islower()):
        return text
    at = found.start(1)
    return text[:at] + _upper(text[at]) + text[at + 1 :]


def _lower(word: str) -> str:
    """Return the word in lower case, except the word *I* and letters whose lower case is longer (İ)."""
    return word if word == "I" else "".join(x.lower() if len(x.lower()) == 1 else x for x in word)


def _upper(letter: str) -> str:
    upper = letter.upper()
    return upper if (len(upper), len(upper.encode())) == (1, len(letter.encode())) else letter


def _outside_placeholders(text: str, change: Callable[[str], str]) -> str:
    return "".join(piece if is_placeholder else change(piece) for piece, is_placeholder in split_placeholders(text))
