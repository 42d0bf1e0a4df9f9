"""Mnemonics: the mark before the letter of a menu item or a button that is pressed with Alt: &File, _File.

The mark is taken out before a text is translated, and put before a letter of the translation afterwards.
"""

import re
import unicodedata

from ..translation.placeholders import split_placeholders

_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # Japanese, Chinese, Korean


def take_out(text: str, marks: str) -> tuple[str, str]:
    """Return the text without its mnemonic, and the mnemonic, such as &F, or "" if it has none.

    >>> take_out("Save &As ...", "&_"), take_out("R&D", "&_"), take_out("Cut && paste", "&_")
    (('Save As ...', '&A'), ('R&D', ''), ('Cut && paste', ''))
    """
    for mark in marks:
        found = list(re.finditer(rf"(?<!{mark}){mark}(?=\w)", text))
        if len(found) == 1 and text.replace(mark * 2, "").count(mark) == 1:
            at = found[0].start()
            if _plausible(text, at, mark):
                return text[:at] + text[at + 1 :], text[at : at + 2]
    return text, ""


def _plausible(text: str, at: int, mark: str) -> bool:
    """Return whether the mark is no part of a name, an entity, an address or a placeholder."""
    before, letter = text[at - 1 : at] if at else "", text[at + 1]
    if len(text) > 80 or not letter.isalnum() or re.match(r"&#?\w+;", text[at:]):
        return False
    place = 0
    for piece, is_placeholder in split_placeholders(text):
        if is_placeholder and place <= at < place + len(piece):
            return False
        place += len(piece)
    if not before or before in " \t\n(\"'>“«":
        return True
    if mark == "_":  # E_xit, but not file_name or MAX_LENGTH
        start = max(text.rfind(" ", 0, at) + 1, 0)
        word = re.match(r"\w*", text[start:])
        return word is not None and re.fullmatch(r"[A-Z][a-z]*_[a-z]+", word[0]) is not None
    return before.isalpha() and not (before.isupper() and letter.isupper())  # E&xit, but not R&D


def put_back(text: str, mnemonic: str) -> str:
    """Return the text with the mnemonic: before the same letter, if it has it, or else before the first letter.

    Texts without Latin, Greek or Cyrillic letters get it in brackets, as is usual in Japanese, Chinese and Korean.

    >>> put_back("Esci", "&x"), put_back("Salva con nome", "&A"), put_back("ファイル", "&F")
    ('&Esci', 'S&alva con nome', 'ファイル(&F)')
    """
    if not mnemonic:
        return text
    mark, letter = mnemonic[0], mnemonic[1]
    free = [place for place, char in _free_letters(text) if not _UNSPACED.match(char)]
    if not free:
        end = re.search(r"[\s.:…]*\Z", text)
        assert end is not None
        return f"{text[: end.start()]}({mark}{letter.upper()}){end[0]}"
    starts = [place for place in free if not text[place - 1 : place].isalnum()]
    same = [place for place in (*starts, *free) if _base(text[place]) == _base(letter)]
    at = (same or starts or free)[0]
    return text[:at] + mark + text[at:]


def _free_letters(text: str) -> list[tuple[int, str]]:
    """Return the letters outside placeholders, with their places."""
    found, place = [], 0
    for piece, is_placeholder in split_placeholders(text):
        if not is_placeholder:
            found += [(place + n, char) for n, char in enumerate(piece) if char.isalpha()]
        place += len(piece)
    return found


def _base(letter: str) -> str:
    """Return the letter in lower case without accents."""
    return unicodedata.normalize("NFD", letter)[0].casefold()
