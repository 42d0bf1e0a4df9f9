"""Capitals: what is all in capitals is read by the model in small letters, and comes back in capitals.

Translators have seen few such sentences and copy half of them. Knows letters and placeholders; no models, no lengths.
"""

from collections.abc import Callable

import regex

from .placeholders import apart

# Four letters: "USB", "RAM" and "WHO" alone are names, and mean something else in small letters.
_LONG = regex.compile(r"\p{Lu}{4}")
_OTHER = regex.compile(r"(?!\p{Lu})\p{L}")
_WORD = regex.compile(r"(?<![\p{L}\d])\p{L}+(?![\p{L}\d])")  # not MP3, nor the stand-in X1


def shouted(text: str) -> bool:
    """All in capitals, placeholders aside?

    >>> shouted("SAVE {name}?"), shouted("Save"), shouted("USB")
    (True, False, False)
    """
    words = " ".join(part for part, is_kept in apart(text) if not is_kept)
    return _LONG.search(words) is not None and _OTHER.search(words) is None


def spoken(text: str) -> str:
    """As the model shall read it: what is shouted as a sentence, anything else as it is.

    >>> spoken("DELETE THE FILE {NAME}?")
    'Delete the file {NAME}?'
    """
    if not shouted(text):
        return text
    small = _changed(text, lambda part: _WORD.sub(lambda word: word[0].lower(), part))
    (head, _), *_ = apart(text)  # empty where a placeholder comes first
    return small[0].upper() + small[1:] if head else small


def as_in(source: str, text: str) -> str:
    """The translation in capitals, where the source was. A letter whose capital is longer (ß) stays as it is.

    >>> as_in("DELETE {name}?", "Eliminare {name}?")
    'ELIMINARE {name}?'
    """
    if not shouted(source):
        return text
    return _changed(text, lambda part: "".join(_capital(letter) for letter in part))


def _capital(letter: str) -> str:
    large = letter.upper()
    return large if (len(large), len(large.encode())) == (1, len(letter.encode())) else letter


def _changed(text: str, change: Callable[[str], str]) -> str:
    return "".join(part if is_kept else change(part) for part, is_kept in apart(text))
