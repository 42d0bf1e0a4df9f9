"""Baselines: what length control has to beat.

Cutting, length penalties and re-ranking, as functions on texts and numbers. Cutting at a word boundary raises length
compliance and even BLEU, so every length score belongs beside it. This file knows no model.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import regex

from ..length.budget import Budget, as_budget
from ..length.units import measure
from ..metrics.extras import library

_GRAPHEME = regex.compile(r"\X")
# Scripts that write no spaces: any two characters of theirs may be parted.
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}、。，．！？」』）]")
_STICKS = regex.compile(r"[、。，．！？」』）ー々ゝゞヽヾ]")  # never begins a line, so never cut before it


def truncate(text: str, budget: Budget | str, *, source: str | None = None, tokenizer: Any = None) -> str:
    """As many whole words of `text` as the budget's maximum allows; if not even one, as many graphemes.

    A minimum is not looked at, and without a maximum nothing is cut. `source` is for budgets relative to it.

    >>> truncate("The cat sat on the mat.", "at most 12 chars"), truncate("Donaudampfschiff", "at most 5 chars")
    ('The cat sat', 'Donau')
    """
    budget = as_budget(budget)
    if budget.of_source:
        if source is None:
            raise ValueError(f"budget {str(budget)!r} is relative to the source; give it: truncate(..., source=...)")
        budget = budget.resolve(source, tokenizer)
    if budget.high is None:
        return text

    def length(end: int) -> int:
        return measure(text[:end], budget.unit, tokenizer=tokenizer)

    if length(len(text)) <= budget.high:
        return text
    graphemes = [found.end() for found in _GRAPHEME.finditer(text)]
    for ends in ([end for end in graphemes if _word_ends(text, end)], graphemes):
        # Bisection returns only an end it has tried, so the result fits even where lengths do not rise evenly.
        if (count := bisect_right(ends, budget.high, key=length)) and text[: ends[count - 1]].strip():
            return text[: ends[count - 1]].rstrip()
    return ""


def _word_ends(text: str, end: int) -> bool:
    if end == len(text) or text[end].isspace():
        return not text[end - 1].isspace()
    unspaced = _UNSPACED.match(text, end - 1) or _UNSPACED.match(text, end)
    return unspaced is not None and not _STICKS.match(text, end)


def gnmt(log_prob: float, n: int, alpha: float) -> float:
    """Wu et al. 2016: log P / ((5 + n) / 6)^α. −10 over 20 tokens, α = 0.5 → −4.899."""
    return log_prob / ((5 + n) / 6) ** alpha


def fairseq(log_prob: float, n: int, alpha: float) -> float:
    """fairseq and transformers: log P / n^α. −10 over 20 tokens, α = 0.5 → −2.236."""
    return log_prob / n**alpha


LENGTH_PENALTIES: dict[str, Callable[[float, int, float], float]] = {"gnmt": gnmt, "fairseq": fairseq}


def rescore(log_probs: Sequence[float], lengths: Sequence[int], alpha: float, form: str = "gnmt") -> list[int]:
    """The hypotheses' places, best first, after a length penalty; hypotheses are as many tokens long as `lengths`."""
    if form not in LENGTH_PENALTIES:
        raise ValueError(f"unknown length penalty {form!r}; there are {', '.join(LENGTH_PENALTIES)}")
    if len(log_probs) != len(lengths):
        raise ValueError(
            f"log_probs and lengths must be equally many; got {len(log_probs)} log_probs and {len(lengths)} lengths"
        )
    short = next((place for place, n in enumerate(lengths) if n < 1), None)
    if short is not None:
        raise ValueError(f"a hypothesis has at least 1 token; got {lengths[short]} for hypothesis {short}")
    scores = [LENGTH_PENALTIES[form](p, n, alpha) for p, n in zip(log_probs, lengths, strict=True)]
    return sorted(range(len(scores)), key=lambda place: -scores[place])


def rerank(source: str, hypotheses: Sequence[str], scores: Sequence[float] | None = None) -> int:
    """The place of the hypothesis that shares most words with the source (Takase & Okazaki 2019).

    Words are compared by their Porter stems; a word the hypothesis repeats counts each time. Ties go to the better
    scored, or without `scores` to the earlier.
    """
    if not hypotheses:
        raise ValueError("there is no hypothesis to choose from")
    if scores is not None and len(scores) != len(hypotheses):
        raise ValueError(
            f"hypotheses and scores must be equally many; got {len(hypotheses)} hypotheses and {len(scores)} scores"
        )
    known = set(_stems(source))
    shared = [sum(stem in known for stem in _stems(hypothesis)) for hypothesis in hypotheses]
    return max(range(len(hypotheses)), key=lambda place: (shared[place], scores[place] if scores else 0, -place))


def _stems(text: str) -> list[str]:
    words = (regex.sub(r"^\P{L}+|\P{L}+$", "", word) for word in text.lower().split())
    return [_porter().stem(word) for word in words if word]


@lru_cache(maxsize=1)
def _porter() -> Any:
    return library("nltk.stem.porter").PorterStemmer()
