"""Coverage: does the output still say what the source says?

A text that ends with a full stop may have lost its last clause. The output is translated back into the language of the
source, and the words of the source are looked for in it. The back-translations are given, or made by the reverse model
that is named (`reverse.py`). This file compares words; it does not translate, and it knows no synonyms: even a human
translation scores far below 1, so compare systems, do not read the number as an absolute.
"""

from collections.abc import Sequence

import numpy as np
import regex

from ..scoring.reverse import loaded, short
from .tally import NotApplicable, Tally, mean_of
from .texts import Texts

_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+")
# A repeated word is looked for anew each time, and found where it stands once: if each took one of the other side's,
# the last ones would go without, and a whole text would seem to lose its tail.
_WORDS = "words:unicode-lc|repeats:found"


def coverage(texts: Texts, model: str = "") -> Tally:
    """Share of the source's words that return in the back-translation: the mean over the texts."""
    backs, by = _backs("coverage", texts, model)
    values = [np.mean(found) for found in _found(texts, backs)]
    return mean_of(values, f"coverage|of:all|{_WORDS}|{by}|v2")


def tail(texts: Texts, model: str = "") -> Tally:
    """The same for the last quarter of the source's words, where a text written to fit loses them first."""
    backs, by = _backs("tail", texts, model)
    lasts = [np.mean(found[-max(1, len(found) // 4) :]) for found in _found(texts, backs)]
    return mean_of(lasts, f"coverage|of:last-quarter|{_WORDS}|{by}|v2")


def _backs(name: str, texts: Texts, model: str) -> tuple[Sequence[str], str]:
    """The back-translations, and by whom they are."""
    if model:
        return loaded(model).translate(texts.hyps), f"back:{short(model)}|search:greedy"
    if texts.backs is None:
        raise NotApplicable(
            f"metric {name!r} needs srcs and backs; backs not given. A reverse model makes them: '{name}:path/to/model'"
        )
    return texts.backs, "back:given"


def _found(texts: Texts, backs: Sequence[str]) -> list[list[bool]]:
    """A source without words has nothing to lose."""
    return [returned(src, back) or [True] for src, back in zip(texts.srcs or (), backs, strict=True)]


def returned(source: str, back: str) -> list[bool]:
    """For each word of the source, in order: is it in the back-translation?

    >>> returned("The cat saw the dog", "the cat ran")
    [True, True, False, True, False]
    """
    there = set(_WORD.findall(back.lower()))
    return [word in there for word in _WORD.findall(source.lower())]
