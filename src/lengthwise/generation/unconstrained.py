"""Unconstrained generation: the same model without the hard budget, for baselines and for soft control.

No token is banned and no ending is chosen. The model may receive the length or not. The caller can give a
function that chooses among the n best texts, and one that truncates a text. A text that has not ended at its token
limit is a runaway.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..length.budget import Budget
from ..length.sentences import finished
from ..length.units import measure
from .generator import Writer, Written
from .requests import Request


@dataclass(frozen=True)
class UnconstrainedText(Written):
    """A text without a hard budget. `complete`: it ends as a sentence, or the model ended it without a length."""

    runaway: bool = False


@dataclass(frozen=True)
class SearchedText:
    """One text of a search."""

    text: str
    tokens: int
    ended: bool  # by the model, before the row's token limit
    log_prob: float  # 0 where the search had one beam
    steps: int  # tokens that log_prob is the sum of, the end token included


Choose = Callable[[str, list[SearchedText]], int]  # (source, hypotheses) -> which one
Cut = Callable[[str, Budget], str]


class UnconstrainedWriter:
    """Generates texts whose length the model decides.

    receives_length   the attached controls receive the length: soft control
    hypotheses        how many of the search's texts `choose` chooses from; 1: the search's own best
    length_penalty    exponent of the search's length normalisation; None: as the model's settings say
    cut               shortens a text to its budget
    token_limit       the tokens of a text at most, given its request; the default is the request's own limit
    """

    def __init__(
        self,
        writer: Writer,
        *,
        receives_length: bool,
        beams: int = 1,
        hypotheses: int = 1,
        length_penalty: float | None = None,
        choose: Choose | None = None,
        cut: Cut | None = None,
        token_limit: Callable[[Request], int] | None = None,
        batch_size: int | None = None,
    ) -> None:
        self.writer = Writer(writer.engine, batch_size=batch_size or max(1, writer.batch_size // beams))
        self.engine, self.receives_length = writer.engine, receives_length
        self.beams, self.hypotheses = beams, hypotheses
        self.length_penalty, self.choose, self.cut, self.token_limit = length_penalty, choose, cut, token_limit

    def write(
        self,
        texts: str | Sequence[str],
        budgets: str | Budget | Sequence[str | Budget],
        *,
        system: str | None = None,
        progress: Callable[[int], None] | None = None,
        seed: int | None = None,  # nothing is sampled
    ) -> list[UnconstrainedText]:
        """Return one text for each text, chosen and cut; its `candidates` are the other hypotheses in their order."""

        def make(place: int, text: str, budget: str | Budget) -> Request:
            made = self.writer.requests.make(place, text, budget, system, control_text=self.receives_length)
            return made if self.token_limit is None else replace(made, limit=self.token_limit(made))

        return self.writer.rows(texts, budgets, make, self._write_batch, 1, progress)

    def _write_batch(self, requests: list[Request]) -> dict[int, UnconstrainedText]:
        lengths = self.writer.requests.length_inputs(requests) if self.receives_length else None
        found = self.engine.search(
            [one.prompt for one in requests],
            lengths,
            max_new_tokens=max(one.limit for one in requests),
            beams=self.beams,
            sequences=self.hypotheses,
            scores=True,
            options={} if self.length_penalty is None else {"length_penalty": self.length_penalty},
        )
        searched = list(zip(found.ids, found.scores, strict=True))
        results = {}
        for n, one in enumerate(requests):
            own = searched[n * self.hypotheses :][: self.hypotheses]
            results[one.place] = self._chosen(one, [self._hypothesis(ids, one.limit, score) for ids, score in own])
        return results

    def _hypothesis(self, ids: list[int], limit: int, score: float) -> SearchedText:
        """Return one text up to its own row's limit: so it does not depend on the rest of the batch."""
        eos = set(self.engine.eos)
        end = next((i for i, token in enumerate(ids) if token in eos), len(ids))
        steps = min(end + 1, len(ids))
        log_prob = score * steps ** (self.length_penalty or 0.0)  # transformers returns log P / steps^alpha
        tokens = min(end, limit)
        # Not by pieces, as in decoding: without a hard budget a model may generate bytes that are not UTF-8.
        text = self.engine.tokenizer.decode(ids[:tokens], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return SearchedText(text.strip(), tokens, end < min(len(ids), limit), log_prob, steps)

    def _chosen(self, request: Request, hypotheses: list[SearchedText]) -> UnconstrainedText:
        place = self.choose(request.source, hypotheses) if self.choose else 0
        judged = partial(self._judged, request.budget)
        first, *others = map(judged, [hypotheses[place], *hypotheses[:place], *hypotheses[place + 1 :]])
        return replace(first, candidates=list(others) if self.choose is None else [])

    def _ends_at_length(self, budget: Budget) -> bool:
        """Return whether the model ends at the given length, even in the middle of a sentence.

        A translator may end a title without a full stop; a model trained with limits need not use them up.
        """
        counting = [control for control in self.engine.controls if budget.unit in control.units]
        limited = budget.is_limit and any(control.at_most for control in counting)
        return bool(counting) and not limited and not self.engine.encoder_decoder

    def _judged(self, budget: Budget, hypothesis: SearchedText) -> UnconstrainedText:
        text, tokens, unit = hypothesis.text, hypothesis.tokens, budget.unit
        if self.cut:
            text = self.cut(text, budget)
        whole = text == hypothesis.text
        if not whole:
            tokens = measure(text, "tokens", tokenizer=self.engine.tokenizer)
        length = tokens if unit == "tokens" else measure(text, unit)
        counted = self.receives_length and self._ends_at_length(budget)
        return UnconstrainedText(
            text=text,
            length=length,
            unit=unit,
            budget=str(budget),
            fits=budget.fits(length),
            complete=whole and bool(text) and (finished(text) or (hypothesis.ended and not counted)),
            model=self.engine.name,
            tokens=tokens,
            runaway=not hypothesis.ended,
        )
