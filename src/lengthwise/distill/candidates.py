"""Candidates: which translations of a sentence are good examples of saying it shorter?

A translation is compared with the translator's own best one. The reverse model says how likely each word of the source
is, given the translation: a word that is left out stands out, wherever it was. The translator says how likely each word
of the translation is, given the source: so does a text that breaks off, or limps. Of opus-mt's best translations of 60
sentences, English to French, cut at a word to 0.9, 1.0 or 1.1 of the source, half lost 7 nats or more at some word, and
none of 308 passed. Knows texts and likelihoods; not where translations come from, nor what becomes of them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..length.units import measure
from ..metrics.texts import Array
from ..scoring.reverse import ReverseModel
from ..translation.placeholders import lost
from ..translation.untranslated import untranslated
from .answers import fault

_CLOSING = "\"'”’»›)]} \u00a0\u202f"  # what may stand behind the mark that ends a text
_ENDS = ".!?…:;,"
_SHORTEST_TAIL = 3  # tokens: the last one alone is often a full stop


@dataclass(frozen=True)
class Margins:
    """How many nats less likely than with the best translation something may be."""

    margin: float = 0.25  # the source, read back from a translation: the mean of its tokens
    tail_margin: float = 0.25  # … of the tokens of its last quarter
    word_margin: float = 4.0  # … each single token: a word that is left out costs 8 or so, a paraphrase 3
    doubt: float = 0.3  # the translation, to the translator: the mean of its tokens
    oddest: float = 5.0  # nats, whatever the best one has: no token of a translation, nor its end, is less likely


@dataclass(frozen=True)
class Candidate:
    """A translation that may be kept, and what is known of it in nats."""

    text: str
    length: int
    own: bool = False  # the model's best, without being asked for a length
    score: float = 0.0  # mean log P of the source's tokens, given the translation
    tail: float = 0.0  # the same of its last quarter
    worst: float = 0.0  # how much less likely than with the best translation any one of them is, at most
    likely: float = 0.0  # mean log P of the translation's tokens, given the source
    oddest: float = 0.0  # log P of the least likely of these


def sound(source: str, texts: Sequence[str | None], reasons: Counter[str]) -> list[Candidate]:
    """Those that are well-formed, each once. The first of `texts` is the model's own best: if it is none, none is."""
    found: dict[str, Candidate] = {}
    for place, text in enumerate(texts):
        reason = "unfinished" if text is None else "duplicate" if text in found else flaw(source, text)
        if reason:
            reasons[reason] += 1
        if place == 0 and (text is None or reason):  # nothing to compare the others with
            return []
        if place and text is not None and not reason and untranslated(source, text, str(texts[0])):
            reason = "left a word as it is"
            reasons[reason] += 1
        if text is not None and not reason:
            found[text] = Candidate(text, measure(text, "chars"), own=place == 0)
    return list(found.values())


def flaw(source: str, text: str) -> str | None:
    """Why this translation is a bad example whatever it says; None if nothing speaks against it."""
    if text.casefold() == source.casefold():
        return "copied"
    if reason := fault(source, text):
        return reason
    if ending(source) != ending(text):
        return "ends otherwise"
    return "lost a number or placeholder" if lost(source, text) else None


def ending(text: str) -> str:
    """The mark that ends a text, whatever closes behind it; nothing if it is none.

    >>> ending("« Où est-il ? »"), ending("Save as..."), ending("Save")
    ('?', '.', '')
    """
    last = text.rstrip(_CLOSING)[-1:].replace("…", ".")
    return last if last and last in _ENDS else ""


def judged(
    reverse: ReverseModel, forward: ReverseModel, sentences: Sequence[str], options: list[list[Candidate]]
) -> list[list[Candidate]]:
    """The candidates with all that is known of them. `forward`: the translator, asked how likely it finds them."""
    sources = [source for source, candidates in zip(sentences, options, strict=True) for _ in candidates]
    targets = [one.text for candidates in options for one in candidates]
    back, there = dict(reverse.log_probs(sources, targets)), dict(forward.log_probs(targets, sources))
    place, known = 0, []
    for candidates in options:
        best = back.get(place)  # the model's own best is the first
        found = []
        for one in candidates:
            tokens = back[place][:-1]  # that a text is over is hardly news behind its full stop
            score, tail = whole_and_tail(tokens) if len(tokens) else (0.0, 0.0)
            worst = float((best[: len(tokens)] - tokens).max(initial=0.0)) if best is not None else 0.0
            likely = float(there[place].mean()), float(there[place].min())
            found.append(Candidate(one.text, one.length, one.own, score, tail, worst, *likely))
            place += 1
        known.append(found)
    return known


def whole_and_tail(log_probs: Array) -> tuple[float, float]:
    """The mean over all tokens, and over the last quarter of them: three at least, if there are so many.

    >>> import numpy as np
    >>> whole_and_tail(np.array([-1.0, -1, -1, -1, -1, -4, -4, -4]))
    (-2.125, -4.0)
    """
    return float(log_probs.mean()), float(log_probs[-max(_SHORTEST_TAIL, len(log_probs) // 4) :].mean())


def choose(candidates: list[Candidate], margins: Margins, most: int, reasons: Counter[str]) -> list[Candidate]:
    """Those to keep, the model's own best first, then by length: at most `most`, the shortest, and a spread of others
    between the two; where there are too few of them, a longer one.

    The candidates have one that is the model's own best, or there are none.
    """
    own = next((one for one in candidates if one.own), None)
    if own is None:
        return []
    good: dict[int, Candidate] = {}  # by length: of two that are as long, the one that says more
    for one in candidates:
        if not one.own and (reason := _lacks(one, own, margins)):
            reasons[reason] += 1
        elif (rival := good.get(one.length)) is None:
            good[one.length] = one
        else:
            good[one.length] = max((one, rival), key=lambda some: (some.own, some.score + some.tail))
            reasons["as long as another"] += 1
    chosen = [good.pop(length) for length in dict.fromkeys((own.length, min(good)))][:most]
    while len(chosen) < most and (between := [length for length in good if length < own.length]):
        chosen.append(good.pop(max(between, key=lambda length: min(abs(length - one.length) for one in chosen))))
    if good and len(chosen) < most:
        chosen.append(good.pop(max(good)))
    if good:
        reasons["more than enough"] += len(good)
    return sorted(chosen, key=lambda one: (not one.own, one.length))


def _lacks(one: Candidate, own: Candidate, margins: Margins) -> str | None:
    """In what it falls behind the best translation; None if in nothing, or not by much."""
    if one.tail < own.tail - margins.tail_margin:
        return "says less at its end"
    if one.worst > margins.word_margin:
        return "leaves out a word"
    if one.score < own.score - margins.margin:
        return "says less"
    if one.likely < own.likely - margins.doubt or one.oddest < -margins.oddest:
        return "no good translation"
    return None
