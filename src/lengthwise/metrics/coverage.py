"""Coverage: does the output still say what the source says?

A text that ends with a full stop may have lost its last clause. The output is translated back (by any model, in the
same language the source is in), and the words of the source are looked for in it. This file compares words; it does
not translate, and it knows no synonyms: compare systems, do not read the number as an absolute.
"""

from collections import Counter

import numpy as np
import regex

from .tally import Tally, mean_of
from .texts import Texts

_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+(?:['’-][\p{L}\p{N}\p{M}]+)*")


def coverage(texts: Texts, _: str = "") -> Tally:
    """Share of the source's words that return in the back-translation, each as often as it is there."""
    return mean_of([np.mean(found) for found in _found(texts)], "coverage|of:all|words:unicode-lc|v1")


def tail(texts: Texts, _: str = "") -> Tally:
    """The same for the last quarter of the source's words, where a text written to fit loses them first."""
    lasts = [np.mean(found[len(found) * 3 // 4 :]) for found in _found(texts)]
    return mean_of(lasts, "coverage|of:last-quarter|words:unicode-lc|v1")


def _found(texts: Texts) -> list[list[bool]]:
    return [returned(src, back) or [True] for src, back in zip(texts.srcs or (), texts.backs or (), strict=True)]


def returned(source: str, back: str) -> list[bool]:
    """For each word of the source, in order: is there still one like it in the back-translation?

    >>> returned("The cat saw the dog", "the cat ran")
    [True, True, False, False, False]
    """
    left = Counter(_WORD.findall(back.lower()))
    found = []
    for word in _WORD.findall(source.lower()):
        found.append(left[word] > 0)
        left[word] -= 1
    return found
