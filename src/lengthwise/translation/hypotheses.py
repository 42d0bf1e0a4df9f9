"""Hypotheses: the best few translations of a sentence, freely or within a budget.

Ties translating to `Writer`: beams, several results, and of two that are as good in length the likelier one first
(`Writer` itself prefers the one nearest its target, which for a translation means little). Knows sentences one by one;
lines, placeholders and languages are for others to know.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..generation.endings import Draft, choose
from ..generation.generator import Writer, Written, _Row
from ..generation.unconstrained import PlainText, PlainWriter, _Hypothesis, _Sourced
from ..length.budget import Budget, at_least, at_most
from ..length.sentences import finished
from ..length.units import measure
from ..scoring.completeness import distant_length

SEQUENCES = 40  # at a time on a CPU: with more, sentences wait for the longest of them, with fewer it is idle
# Within a budget most beams follow the favourite until it hits the limit. With four times as many, half of the texts
# that were torn are complete. There likelihood must count as it is: that a limit leaves one token makes it no likelier.
WIDER = 4
_HONEST: dict[str, Any] = {"renormalize_logits": False, "length_penalty": 0.0}
_ANY = at_least(1, "chars")


class Hypotheses:
    """Finds translations with `beams` beams; each list has the best first, or one that has its `error` set."""

    def __init__(self, writer: Writer, beams: int) -> None:
        self.beams = beams
        # A model that has learnt limits has never translated without a length: it hears of one that hinders nobody.
        limits = writer.takes_limits_in("chars")
        self.told = not (writer.steered or limits)  # can it translate only where it is told a length?
        sequences = SEQUENCES if writer.model.device.type == "cpu" else 16 * SEQUENCES
        self._free = _Free(writer, beams, max(1, sequences // beams), told=limits)
        self._first = _Free(writer, 1, sequences, told=limits)
        self._bound = _Bound(writer, 2 * sequences)

    def free(self, texts: Sequence[str]) -> list[list[Written]]:
        """As the model translates when nobody says how long."""
        return [_listed(one) for one in self._free.write(texts, self._wide(texts))]

    def first(self, texts: Sequence[str]) -> list[Written]:
        """The same, one of each and without a search."""
        return self._first.write(texts, self._wide(texts))

    def _wide(self, texts: Sequence[str]) -> Budget | list[Budget]:
        return [at_most(distant_length(measure(text, "chars")), "chars") for text in texts] if self._free.told else _ANY

    def bound(self, texts: Sequence[str], budgets: Sequence[Budget]) -> list[list[Written]]:
        """Within these budgets. Only what was a whole sentence shall end like one."""
        asked = list(dict.fromkeys(zip(texts, budgets, strict=True)))  # the same text in the same room once
        found: dict[tuple[str, Budget], list[Written]] = {}
        beams = WIDER * self.beams
        for whole in (True, False):
            some = [(text, budget) for text, budget in asked if finished(text) == whole]
            written = self._bound.write(
                [text for text, _ in some],
                [budget for _, budget in some],
                candidates=2 * self.beams,  # the rest are far less likely, and each is read again to judge it
                finish=whole,
                num_beams=beams,
                **_HONEST,
            )
            found |= {ask: _listed(one) for ask, one in zip(some, written, strict=True)}
        return [found[ask] for ask in zip(texts, budgets, strict=True)]


def _listed(best: Written) -> list[Written]:
    return [replace(best, candidates=[]), *best.candidates]


class _Free(PlainWriter):
    """Every hypothesis of the search, in its own order."""

    def __init__(self, writer: Writer, beams: int, rows: int, *, told: bool) -> None:
        super().__init__(writer, told=told, beams=beams, best=beams)
        self.batch_size = rows
        self._meters = writer._meters

    def _fewest_tokens(self, budget: Budget) -> int:
        return 1  # and no meter for it, which reads the whole vocabulary

    def _limit(self, prompt: list[int], budget: Budget) -> int:
        # A translation that is three times its source runs on and on; the model's window is no good limit for it.
        return min(super()._limit(prompt, budget), 3 * len(prompt) + 30)

    def _chosen(self, row: _Sourced, hypotheses: list[_Hypothesis]) -> PlainText:
        first, *others = (self._judged(row.budget, hypothesis) for hypothesis in hypotheses)
        return replace(first, candidates=list(others))


class _Bound(Writer):
    """Of hypotheses that fit and are complete, the likeliest first."""

    def __init__(self, writer: Writer, sequences: int) -> None:
        super().__init__(writer.model, writer.tokenizer, name=writer.name, batch_size=sequences)
        self._meters = writer._meters

    def _best(self, row: _Row, drafts: list[Draft], candidates: int, shown: int) -> Written:
        endings = [choose(draft, row.budget, self._measure(row.budget.unit), shown) for draft in drafts]
        ranked: list[Any] = sorted(endings, key=lambda ending: ending.rank(row.budget)[:2], reverse=True)
        best, *others = (self._written(row.budget, ending) for ending in ranked)
        return replace(best, candidates=others)
