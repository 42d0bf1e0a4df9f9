"""Hypotheses: search the n best translations of a sentence, without a budget or within one.

This file configures the writers for translation: beams, several results, and among results that fit equally well the
most probable first. It handles single sentences, not lines, placeholders or languages.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..generation.endings import Draft, Ending
from ..generation.generator import Writer, Written
from ..generation.requests import Request
from ..generation.unconstrained import UnconstrainedWriter
from ..length.budget import Budget, at_least, at_most
from ..length.sentences import finished
from ..length.units import measure
from ..scoring.completeness import distant_length

# Within a budget most beams follow the most probable text until it reaches the limit. Four times as many beams complete
# half of the texts that were incomplete.
WIDER = 4
# Probabilities are not renormalised: a token does not become more probable because the limit allows no other.
_OPTIONS: dict[str, Any] = {"renormalize_logits": False, "length_penalty": 0.0}
_ANY_LENGTH = at_least(1, "chars")


class Hypotheses:
    """Finds translations with `beams` beams. Each list has the best first, or holds one with its `error` set."""

    def __init__(self, writer: Writer, beams: int) -> None:
        self.beams, engine = beams, writer.engine
        # A model that was trained only with limits receives one that is too large to have an effect.
        self._distant_limits = engine.takes_limits_in("chars")
        self.needs_length = not (engine.plain_without_length or self._distant_limits)
        self._rows = engine.max_rows
        options: dict[str, Any] = {"receives_length": self._distant_limits, "token_limit": _token_limit}
        together = self.at_once(limited=False)
        self._free = UnconstrainedWriter(writer, beams=beams, hypotheses=beams, batch_size=together, **options)
        self._greedy = UnconstrainedWriter(writer, batch_size=self._rows, **options)
        # A model that reads the length before the source writes towards it, so a search of few beams is tried first.
        self.reads_length_first = any(control.reads_length_first for control in engine.controls)
        self._bound = Writer(engine, batch_size=2 * self._rows, prefer=_complete_then_probable)

    def at_once(self, limited: bool) -> int:
        """Return how many texts are searched together. `limited`: within a length, by a wide search."""
        return max(1, 2 * self._rows // (WIDER * self.beams) if limited else self._rows // self.beams)

    def free(self, texts: Sequence[str]) -> list[list[Written]]:
        """Return the hypotheses of a search without a budget."""
        return [_listed(one) for one in self._free.write(texts, self._budgets(texts))]

    def first(self, texts: Sequence[str]) -> list[Written]:
        """Return one greedy translation of each text, without a budget."""
        return list(self._greedy.write(texts, self._budgets(texts)))

    def _budgets(self, texts: Sequence[str]) -> Budget | list[Budget]:
        if not self._distant_limits:
            return _ANY_LENGTH
        return [at_most(distant_length(measure(text, "chars")), "chars") for text in texts]

    def bound(
        self, texts: Sequence[str], budgets: Sequence[Budget], wider: int = WIDER, asked_share: float = 1.0
    ) -> list[list[Written]]:
        """Return hypotheses within these budgets, of a search with `wider` times the beams.

        An output must end as a finished sentence only if its source does. A model that receives a length is asked for
        `asked_share` of the maximum.
        """
        asked = list(dict.fromkeys(zip(texts, budgets, strict=True)))  # the same text with the same budget once
        found: dict[tuple[str, Budget], list[Written]] = {}
        for whole in (True, False):
            some = [(text, budget) for text, budget in asked if finished(text) == whole]
            written = self._bound.write(
                [text for text, _ in some],
                [asked_for(budget, asked_share) for _, budget in some],
                # The rest are far less probable, and with some models scoring each takes a forward pass.
                candidates=min(2, wider) * self.beams,
                finish=whole,
                num_beams=wider * self.beams,
                **_OPTIONS,
            )
            found |= {ask: _listed(one) for ask, one in zip(some, written, strict=True)}
        return [found[ask] for ask in zip(texts, budgets, strict=True)]


def asked_for(budget: Budget, share: float) -> Budget:
    """Return the budget with a target of at most this share of its maximum, if its minimum allows that."""
    if budget.high is None or share == 1:
        return budget
    return replace(budget, target=max(1, budget.low, min(budget.target, int(share * budget.high))))


def _listed(best: Written) -> list[Written]:
    return [replace(best, candidates=[]), *best.candidates]


def _token_limit(request: Request) -> int:
    """Return the token limit: a translation of three times its source is a runaway, long before the window is full."""
    return min(request.limit, 3 * len(request.prompt) + 30)


def _complete_then_probable(ending: Ending, draft: Draft, budget: Budget) -> tuple[bool, bool]:
    """Prefer a text that fits, then a complete one; among equals, keep the order of the search: by probability."""
    return ending.rank(budget)[:2]
