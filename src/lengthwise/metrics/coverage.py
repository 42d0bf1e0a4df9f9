"""Completeness and coverage: does the output end as a finished sentence, and does it still say what the source says?

A text that ends with a full stop may have lost its last clause. For coverage, the output is translated back into the
language of the source, and the source's words are looked up in the back-translation, which is given or comes from a
reverse model. This file compares words, without synonyms: a human translation, too, scores far below 1, so use it to
compare systems.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import regex

from ..length.sentences import finished
from .tally import NotApplicable, Tally, mean_of
from .texts import Texts, short_name

if TYPE_CHECKING:
    from ..scoring.reverse import ReverseModel

_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+")
# A repeated word counts as found each time if it is in the back-translation once. If each occurrence needed one of its
# own, the last ones would be missing, and a complete text would seem to lose its tail.
_WORDS = "words:unicode-lc|repeats:found"


def completeness(texts: Texts, _: str = "") -> Tally:
    """Return the share of outputs that end as a finished sentence."""
    return mean_of([finished(text) for text in texts.hyps], "completeness|rule:sentences.finished|v1")


def coverage(texts: Texts, model: "ReverseModel | None" = None, *, tail: bool = False) -> Tally:
    """Return the share of source words that reappear in the back-translation: the mean over the texts.

    `tail`: of the last quarter of the source's words, which a text written to fit loses first. A source without words
    has a share of 1.
    """
    name, part = ("tail", "last-quarter") if tail else ("coverage", "all")
    if model is not None:
        backs: Sequence[str] = model.translate(texts.hyps)
    elif texts.backs is not None:
        backs = texts.backs
    else:
        raise NotApplicable(
            f"metric {name!r} needs srcs and backs; backs not given. A reverse model makes them: '{name}:path/to/model'"
        )
    found = [returned(src, back) or [True] for src, back in zip(texts.srcs or (), backs, strict=True)]
    shares = [np.mean(words[-max(1, len(words) // 4) :] if tail else words) for words in found]
    by = f"{short_name(model.name)}|search:greedy" if model else "given"
    return mean_of(shares, f"coverage|of:{part}|{_WORDS}|back:{by}|v2")


def returned(source: str, back: str) -> list[bool]:
    """Return, for each word of the source, whether it is in the back-translation.

    >>> returned("The cat saw the dog", "the cat ran")
    [True, True, False, True, False]
    """
    there = set(_WORD.findall(back.lower()))
    return [word in there for word in _WORD.findall(source.lower())]
