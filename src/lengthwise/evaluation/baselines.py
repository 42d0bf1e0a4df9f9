"""Baselines for length control: truncation, length penalties, re-ranking, and soft control alone.

`DecodingMode` selects them, or the hard budget; `generation/unconstrained.py` decodes. Truncation at a word boundary
raises length compliance and even BLEU, so report it beside every length score.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any

import regex

from ..generation.options import is_sampling
from ..length.budget import Budget, as_budget
from ..length.units import measure
from ..metrics.optional_imports import library

if TYPE_CHECKING:
    from ..generation.generator import Writer
    from ..generation.unconstrained import SearchedText

BEAMS = 5  # with a length penalty, if the user gives no number
_GRAPHEME = regex.compile(r"\X")
# Scripts without spaces: a text may be cut between any two of these characters, ...
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}、。，．！？」』）]")
_NO_LINE_START = regex.compile(r"[、。，．！？」』）ー々ゝゞヽヾ]")  # ... but not before these


@dataclass(frozen=True)
class DecodingMode:
    """How the texts are written: under the hard budget, or by baselines. A baseline gets a length only with `soft`."""

    system: str | None = None
    beams: int = 1
    candidates: int = 1
    soft: bool = False  # the model receives the length, without a hard budget
    truncate: bool = False  # the output is cut
    length_penalty: str | None = None  # "gnmt:0.5": ranks the n best hypotheses
    rerank: int | None = None  # 20: ranks the 20 best hypotheses

    def __post_init__(self) -> None:
        if self.length_penalty and self.rerank:
            raise ValueError("a length penalty and re-ranking exclude each other; give one of them")
        if self.baselines and self.candidates > 1:
            raise ValueError("candidates are ranked by the hard budget; a baseline has no hard budget: leave them out")
        if self.rerank is not None and self.rerank < 2:
            raise ValueError(f"re-ranking needs at least 2 texts; got {self.rerank}")
        is_sampling(self.candidates, self.beams)
        self._penalty()

    @property
    def baselines(self) -> list[str]:
        """The names of the selected baselines; none for the hard budget."""
        named = {"soft": self.soft, "truncate": self.truncate, f"rerank:{self.rerank}": self.rerank}
        return [name for name, given in (named | {str(self.length_penalty): self.length_penalty}).items() if given]

    def _penalty(self) -> tuple[str, float] | None:
        if self.length_penalty is None:
            return None
        form, _, alpha = self.length_penalty.partition(":")
        try:
            number = float(alpha)
        except ValueError:
            number = -1.0
        if form not in LENGTH_PENALTIES or not 0 <= number < 100:
            forms = " or ".join(f"{name}:0.5" for name in LENGTH_PENALTIES)
            raise ValueError(f"a length penalty is a form and a number, as in {forms}; got {self.length_penalty!r}")
        return form, number

    def write_with(self, writer: "Writer") -> Callable[..., list[Any]]:
        """Return a function that writes texts in this mode, given texts, budgets, a seed and progress."""
        if not self.baselines:
            # num_beams is given even if 1: the model's generation config may have more.
            return partial(writer.write, system=self.system, candidates=self.candidates, num_beams=self.beams)
        from ..generation.unconstrained import UnconstrainedWriter

        def choose(source: str, found: "list[SearchedText]") -> int:
            scores = [one.log_prob for one in found]
            if penalty:
                return rescore(scores, [one.steps for one in found], penalty[1], penalty[0])[0]
            return rerank(source, [one.text for one in found], scores)

        penalty = self._penalty()
        beams = max(self.beams, self.rerank or 1, BEAMS if penalty and self.beams == 1 else 1)
        unconstrained = UnconstrainedWriter(
            writer,
            receives_length=self.soft,
            beams=beams,
            hypotheses=beams if penalty else self.rerank or 1,
            length_penalty=penalty and penalty[1],
            choose=choose if penalty or self.rerank else None,
            cut=partial(truncate, tokenizer=writer.tokenizer) if self.truncate else None,
        )
        return partial(unconstrained.write, system=self.system)


def truncate(text: str, budget: Budget | str, *, source: str | None = None, tokenizer: Any = None) -> str:
    """Return as many whole words of `text` as the budget's maximum allows; if the first is too long, graphemes.

    The minimum is ignored. Without a maximum the text is returned whole. `source` is for budgets relative to it.

    >>> truncate("The cat sat on the mat.", "at most 12 chars"), truncate("Donaudampfschiff", "at most 5 chars")
    ('The cat sat', 'Donau')
    """
    budget = as_budget(budget)
    if budget.of_source:
        if source is None:
            raise ValueError(f"budget {str(budget)!r} is relative to the source; give truncate(..., source=...)")
        budget = budget.resolve(source, tokenizer)
    if budget.high is None:
        return text

    def length(end: int) -> int:
        return measure(text[:end], budget.unit, tokenizer=tokenizer)

    if length(len(text)) <= budget.high:
        return text
    graphemes = [found.end() for found in _GRAPHEME.finditer(text)]
    for ends in ([end for end in graphemes if _word_ends(text, end)], graphemes):
        # Bisection returns only an end that it has measured, so the text fits even if lengths are not monotonic.
        if (count := bisect_right(ends, budget.high, key=length)) and text[: ends[count - 1]].strip():
            return text[: ends[count - 1]].rstrip()
    return ""


def _word_ends(text: str, end: int) -> bool:
    if end == len(text) or text[end].isspace():
        return not text[end - 1].isspace()
    unspaced = _UNSPACED.match(text, end - 1) or _UNSPACED.match(text, end)
    return unspaced is not None and not _NO_LINE_START.match(text, end)


def gnmt(log_prob: float, n: int, alpha: float) -> float:
    """Return log P / ((5 + n) / 6)^α (Wu et al. 2016). −10 over 20 tokens, α = 0.5 → −4.899."""
    return log_prob / ((5 + n) / 6) ** alpha


def fairseq(log_prob: float, n: int, alpha: float) -> float:
    """Return log P / n^α (fairseq, transformers). −10 over 20 tokens, α = 0.5 → −2.236."""
    return log_prob / n**alpha


LENGTH_PENALTIES: dict[str, Callable[[float, int, float], float]] = {"gnmt": gnmt, "fairseq": fairseq}


def rescore(log_probs: Sequence[float], lengths: Sequence[int], alpha: float, form: str = "gnmt") -> list[int]:
    """Return the indices of the hypotheses, best first, after a length penalty; `lengths` are in tokens."""
    if form not in LENGTH_PENALTIES:
        raise ValueError(f"unknown length penalty {form!r}; the forms are {', '.join(LENGTH_PENALTIES)}")
    if len(log_probs) != len(lengths):
        raise ValueError(f"log_probs and lengths must be equally many; got {len(log_probs)} and {len(lengths)}")
    if short := [place for place, n in enumerate(lengths) if n < 1]:
        raise ValueError(f"a hypothesis has at least 1 token; got {lengths[short[0]]} for hypothesis {short[0]}")
    scores = [LENGTH_PENALTIES[form](p, n, alpha) for p, n in zip(log_probs, lengths, strict=True)]
    return sorted(range(len(scores)), key=lambda place: -scores[place])


def rerank(source: str, hypotheses: Sequence[str], scores: Sequence[float] | None = None) -> int:
    """Return the index of the hypothesis that shares most words with the source (Takase & Okazaki 2019).

    Words are compared by their Porter stems; a repeated word counts each time. In a tie, the hypothesis with the higher
    score is chosen, or the first one if there are no `scores`.
    """
    if not hypotheses:
        raise ValueError("re-ranking needs at least one hypothesis; got none")
    if scores is not None and len(scores) != len(hypotheses):
        raise ValueError(f"hypotheses and scores must be equally many; got {len(hypotheses)} and {len(scores)}")
    in_source = set(_stems(source))
    shared = [sum(stem in in_source for stem in _stems(hypothesis)) for hypothesis in hypotheses]
    return max(range(len(hypotheses)), key=lambda place: (shared[place], scores[place] if scores else 0, -place))


def _stems(text: str) -> list[str]:
    words = (regex.sub(r"^\P{L}+|\P{L}+$", "", word) for word in text.lower().split())
    return [_stem(word) for word in words if word]


@lru_cache(maxsize=1 << 16)  # hypotheses repeat the words of their source
def _stem(word: str) -> str:
    return str(_porter().stem(word))


@cache
def _porter() -> Any:
    return library("nltk.stem.porter").PorterStemmer()
