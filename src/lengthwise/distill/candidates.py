"""Candidates: select sampled translations of different lengths that are nearly as good as the best one.

Each candidate is compared with the reference model's best translation. A reverse model gives log P of each source token
given the candidate: a word that the candidate leaves out is improbable, wherever it was. The reference model gives
log P of each token of the candidate given the source: a truncated or clumsy text is improbable. Test: opus-mt's best
translations of 60 sentences, English to French, truncated at a word to 0.9, 1.0 or 1.1 of the source. Half of the 308
texts lost 7 nats or more at some word, and none was kept.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..length.units import measure
from ..scoring.reverse import ReverseModel
from ..translation.placeholders import lost
from ..translation.ranking import untranslated
from .answers import reject_reason

_CLOSING = "\"'”’»›)]} \u00a0\u202f"  # what may follow the mark that ends a text
_ENDS = ".!?…:;,"
_MIN_TAIL = 3  # tokens: the last one alone is often a full stop


@dataclass(frozen=True)
class Margins:
    """By how many nats a candidate may be worse than the best translation."""

    margin: float = 0.25  # mean log P of the source's tokens given the candidate
    tail_margin: float = 0.25  # … of the tokens of its last quarter
    word_margin: float = 4.0  # … of any single token: a word that is left out costs about 8, a paraphrase 3
    likelihood_margin: float = 0.3  # mean log P of the candidate's tokens given the source
    max_surprisal: float = 5.0  # -log P of any token of the candidate, its end included; an absolute limit


@dataclass(frozen=True)
class Candidate:
    """A translation that may be kept, and its scores in nats."""

    text: str
    length: int
    best: bool = False  # the reference model's best translation, made without a length
    score: float = 0.0  # mean log P of the source's tokens given the translation
    tail: float = 0.0  # … of the tokens of its last quarter
    worst: float = 0.0  # largest loss of a source token compared with the best translation
    likelihood: float = 0.0  # mean log P of the translation's tokens given the source
    lowest: float = 0.0  # log P of the least probable of these tokens


def well_formed(source: str, texts: Sequence[str | None], reasons: Counter[str]) -> list[Candidate]:
    """Return the well-formed texts, each once; none if the first, which is the best translation, is not well-formed."""
    found: dict[str, Candidate] = {}
    for place, text in enumerate(texts):
        reason = "unfinished" if text is None else "duplicate" if text in found else malformed(source, text)
        if place and text is not None and not reason and untranslated(source, text, str(texts[0])):
            reason = "left a word as it is"
        if text is not None and not reason:
            found[text] = Candidate(text, measure(text, "chars"), best=place == 0)
            continue
        reasons[str(reason)] += 1
        if place == 0:  # the others have nothing to be compared with
            return []
    return list(found.values())


def malformed(source: str, text: str) -> str | None:
    """Return why this translation is a bad example regardless of its meaning; None if nothing is wrong."""
    if text.casefold() == source.casefold():
        return "copied"
    if reason := reject_reason(source, text):
        return reason
    if ending(source) != ending(text):
        return "ends otherwise"
    return "lost a number or placeholder" if lost(source, text) else None


def ending(text: str) -> str:
    """Return the punctuation mark that ends a text, before closing quotes and brackets; empty if there is none.

    >>> ending("« Où est-il ? »"), ending("Save as..."), ending("Save")
    ('?', '.', '')
    """
    last = text.rstrip(_CLOSING)[-1:].replace("…", ".")
    return last if last and last in _ENDS else ""


def score(
    reverse: ReverseModel, forward: ReverseModel, sentences: Sequence[str], candidates: list[list[Candidate]]
) -> list[list[Candidate]]:
    """Return the candidates of each sentence with their scores. `forward`: the reference model as a scorer."""
    pairs = [(source, one.text) for source, some in zip(sentences, candidates, strict=True) for one in some]
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    back, there = dict(reverse.log_probs(sources, targets)), dict(forward.log_probs(targets, sources))
    place, scored = 0, []
    for some in candidates:
        found = []
        for number, one in enumerate(some, place):
            tokens = back[number][:-1]  # without the end, which is nearly certain after a full stop
            mean, tail = whole_and_tail(tokens) if len(tokens) else (0.0, 0.0)
            worst = float((back[place][: len(tokens)] - tokens).max(initial=0.0))  # the best translation is the first
            likelihood, lowest = float(there[number].mean()), float(there[number].min())
            found.append(replace(one, score=mean, tail=tail, worst=worst, likelihood=likelihood, lowest=lowest))
        scored.append(found)
        place += len(some)
    return scored


def whole_and_tail(log_probs: NDArray[Any]) -> tuple[float, float]:
    """Return the mean over all tokens, and over the last quarter of them, at least three.

    >>> whole_and_tail(np.array([-1.0, -1, -1, -1, -1, -4, -4, -4]))
    (-2.125, -4.0)
    """
    return float(np.mean(log_probs)), float(np.mean(log_probs[-max(_MIN_TAIL, len(log_probs) // 4) :]))


def select(candidates: list[Candidate], margins: Margins, count: int, reasons: Counter[str]) -> list[Candidate]:
    """Return at most `count` candidates: the best translation first, then by length.

    They are the best one, the shortest one, and others whose lengths are spread between the two. If there are too few
    of these, one longer than the best is added. The candidates contain the best translation, or are empty.
    """
    best = next((one for one in candidates if one.best), None)
    if best is None:
        return []
    good: dict[int, Candidate] = {}  # by length; of two with the same length, the better one by the reverse model
    for one in candidates:
        if not one.best and (reason := _behind(one, best, margins)):
            reasons[reason] += 1
        elif (rival := good.get(one.length)) is None:
            good[one.length] = one
        else:
            good[one.length] = max((one, rival), key=lambda some: (some.best, some.score + some.tail))
            reasons["as long as another"] += 1
    chosen = [good.pop(length) for length in dict.fromkeys((best.length, min(good)))][:count]
    while len(chosen) < count and (between := [length for length in good if length < best.length]):
        chosen.append(good.pop(max(between, key=lambda length: min(abs(length - one.length) for one in chosen))))
    if good and len(chosen) < count:
        chosen.append(good.pop(max(good)))
    if good:
        reasons["more than enough"] += len(good)
    return sorted(chosen, key=lambda one: (not one.best, one.length))


def _behind(one: Candidate, best: Candidate, margins: Margins) -> str | None:
    """Return why a candidate is worse than the best translation, beyond the margins; None if it is not."""
    if one.tail < best.tail - margins.tail_margin:
        return "says less at its end"
    if one.worst > margins.word_margin:
        return "leaves out a word"
    if one.score < best.score - margins.margin:
        return "says less"
    if one.likelihood < best.likelihood - margins.likelihood_margin or one.lowest < -margins.max_surprisal:
        return "no good translation"
    return None
