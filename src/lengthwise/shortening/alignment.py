"""Alignment: what each word of a short text stands for in its source.

It compares words, their stems and known short forms, and knows no grammar.
"""

from collections.abc import Sequence

from . import words
from .content import stem
from .pieces import Piece
from .short_forms import HEADLINE_FORMS, SHORT_FORMS

Span = tuple[int, int]  # places of the source: start, end
_FORMS = [([word.lower() for word in long], short.lower()) for long, short in (SHORT_FORMS | HEADLINE_FORMS).items()]


def aligned(source: Sequence[Piece], pieces: Sequence[Piece]) -> list[Span | None]:
    """Return, for each piece of a short sentence, what it stands for in the source; None for a new word.

    The longest common subsequence, and of several the one with most neighbours. A short form stands for its long one.
    """
    there, here = [piece.lower for piece in source], [piece.lower for piece in pieces]
    # The best score from each pair of places on: of all alignments, and of those that align this pair.
    best = [[0] * (len(there) + 1) for _ in range(len(here) + 1)]
    pair = [[-1] * (len(there) + 1) for _ in range(len(here) + 1)]
    for n in reversed(range(len(here))):
        near = 2 if n + 1 < len(here) and pieces[n + 1].is_word else 1
        for place in reversed(range(len(there))):
            if here[n] == there[place] or _inflected(pieces[n], source[place]):
                following = pair[n + 1][place + 1]
                pair[n][place] = 4 + max(best[n + 1][place + 1], following + near if following > 0 else 0)
            best[n][place] = max(best[n + 1][place], best[n][place + 1], pair[n][place])
    spans: list[Span | None] = [None] * len(here)
    n = place = 0
    neighbour = False
    while n < len(here) and place < len(there) and best[n][place]:
        if pair[n][place] == best[n][place] or neighbour:
            spans[n] = (place, place + 1)
            following = pair[n + 1][place + 1]
            near = 2 if n + 1 < len(here) and pieces[n + 1].is_word else 1
            neighbour = following > 0 and pair[n][place] == 4 + following + near
            n, place = n + 1, place + 1
        elif best[n + 1][place] == best[n][place]:
            n += 1
        else:
            place += 1
    before = 0
    for n, span in enumerate(spans):
        following_place = next((one[0] for one in spans[n:] if one), len(there))
        spans[n] = span or _long_form(there[:following_place], before, here[n])
        before = (spans[n] or (0, before))[1]
    return spans


def _inflected(piece: Piece, other: Piece) -> bool:
    return words.is_content(piece) and words.is_content(other) and stem(piece.text) == stem(other.text)


def _long_form(there: Sequence[str], start: int, form: str) -> Span | None:
    """Return the first place from `start` on of a long form that has this short one."""
    for long, short in _FORMS:
        if short == form:
            for place in range(start, len(there) - len(long) + 1):
                if there[place : place + len(long)] == long:
                    return place, place + len(long)
    return None
