"""Alignment: find the words of a translation that a tag of the source belongs to.

The sentence is translated without its tags, because they disturb a translator. The words inside a tag are found again
as they are (names, numbers), or by their own translation, which is asked for apart: "love" → "amare" finds "amo". A tag
whose words are not found goes around the part of the text that its cue shows, and this is said in a note.
"""

from collections.abc import Callable
from dataclasses import replace

import regex

from .styled import Span, Styled

_WORD = regex.compile(r"[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*")
MIN_PREFIX = 3  # letters that two forms of a word share, and
MIN_SHARE = 0.5  # of the longer form

Place = tuple[int, int]


def phrases(text: Styled) -> list[str]:
    """Return the words inside each pair of tags that are to be translated apart."""
    found = (" ".join(text.text[span.start : span.end].split()) for span in text.spans if not span.is_point)
    return [phrase for phrase in found if _WORD.search(phrase)]


def align(source: Styled, text: str, known: Callable[[str], str | None]) -> list[tuple[Span, Place | None]]:
    """Return each tag of the source with its place in the translation `text`; None if it is not found.

    `known` returns the translation of a phrase, or None. A point is at the border of words nearest to its place.
    """
    words = [found.span() for found in _WORD.finditer(text)]
    return [(span, _place(source, span, text, words, known)) for span in source.spans]


def _place(
    source: Styled, span: Span, text: str, words: list[Place], known: Callable[[str], str | None]
) -> Place | None:
    scale = len(text) / max(1, len(source.text))
    if span.is_point:
        borders = [0, *(start for start, _ in words), len(text)]
        nearest = min(borders, key=lambda place: abs(place - span.start * scale))
        return nearest, nearest
    phrase = " ".join(source.text[span.start : span.end].split())
    middle = (span.start + span.end) / 2 * scale
    for wanted in (phrase, known(phrase)):
        found = _find(wanted, text, words, middle) if wanted else None
        if found:
            return found
    return None


def _find(wanted: str, text: str, words: list[Place], middle: float) -> Place | None:
    """Return the place of the words of `wanted`: most of them in one run, the nearest to `middle`."""
    asked = [found[0].casefold() for found in _WORD.finditer(wanted)]
    if not asked:
        return None
    best: tuple[float, float, Place] | None = None
    for first in range(len(words)):
        window = [text[a:b].casefold() for a, b in words[first : first + len(asked)]]
        if len(window) < len(asked):
            break
        score = sum(_alike(one, other) for one, other in zip(asked, window, strict=True)) / len(asked)
        start, end = words[first][0], words[first + len(asked) - 1][1]
        option = (-score, abs((start + end) / 2 - middle), (start, end))
        best = option if best is None or option < best else best
    return best[2] if best and -best[0] > 0.5 else None


def _alike(one: str, other: str) -> float:
    """Return 1 for the same word, the shared part of two forms of a word, and 0 for other words."""
    shared = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if one == other:
        return 1.0
    longer = max(len(one), len(other))
    return 0.5 + shared / longer / 2 if shared >= MIN_PREFIX and shared >= MIN_SHARE * longer else 0.0


def place_tags(
    source: Styled, text: str, own: Callable[[Span], Place], known: Callable[[str], str | None]
) -> tuple[Styled, list[tuple[Span, str]]]:
    """Return a translation with the tags of its source, and a note for each tag whose words were not found.

    `own`: the place of the text that the cue of a tag shows.
    """
    spans, notes = [], []
    for span, place in align(source, text, known):
        if place is None:
            place = own(span)
            words = " ".join(source.text[span.start : span.end].split())
            notes.append((span, f"{span.before} is around the whole cue: its words {words!r} were not found"))
        elif span.is_point:
            notes.append((span, f"the place of {span.before} is estimated"))
        spans.append(replace(span, start=place[0], end=place[1]))
    return Styled(text, tuple(_without_doubles(spans))), notes


def _without_doubles(spans: list[Span]) -> list[Span]:
    """Return the spans without those that are inside another one with the same tags."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start - span.end):
        same = (one for one in kept if (one.before, one.after) == (span.before, span.after) and not span.is_point)
        if not any(one.start <= span.start and span.end <= one.end for one in same):
            kept.append(span)
    return [span for span in spans if span in kept]
