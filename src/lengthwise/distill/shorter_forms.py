"""Shorter forms of a sentence: which of many say most of it and are still English.

Two models judge each word of a form beside the same word in the sentence. A translator gives its log-probability given
a translation of the sentence: a word that the sentence does not support is improbable. A language model gives it
without the sentence: a word that does not follow from the words before it is improbable. Where a part is left out, the
translator expects that part and finds the next word improbable, even if the form is sound; where it is not, both do.

    strain of a word    = the smaller of the two losses, in nats; 0 if either model prefers the form
    strain of a form    = the largest strain of its words
    lost                = log P(translation | sentence) − log P(translation | form)

Of the forms within a range of lengths, the one that loses least is taken, if its strain is small.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
import regex
from numpy.typing import NDArray

from ..shortening.content import claims_more
from ..shortening.variants import LONGEST, RANGES, SHORTEST
from ..translation.placeholders import changed_placeholders
from .candidates import ending
from .seams import holds

MAX_STRAIN = 2.0
MAX_UNSUPPORTED = 10.5  # nats that the translator alone may find a word less probable; its end may be
STRAIN = 2.0  # weight of the sum of strains, beside what is lost
_MARKS = regex.compile(r"[:;()\"\[\]]")
_BARE = ".,;:!?()\"'“”‘’"
_HALVES = regex.compile(r"\bnot only\b(?!.*\bbut\b)|\b(?:between|both)\b(?!.*\band\b)|\beither\b(?!.*\bor\b)")

Scores = NDArray[np.float64]  # log P of each unit of a text (`scoring/unit_scores.py`)


@dataclass(frozen=True)
class Judged:
    """A text with the scores of its words by both models, and log P of the translation given the text."""

    text: str
    words: list[str]
    translator: Scores
    language_model: Scores
    understood: float = 0.0


def plausible(sentence: str, form: str) -> bool:
    """Return whether a form may be faithful: it ends like the sentence and keeps placeholders, negations, conditions.

    It has no content words that the sentence does not have, except broad ones (`seams.py`).
    """
    share = len(form) / len(sentence)
    if not SHORTEST <= share <= LONGEST or ending(form) != ending(sentence):
        return False
    if changed_placeholders(sentence, form) or _HALVES.search(form.lower()):
        return False
    if sorted(_MARKS.findall(form)) != sorted(_MARKS.findall(sentence)) and not _without_asides(sentence, form):
        return False
    return not claims_more(sentence, form) and holds(sentence, form)


def _without_asides(sentence: str, form: str) -> bool:
    """Return whether whole brackets and quotations are what the form leaves out."""
    counts = [form.count(mark) for mark in ":;"] == [sentence.count(mark) for mark in ":;"]
    return counts and form.count("(") == form.count(")") and form.count('"') % 2 == 0


def strains(sentence: Judged, form: Judged) -> tuple[Scores, float]:
    """Return the strain of each unit of the form, and the largest loss of a word by the translator alone.

    A word that is not in the sentence is compared with the words that it stands for.
    """
    count = len(form.words)
    losses = np.zeros((2, count + 1))
    both = ((sentence.translator, form.translator), (sentence.language_model, form.language_model))
    matcher = SequenceMatcher(None, _plain(sentence.words), _plain(form.words), autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        for loss, (old, new) in zip(losses, both, strict=True):
            if kind == "equal":
                loss[start:end] = old[first:last] - new[start:end]
            elif end > start:
                loss[end - 1] = old[first:last].sum() - new[start:end].sum()
    for loss, (old, new) in zip(losses, both, strict=True):
        loss[count] = old[-1] - new[-1]
    strain = losses.min(0)
    for kind, _, _, _, end in matcher.get_opcodes():
        if kind in ("replace", "insert"):  # no model alone speaks for new words
            strain[end - 1] = losses[:, end - 1].max()
    return np.maximum(strain, 0.0), float(losses[0, :count].max(initial=0.0))


def is_sound(sentence: Judged, form: Judged) -> bool:
    """Return whether a form is English and says nothing that the sentence does not say, as far as both models tell."""
    strain, unsupported = strains(sentence, form)
    return float(strain.max()) <= MAX_STRAIN and unsupported <= MAX_UNSUPPORTED


def choose(sentence: Judged, forms: Iterable[Judged]) -> list[str]:
    """Return the best form within each range of lengths, longest first, without those that say less than a shorter."""
    found: dict[float, tuple[float, str]] = {}  # by the end of the range
    for form in forms:
        share = len(form.text) / len(sentence.text)
        end = next(end for end in RANGES if share <= end)
        score = form.understood - STRAIN * float(strains(sentence, form)[0].sum())
        found[end] = max((score, form.text), found.get(end, (-math.inf, "")))
    best, most = [], -math.inf
    for end in sorted(found):
        score, text = found[end]
        if score > most:
            best.append(text)
        most = max(most, score)
    return best[::-1]


def _plain(some: Sequence[str]) -> list[str]:
    return [word.lower().strip(_BARE) or word for word in some]
