"""Completeness and coverage: does the output end as a finished sentence, and does it keep the source's content?

A text that ends with a full stop may have lost its last clause. For coverage, the output is translated back into the
language of the source, and the source's words are searched in the back-translation, which is given or comes from a
reverse model. Synonyms do not count, so even a human translation scores far below 1: use it to compare systems.
"""

from typing import TYPE_CHECKING

import numpy as np
import regex

from ..length.sentences import finished
from .tally import NotApplicable, Tally, mean_of
from .texts import Texts, short_name

if TYPE_CHECKING:
    from ..scoring.reverse import ReverseModel

_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+")
# A repeated source word counts as found at each occurrence if the back-translation has it once. Otherwise its last
# occurrences would count as missing, and a complete text would have a low tail.
_WORDS = "words:unicode-lc|repeats:found"


def completeness(texts: Texts, _: str = "") -> Tally:
    """Return the share of outputs that end as a finished sentence."""
    return mean_of([finished(text) for text in texts.hyps], "completeness|rule:sentences.finished|v1")


def coverage(texts: Texts, model: "ReverseModel | None" = None, *, tail: bool = False) -> Tally:
    """Return the share of source words that reappear in the back-translation: the mean over the texts.

    `tail`: only of the last quarter of the source, which a shortened text loses first. A source without words has 1.
    """
    name, part = ("tail", "last-quarter") if tail else ("coverage", "all")
    backs = texts.backs if model is None else model.translate(texts.hyps)
    if backs is None:
        raise NotApplicable(f"metric {name!r} needs backs, or a reverse model: '{name}:path/to/model'; got neither")
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
