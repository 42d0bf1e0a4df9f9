"""Ranking: order the translations of a sentence by violations and score, and find those that need no further search."""

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from ..length.budget import Budget
from ..length.weak_words import ELISIONS, WEAK_WORDS, language_of
from .placeholders import translatable
from .records import Hypothesis
from .segments import Segments

MAX_SCORE_GAP = 0.5  # nats per token below the best free translation; a larger gap calls for another search
INCOMPLETE_SCORE_GAP = 5.0  # nats per token below the best free translation; with a larger gap a text is incomplete
_WORD = re.compile(r"[^\W\d_]{3,}")
_LETTER = re.compile(r"[A-Za-zÀ-ɏ]")  # in other scripts, such as Hangul, many words are one letter
_MARKS = '"“”„«»()[].,;:!?…'  # around a word; not those of placeholders


@dataclass(frozen=True)
class SentenceRequest:
    """A sentence to translate within its share of the line's budget. `free`: its free translations."""

    line: Segments
    number: int
    share: Budget
    free: list[Hypothesis]

    @property
    def text(self) -> str:
        return self.line.sentences[self.number]

    def fits(self, one: Hypothesis) -> bool:
        """Return whether the translation is within the share."""
        return self.share.fits(self.line.sentence_length(one))


class Violations(NamedTuple):
    """What is wrong with a translation, in order of weight."""

    misfit: bool
    lost: bool
    incomplete: bool
    copy: bool


def violations(request: SentenceRequest, one: Hypothesis) -> Violations:
    misfit = not request.fits(one) or bool(one.error)
    return Violations(misfit, bool(one.lost), not one.complete, one.is_copy)


def rank_key(request: SentenceRequest, one: Hypothesis) -> tuple[bool, bool, bool, bool, float]:
    """Return a sort key, lowest for the best: violations, then the score."""
    return *violations(request, one), -score_of(one)


def rank_free(options: list[Hypothesis]) -> list[Hypothesis]:
    """Return the translations sorted: those that keep the placeholders first, then by score if they have one.

    Copies of the source score high, but come last. If the first result is a copy, as for names, the order is kept.
    """
    if options and (options[0].score is None or options[0].is_copy):
        return sorted(options, key=lambda one: bool(one.lost))
    return sorted(options, key=lambda one: (bool(one.lost), one.is_copy, -score_of(one)))


def usable(options: list[Hypothesis]) -> list[Hypothesis]:
    """Return the free translations that can be chosen without another search, or the one that has an error.

    They are complete, keep the placeholders, and score at most `MAX_SCORE_GAP` below the best: others omit something,
    and a search within the budget may find a better one. A copy of the source is complete only as the first option.
    """
    options = [one if place == 0 else mark_untranslated(one, options) for place, one in enumerate(options)]
    good = [one for one in options if one.error or (one.complete and not one.lost)]
    best = max((score_of(one) for one in good if not one.is_copy), default=0.0)
    return [one for one in good if score_of(one) >= best - MAX_SCORE_GAP]


def nearest_usable(request: SentenceRequest, free: list[Hypothesis]) -> Hypothesis | None:
    """Return the usable free translation that is nearest to the share of the sentence, or None."""
    length, miss = request.line.sentence_length, request.share.miss
    return min(usable(free), key=lambda one: miss(length(one)), default=None)


def mark_untranslated(one: Hypothesis, free: list[Hypothesis]) -> Hypothesis:
    """Return the hypothesis, with complete=False if it is not fully translated compared with `free[0]`.

    That is so if its text equals the source (ignoring case), if it has a word of the source, or no letter, unlike
    `free[0]`, if it breaks off after a word such as *of*, after *l'* or within a word, or if it scores more than
    `INCOMPLETE_SCORE_GAP` below `free[0]`. If `free` is empty, only the first applies.
    """
    best = free[0] if free else one
    partly = untranslated(one.source, one.text, best.text) or hangs(one.text, best.text)
    partly = partly or is_torn(one.source, one.text, best.text)
    partly = partly or one.is_copy or (translatable(best.text) and not translatable(one.text))
    return replace(one, complete=False) if partly or score_of(one) < score_of(best) - INCOMPLETE_SCORE_GAP else one


def score_of(one: Hypothesis) -> float:
    """Return the score; minus infinity for an empty text, 0 for one that was not scored."""
    if not one.text:
        return -math.inf
    return 0.0 if one.score is None else one.score


def hangs(text: str, best: str) -> bool:
    """Return whether the text ends in a word that needs a next one, and the best translation does not.

    >>> hangs("Le mot de passe saisi pour", "Le mot de passe saisi pour ce compte est faux")
    True
    """
    last, other = (some.split()[-1:] for some in (text, best))
    hanging = _hanging_words(best)
    return hanging.issuperset(last) and bool(last) and hanging.isdisjoint(other)


def is_torn(source: str, text: str, best: str) -> bool:
    """Return whether the text ends in an elided word or in a lone letter, and the best translation does not.

    A letter after a number is a unit. A letter that is a word of the source or of the best translation is a name, or a
    word such as the French *y*, but not an article, a preposition or a conjunction.

    >>> is_torn("Choose five books.", "Choisissez l'", "Choisissez cinq livres.")
    True
    >>> is_torn("Choose five books.", "Choisissez F.", "Choisissez cinq livres.")
    True
    >>> is_torn("Choose plan B now.", "Choisissez le plan B.", "Choisissez maintenant le plan B.")
    False
    """
    words, in_source, in_best = (_bare_words(some) for some in (text, source, best))
    last = words[-1] if words else ""
    if last in in_best[-1:]:
        return False
    if last.lower().replace("’", "'") in ELISIONS:
        return True
    if not _LETTER.fullmatch(last) or (len(words) > 1 and words[-2][-1].isdigit()):
        return False
    known = {*in_source} - _hanging_words(source) | {*in_best} - _hanging_words(best)
    return last not in known


def _bare_words(text: str) -> list[str]:
    return [bare for word in text.split() if (bare := word.strip(_MARKS))]


@lru_cache(maxsize=1024)  # many texts are compared with one
def _hanging_words(text: str) -> frozenset[str]:
    return WEAK_WORDS[language_of(text.lower().split())].hanging


def untranslated(source: str, text: str, best: str) -> bool:
    """Return whether the text has a word of the source (3 letters or more) that the best translation does not have.

    A word that the best translation also has is a name, or belongs to both languages.

    >>> untranslated("Open the file.", "Ouvrez le file.", "Ouvrez le fichier.")
    True
    """
    in_text, in_source, in_best = (set(_WORD.findall(some.casefold())) for some in (text, source, best))
    return bool(in_text & in_source - in_best)
