"""Plain writing: the same model without the hard budget, as baselines and soft control have it.

No token is banned and no end is chosen. The model may be told the length or not; of its n best texts another may be
taken, and what is too long may be cut. A text that had not ended at the token limit is a runaway, and says so.
This file knows how to write; what comes of it is scored elsewhere.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from ..controls.attach import controls_of, units_of
from ..length.budget import Budget
from ..length.sentences import finished
from ..length.units import measure
from ..metrics import rerank, rescore, truncate
from .generator import Writer, Written, _Row
from .options import Search
from .streaming import SentenceStreamer


@dataclass(frozen=True)
class PlainText(Written):
    """A text that no hard budget held. `complete`: it ends as a sentence, or by itself, untold."""

    runaway: bool = False


@dataclass(frozen=True)
class _Sourced(_Row):
    source: str = ""


@dataclass(frozen=True)
class _Hypothesis:
    text: str
    tokens: int
    ended: bool  # by the model, before the row's token limit
    log_prob: float  # 0 where the search had one beam: nothing is chosen by it
    steps: int  # tokens that log_prob is the sum of, the end token included


class PlainWriter(Writer):
    """A `Writer` whose texts are as long as the model makes them.

    told      the attached controls speak: soft control
    best      how many of the search's hypotheses to choose from, by `penalty` ("gnmt", 0.5) or else by the words
              they share with the source; 1: the search's own best
    cut       at the last whole word that the budget allows
    """

    def __init__(
        self,
        writer: Writer,
        *,
        told: bool,
        beams: int = 1,
        best: int = 1,
        penalty: tuple[str, float] | None = None,
        cut: bool = False,
    ) -> None:
        size = max(1, writer.batch_size // beams)
        super().__init__(writer.model, writer.tokenizer, name=writer.name, batch_size=size)
        self.told, self.beams, self.best, self.penalty, self.cut = told, beams, best, penalty, cut

    def _row(self, place: int, text: str, budget: str | Budget, system: str | None) -> _Row:
        row = super()._row(place, text, budget, system)
        if not self.told:  # without the words and tokens that controls put before the source
            row = replace(row, prompt=self.prompt_ids(text, system))
        return _Sourced(**vars(row), source=text)

    def _write_batch(
        self, rows: list[_Row], candidates: int, finish: bool, search: Search, tap: SentenceStreamer | None = None
    ) -> dict[int, Written]:
        inputs, start = self._inputs(rows)
        if not self.told:
            inputs = {name: value for name, value in inputs.items() if not name.startswith("decoder_")}
        found = self._search(inputs, max(row.limit for row in rows))
        written = found.sequences[:, start:].tolist()
        scores = getattr(found, "sequences_scores", None)
        scores = [0.0] * len(written) if scores is None else scores.tolist()
        results: dict[int, Written] = {}
        for n, row in enumerate(rows):
            own = range(n * self.best, (n + 1) * self.best)
            results[row.place] = self._chosen(
                cast(_Sourced, row), [self._hypothesis(written[i], row.limit, scores[i]) for i in own]
            )
        return results

    def _search(self, inputs: dict[str, Tensor], limit: int) -> Any:
        # Named even when 1: a model's own settings may ask for beams, and then rows come back in another order.
        options: dict[str, Any] = {"num_beams": self.beams, "num_return_sequences": self.best, "do_sample": False}
        if self.penalty:
            options["length_penalty"] = self.penalty[1]
        with torch.inference_mode():
            return self.model.generate(
                **inputs,
                **options,
                **dict.fromkeys(("temperature", "top_p", "top_k", "max_length")),
                max_new_tokens=limit,
                eos_token_id=self.ends,
                pad_token_id=self.pad,
                return_dict_in_generate=True,
                output_scores=self.beams > 1,
            )

    def _hypothesis(self, ids: list[int], limit: int, score: float) -> _Hypothesis:
        """One text, up to its own row's limit: how long the others of its batch were must not matter."""
        eos = set(self.ends)
        end = next((i for i, token in enumerate(ids) if token in eos), len(ids))
        steps = min(end + 1, len(ids))
        # transformers gives log P / steps^α
        log_prob = score * steps ** (self.penalty[1] if self.penalty else 0.0)
        tokens = min(end, limit)
        # Not by pieces, as `Writer` does: without a hard budget a model may write bytes that are no text.
        text = self.tokenizer.decode(ids[:tokens], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return _Hypothesis(text.strip(), tokens, end < min(len(ids), limit), log_prob, steps)

    def _chosen(self, row: _Sourced, hypotheses: list[_Hypothesis]) -> PlainText:
        place = 0
        if self.penalty:
            form, alpha = self.penalty
            place = rescore([h.log_prob for h in hypotheses], [h.steps for h in hypotheses], alpha, form)[0]
        elif self.best > 1:
            place = rerank(row.source, [h.text for h in hypotheses], [h.log_prob for h in hypotheses])
        return self._judged(row.budget, hypotheses[place])

    def _stops_where_told(self, budget: Budget) -> bool:
        """In mid-sentence or not. A translator may end a title; one that knows limits need not come up to them."""
        controls = [control for control in controls_of(self.model) if budget.unit in units_of([control])]
        limited = budget.is_limit and any(getattr(control, "at_most", False) for control in controls)
        return bool(controls) and not limited and not self.model.config.is_encoder_decoder

    def _judged(self, budget: Budget, hypothesis: _Hypothesis) -> PlainText:
        text, tokens, unit = hypothesis.text, hypothesis.tokens, budget.unit
        if self.cut:
            text = truncate(text, budget, tokenizer=self.tokenizer)
        whole = text == hypothesis.text
        if not whole:
            tokens = measure(text, "tokens", tokenizer=self.tokenizer)
        length = tokens if unit == "tokens" else measure(text, unit)
        counted = self.told and self._stops_where_told(budget)
        return PlainText(
            text=text,
            length=length,
            unit=unit,
            budget=str(budget),
            fits=budget.fits(length),
            complete=whole and bool(text) and (finished(text) or (hypothesis.ended and not counted)),
            model=self.name,
            tokens=tokens,
            runaway=not hypothesis.ended,
        )
