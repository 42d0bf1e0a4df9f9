"""Choice: which of several translations of a sentence is the better one, and which may stand as it is?

First comes what a text must not be: too long, without a placeholder, torn, the source itself; then how well it says
what the source says, where somebody has judged that. Knows texts, shares of room and scores; not where they come from.
"""

import math
from dataclasses import dataclass, fields, replace

from ..generation.generator import Written
from ..length.budget import Budget
from .placeholders import lost
from .segments import Line
from .untranslated import copies, untranslated

BEHIND = 0.5  # nats by which a hypothesis may say it worse than the best free one and still end the search
FAR = 5.0  # a text that says it so many nats worse than the best free one is not complete


@dataclass(frozen=True)
class Scored(Written):
    """A hypothesis, and how well it says what the source says."""

    score: float = 0.0


@dataclass(frozen=True)
class SentenceRequest:
    """A sentence to be translated within a share of its line's room."""

    line: Line
    number: int
    share: Budget

    @property
    def text(self) -> str:
        return self.line.sentences[self.number]


def whole(source: str, options: list[Written]) -> bool:
    """Does any of them keep the placeholders, or is there nothing more to try?"""
    return any(one.error or not lost(source, one.text) for one in options)


def ranked(source: str, options: list[Written]) -> list[Written]:
    """Those that keep the placeholders of the source first, each kind by how well it says it, or in its own order.

    Nothing is as easily read as the source itself, so a copy comes last, unless the model likes it best, as for names.
    """
    if options and (not isinstance(options[0], Scored) or copies(source, options[0].text)):
        return sorted(options, key=lambda one: bool(lost(source, one.text)))
    return sorted(options, key=lambda one: (bool(lost(source, one.text)), copies(source, one.text), -score_of(one)))


def with_score(one: Written, score: float) -> Scored:
    return Scored(**{field.name: getattr(one, field.name) for field in fields(Written)}, score=round(score, 4))


def without_score(one: Written) -> Written:
    return Written(**{field.name: getattr(one, field.name) for field in fields(Written)})


def score_of(one: Written) -> float:
    """What it is ranked by among its like: all are alike without a reverse model, but for one that says nothing."""
    if not one.text:
        return -math.inf
    return one.score if isinstance(one, Scored) else 0.0


def usable(source: str, options: list[Written]) -> list[Written]:
    """What may stand as it is: whole hypotheses that keep the placeholders, or the one that tells of an error.

    The source itself only where it is the best of them, as for names. With a reverse model none that is far behind
    the best: it is short because it leaves something out, and a search within the budget may find a better one.
    """
    options = [one if place == 0 else mark_untranslated(source, one, options) for place, one in enumerate(options)]
    good = [one for one in options if one.error or (one.complete and not lost(source, one.text))]
    best = max((score_of(one) for one in good if not copies(source, one.text)), default=0.0)
    return [one for one in good if score_of(one) >= best - BEHIND]


def length_of(ask: SentenceRequest, one: Written) -> int:
    return one.tokens if ask.share.unit == "tokens" else ask.line.measure(one.text)


def faults(ask: SentenceRequest, one: Written) -> tuple[bool, bool, bool, bool]:
    """Fewer is better: too long is worst, a lost placeholder comes next, then a torn end, then no translation."""
    misfit = not ask.share.fits(length_of(ask, one)) or bool(one.error)
    return misfit, bool(lost(ask.text, one.text)), not one.complete, copies(ask.text, one.text)


def order(ask: SentenceRequest, one: Written) -> tuple[bool, bool, bool, bool, float]:
    """The best first: the fewest faults, then what says it best."""
    return *faults(ask, one), -score_of(one)


def mark_untranslated(source: str, one: Written, free: list[Written]) -> Written:
    """The same, but no whole translation if it copies the source, or words of it that the best free one translates.

    Nor if it says far less, or something else.
    """
    best = free[0] if free else one
    left = copies(source, one.text) or untranslated(source, one.text, best.text) or score_of(one) < score_of(best) - FAR
    return replace(one, complete=False) if left else one
