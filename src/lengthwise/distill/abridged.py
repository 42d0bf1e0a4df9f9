"""Abridged sources: leave words out of a sentence at random, so that its translation is shorter.

A search within a limit leaves out the end of a sentence; a sentence without some of its words has a short translation
that is whole. Most choices of words are bad, so many are drawn, and the models score their translations beside the
whole sentence (`student_pairs.py`). The words are those that `translation/compression.py` may drop.
"""

import random

from ..translation.compression import DroppedWords, balanced, runs, without
from ..translation.placeholders import lost

_MAX_RUNS = 3  # dropped together
_LONGEST = 0.45  # of the words, dropped in all
_TRIES = 3  # times the count that is asked for: some draws are alike, or lose a placeholder


def abridged(text: str, count: int, seed: int) -> list[str]:
    """Return at most `count` different shorter forms of the text, none if it has few words.

    >>> abridged("Open the old file.", 2, seed=1)
    ['Open the file.', 'Open the old.']
    """
    possible, words = runs(text, 1.0), len(text.split())
    draw = random.Random(seed)
    found: dict[str, None] = {}
    for _ in range(_TRIES * count if possible else 0):
        number = min(len(possible), draw.randint(1, _MAX_RUNS))
        dropped: DroppedWords = frozenset().union(*draw.sample(possible, number))
        form = without(text, dropped) if len(dropped) <= max(1, _LONGEST * words) else text
        if form != text and not lost(text, form) and (balanced(form) or not balanced(text)):
            found[form] = None
        if len(found) == count:
            break
    return list(found)
