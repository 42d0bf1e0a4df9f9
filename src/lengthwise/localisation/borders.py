"""Borders: the places where a text may be broken into lines or cues, and how bad each of them is.

A text is a list of atoms: words, or in Chinese and Japanese single characters. A break may come between two atoms. Each
place has a cost: low after punctuation and before a conjunction, high after an article, inside a name, or between a
number and its unit.
"""

from functools import lru_cache
from typing import NamedTuple

import regex

from ..length.units import UNITS
from ..length.weak_words import weak_words

AFTER_SENTENCE, AFTER_CLAUSE, BEFORE_CONJUNCTION, BEFORE_PREPOSITION = -12.0, -9.0, -5.0, -3.0
AFTER_WEAK, IN_NAME, AFTER_NUMBER, IN_QUANTITY = 25.0, 15.0, 8.0, 25.0
IN_PHRASE = 3.0  # after the word that follows an article, which may be an adjective: "la grande | nave"

# Characters that may be followed by a line break: Chinese and Japanese are written without spaces.
_IDEOGRAPH = r"[\p{Han}\p{Hiragana}\p{Katakana}\u3000-\u303f\uff00-\uffefー・]"
# Kinsoku (JIS X 4051): these do not begin a line, and those do not end one.
_NOT_FIRST = (
    "、。，．・：；？！?!,.:;゛゜ヽヾゝゞ々ー）］｝〕〉》」』】’”)]}»›〜～…‥％%‰℃°"
    "ぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶ"
)
_NOT_LAST = "（［｛〔〈《「『【‘“([{«‹￥＄$¥£€"
_SPACE = r"[^\S\u00a0\u202f]"  # not the no-break spaces
_DARK = r"[\S\u00a0\u202f]"
_ATOM = regex.compile(
    rf"(?P<space>{_SPACE}*)(?P<text>[{regex.escape(_NOT_LAST)}]*"
    rf"(?:{_IDEOGRAPH}\p{{M}}*|(?:(?!{_IDEOGRAPH}){_DARK})+)[{regex.escape(_NOT_FIRST)}]*)"
    rf"|(?P<space>{_SPACE}*)(?P<text>{_DARK}+)"
)
_OPENERS, _CLOSERS = ("-", "–", "—", "♪", "♫", "#", ">>"), ("♪", "♫", "#")
_BARE = regex.compile(r"^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$")
_SENTENCE_END = regex.compile(r"[.!?…。！？]['\"”’»)\]]*$")
_CLAUSE_END = regex.compile(r"[,;:，、；：)\]»”–—]$")
_NUMBER = regex.compile(r"[$€£¥]?\d[\d.,:/]*$")
_QUANTITY = regex.compile(r"[%°€$£]|[kmcd]?(?:g|m|l|w|v|hz|b)\b|[kmg]b\b|[ap]\.?m\b|euro|dollar", regex.IGNORECASE)


class Atom(NamedTuple):
    """A piece of text that is not broken, and whether a space stands before it."""

    text: str
    spaced: bool


def split_atoms(text: str) -> list[Atom]:
    """Return the atoms of a text.

    >>> [atom.text for atom in split_atoms("Go home, 東京。")]
    ['Go', 'home,', '東', '京。']
    """
    return [Atom(found["text"], bool(found["space"]) and found.start() > 0) for found in _ATOM.finditer(text.strip())]


def join_atoms(atoms: list[Atom]) -> str:
    """Return the text of the atoms, without a space at the start."""
    return "".join(" " + atom.text if atom.spaced and place else atom.text for place, atom in enumerate(atoms))


@lru_cache(maxsize=4096)
def width(text: str) -> int:
    """Return the length of a text in characters, as `check` counts it."""
    return UNITS["chars"].measure(text)


def border_cost(atoms: list[Atom], place: int, language: str) -> float:
    """Return how bad a break before the atom at `place` is: negative at a good place, 0 at an ordinary one."""
    before, after = atoms[place - 1].text, atoms[place].text
    if before in _OPENERS or after in _CLOSERS:
        return AFTER_WEAK
    if _SENTENCE_END.search(before) and not _is_title(before):
        return AFTER_SENTENCE
    if _CLAUSE_END.search(before):
        return AFTER_CLAUSE
    words = weak_words(language)
    last, first = _bare(before), _bare(after)
    if any(last in some for some in words) or _is_title(before):
        return AFTER_WEAK
    if _NUMBER.search(before):
        return IN_QUANTITY if _QUANTITY.match(after) else AFTER_NUMBER
    if place > 1 and before[:1].isupper() and after[:1].isupper() and not _SENTENCE_END.search(atoms[place - 2].text):
        return IN_NAME
    if first in words.conjunctions:
        return BEFORE_CONJUNCTION
    if first in words.prepositions:
        return BEFORE_PREPOSITION
    return IN_PHRASE if place > 1 and _bare(atoms[place - 2].text) in words.articles else 0.0


def _bare(word: str) -> str:
    return _BARE.sub("", word).lower().replace("’", "'")


def _is_title(word: str) -> bool:
    return word in ("Mr.", "Mrs.", "Ms.", "Dr.", "St.", "Sig.", "Dott.", "M.", "Hr.", "Fr.", "Sr.", "Sra.", "Prof.")
