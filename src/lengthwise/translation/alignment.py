"""Alignment: find the words of a translation that a tag of the source belongs to.

A sentence is translated without its tags, because they disturb a translator. The words inside a tag are found again as
they are (names, numbers, placeholders), or by their own translations, which are asked for apart: "love" → "amare" finds
"amo". A tag whose words are not found has no place.
"""

from collections.abc import Callable, Sequence

import regex

from .placeholders import split_placeholders, translatable
from .styled import Span, Styled

Place = tuple[int, int]

MIN_PREFIX = 3  # letters that two forms of a word share, and
MIN_SHARE = 0.5  # of the longer form
MIN_SCORE = 0.7  # of the letters of a phrase, in the words that were found for it
_WORD = regex.compile(r"[\p{L}\p{N}]+")
# Marks at the ends of a phrase belong into its tag, as in the source. A translation may have another one of the kind.
_KINDS = ("\"'“”„‘’«»‹›「」『』", ".,:;!?…。、！？：", "([{（", ")]}）")


def words_of(text: str) -> list[Place]:
    """Return the places of the words; a placeholder is one word."""
    found, at = [], 0
    for piece, is_placeholder in split_placeholders(text):
        if is_placeholder:
            found.append((at, at + len(piece)))
        else:
            found += [(at + word.start(), at + word.end()) for word in _WORD.finditer(piece)]
        at += len(piece)
    return found


def phrases(text: Styled) -> list[str]:
    """Return the words inside each pair of tags, which are to be translated apart."""
    found = (_phrase(text, span) for span in text.spans if not span.is_point)
    return [phrase for phrase in found if translatable(phrase)]


def _phrase(text: Styled, span: Span) -> str:
    return " ".join(text.text[span.start : span.end].split())


def align(source: Styled, text: str, known: Callable[[str], Sequence[str]]) -> list[tuple[Span, Place | None]]:
    """Return each tag of the source with its place in the translation `text`; None if it is not found.

    `known` returns translations of a phrase. A point is at the border of words nearest to its place. Pairs stay inside
    those that they are inside of, and apart from the others.
    """
    words, scale = words_of(text), len(text) / max(1, len(source.text))
    found: list[tuple[Span, Place | None]] = []
    for span in source.spans:
        if span.is_point:
            borders = [0, *(start for start, _ in words), len(text)]
            nearest = min(borders, key=lambda place: abs(place - span.start * scale))
            found.append((span, (nearest, nearest)))
            continue
        free = _free(dict(enumerate(words)), span, found)
        phrase, middle = _phrase(source, span), (span.start + span.end) / 2 * scale
        place = _find([phrase], text, free, middle) or _find(known(phrase), text, free, middle)
        found.append((span, place and _with_marks(phrase, text, place)))
    return found


def _free(words: dict[int, Place], span: Span, found: Sequence[tuple[Span, Place | None]]) -> dict[int, Place]:
    """Return the words that a span may have, by number, given the places of earlier spans."""
    for other, place in found:
        if place is None or other.is_point:
            continue
        inside = other.start <= span.start and span.end <= other.end
        words = {n: word for n, word in words.items() if (place[0] <= word[0] and word[1] <= place[1]) == inside}
    return words


def _find(wanted: Sequence[str], text: str, words: dict[int, Place], middle: float) -> Place | None:
    """Return the place of the words of a phrase: most of them in one run, the nearest to `middle`."""
    best: tuple[float, float, Place] | None = None
    for phrase in wanted:
        asked = [phrase[a:b].casefold() for a, b in words_of(phrase)]
        letters = sum(map(len, asked))
        for first in words if asked else ():
            window = [words[n] for n in range(first, first + len(asked)) if n in words]
            if len(window) < len(asked):
                continue
            found = (alike(one, text[a:b].casefold()) for one, (a, b) in zip(asked, window, strict=True))
            score = sum(a * len(one) for a, one in zip(found, asked, strict=True)) / letters
            start, end = window[0][0], window[-1][1]
            option = (-score, abs((start + end) / 2 - middle), (start, end))
            best = option if best is None or option < best else best
    return best[2] if best and -best[0] >= MIN_SCORE else None


def alike(one: str, other: str) -> float:
    """Return 1 for the same word, the shared part of two forms of a word, and 0 for other words."""
    shared = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if one == other:
        return 1.0
    longer = max(len(one), len(other))
    return 0.5 + shared / longer / 2 if shared >= MIN_PREFIX and shared >= MIN_SHARE * longer else 0.0


def _with_marks(phrase: str, text: str, place: Place) -> Place:
    """Return the place with the marks around it that the phrase has, too: "Thank you!" → "Merci !"."""
    words = words_of(phrase)
    before, after = phrase[: words[0][0]], phrase[words[-1][1] :]
    return place[0] - _extent(before[::-1], text[: place[0]][::-1]), place[1] + _extent(after, text[place[1] :])


def _extent(marks: str, text: str) -> int:
    """Return how many characters at the start of the text are marks like these, perhaps after a space."""
    at = 0
    for mark in marks.replace(" ", ""):
        kind = next((kind for kind in _KINDS if mark in kind), mark)
        next_ = at + (text[at : at + 1] in (" ", "\u00a0", "\u202f") and at + 1 < len(text))
        if text[next_ : next_ + 1] not in kind or next_ == len(text):
            break
        at = next_ + 1
    return at
