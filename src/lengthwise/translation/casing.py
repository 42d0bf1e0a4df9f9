"""Capitals: what is all in capitals is read by the model in small letters, and comes back in capitals.

Translators have seen few such sentences: of twelve interface strings in capitals, en-it left all in English, whole or
in part. Knows letters and placeholders; no models, no lengths.
"""

from collections.abc import Callable

import regex

from .placeholders import apart

_LETTER = regex.compile(r"\p{L}")
_OTHER = regex.compile(r"(?!\p{Lu})\p{L}")
_WORD = regex.compile(r"(?<![\p{L}\d])\p{L}+(?![\p{L}\d])")  # not MP3, nor the stand-in X1


def is_all_caps(text: str) -> bool:
    """All in capitals, placeholders aside?

    >>> is_all_caps("SAVE {name}?"), is_all_caps("Save"), is_all_caps("USB")
    (True, False, False)
    """
    said = " ".join(part for part, is_kept in apart(text) if not is_kept)
    # "USB", "IMAP" and "README" alone are names, and mean something else in small letters.
    names = 6 if len(text.split()) == 1 else 3
    return max(map(len, _WORD.findall(said)), default=0) > names and _OTHER.search(said) is None


def to_sentence_case(text: str) -> str:
    """As the model shall read it: what is is_all_caps as a sentence, anything else as it is.

    >>> to_sentence_case("DELETE THE FILE {NAME}?")
    'Delete the file {NAME}?'
    """
    if not is_all_caps(text):
        return text
    small = _changed(text, lambda part: _WORD.sub(lambda word: _small(word[0]), part))
    (head, _), *_ = apart(small)  # empty where a placeholder comes first
    return _LETTER.sub(lambda letter: letter[0].upper(), head, count=1) + small[len(head) :]


def restore_case(source: str, text: str) -> str:
    """The translation in capitals, where the source was. A letter whose capital is longer (ß) stays as it is.

    >>> restore_case("DELETE {name}?", "Eliminare {name}?")
    'ELIMINARE {name}?'
    """
    if not is_all_caps(source):
        return text
    return _changed(text, lambda part: "".join(_capital(letter) for letter in part))


def _small(word: str) -> str:
    """A letter whose small one is longer (İ) stays as it is, and so does *I*, of which English has no other."""
    return word if word == "I" else "".join(x.lower() if len(x.lower()) == 1 else x for x in word)


def _capital(letter: str) -> str:
    large = letter.upper()
    return large if (len(large), len(large.encode())) == (1, len(letter.encode())) else letter


def _changed(text: str, change: Callable[[str], str]) -> str:
    return "".join(part if is_kept else change(part) for part, is_kept in apart(text))
