"""Decoding: a batch of requests through the engine and the hard budget, into drafts.

Greedy and sampled texts are decoded step by step here; beam search and other searches of the engine's own run with the
budget as a logits processor. Each draft carries the model's scores of its tokens. Which ending is best, and what is
written again, is decided elsewhere.
"""

import codecs
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from ..constraint.mask import LengthConstraint
from ..engines.logits_processor import LengthBudgetLogitsProcessor
from ..engines.sampling import SeededSampler
from ..engines.transformers import SampledLogitsProcessor, TransformersEngine
from ..length.meter import Meter
from ..scoring.completeness import (
    TokenScores,
    agreement,
    distant_length,
    distant_limit_inputs,
    judged_without_length,
    score_tokens,
    without_length_inputs,
)
from .endings import Draft
from .options import DecodingOptions
from .repair import SEED_STEP, Drafts
from .requests import Request, Requests

Inputs = dict[str, Tensor]


class Listener(Protocol):
    """Receives the tokens of a text while it is decoded."""

    closed: bool  # the reader has stopped; stop decoding

    def put(self, ids: list[int], agreement: list[float]) -> None:
        """Receive the tokens so far and their agreement (see `TokenScores`)."""


@dataclass(frozen=True)
class _Batch:
    """Requests of one unit that are decoded together, `each` times."""

    requests: list[Request]
    each: int
    options: DecodingOptions
    finish: bool
    meter: Meter
    inputs: Inputs  # one row a request

    def limits(self, each: int) -> dict[str, Any]:
        """Return minimum, maximum and token limit of each row."""
        rows = [one for one in self.requests for _ in range(each)]
        budgets = [one.budget for one in rows]
        return {
            "low": [b.low for b in budgets],
            "high": [b.high for b in budgets],
            "limit": [one.limit for one in rows],
        }

    def sampler(self, steps: int) -> SeededSampler | None:
        if self.options.sampling is None:
            return None
        seeds = [(one.seed + SEED_STEP * n) % 2**63 for one in self.requests for n in range(self.each)]
        return SeededSampler(seeds, steps, **self.options.sampling)


class Decoder:
    """Decodes requests under their budgets. `requests` makes them and has the meters."""

    def __init__(self, engine: TransformersEngine, requests: Requests) -> None:
        self.engine, self.requests = engine, requests

    @torch.inference_mode()
    def drafts(
        self,
        requests: list[Request],
        each: int,
        options: DecodingOptions,
        *,
        finish: bool = True,
        listener: Listener | None = None,
    ) -> Drafts:
        """Return `each` drafts of every request. `finish`: near the end of the room, favour sentence ends."""
        batch = _Batch(
            requests, each, options, finish, self.requests.meter(requests[0].budget.unit), self._inputs(requests)
        )
        rows = [one for one in requests for _ in range(each)]
        kept = [one.kept.ids for one in rows]
        constraint = LengthConstraint(
            batch.meter, **batch.limits(each), eos=self.engine.eos, finish=finish, written=kept
        )
        if options.beams > 1 or not self.engine.steps(options.engine):
            written, start, scores = *self._search(batch), None
        else:
            written, start, scores = self._steps(batch, constraint, listener)
        scores = self._judged(batch, written, start, constraint.full_stops(written[:, start:]), scores)
        made = _drafts(written[:, start:], rows, scores, batch.meter, set(self.engine.eos))
        return {one.place: made[n * each :][:each] for n, one in enumerate(requests)}

    def _inputs(self, requests: list[Request]) -> Inputs:
        prompts = [[*one.prompt, *one.kept.ids] for one in requests]
        return self.engine.inputs(prompts, self.requests.length_inputs(requests))

    def _steps(
        self, batch: _Batch, constraint: LengthConstraint, listener: Listener | None
    ) -> tuple[Tensor, int, TokenScores]:
        """Decode step by step. Return the ids (rows, time), the first new column, and the scores of the new tokens."""
        rows = self.engine.rows(batch.inputs, batch.options.engine, batch.each)
        steps = max(one.left for one in batch.requests) + 1  # one more for the end token
        sampler = batch.sampler(steps)
        first, start = rows.ids, rows.ids.shape[1]
        ends = torch.tensor(self.engine.eos, device=first.device)
        going = torch.ones(len(first), dtype=torch.bool, device=first.device)
        tokens: list[Tensor] = []
        seen: list[tuple[Tensor, ...]] = []
        text_ids: list[int] = []
        agreed: list[float] = []
        for step in range(steps):
            if listener is not None:
                listener.put(text_ids, agreed)
            kept = constraint.apply(rows.scores)
            token = kept.argmax(1) if sampler is None else sampler(kept, step)
            token = torch.where(going, token, self.engine.pad)
            tokens.append(token)
            seen.append(_observed(rows.scores, kept, token, ends))
            if listener is not None:
                text_ids.append(int(token[0]))
                agreed.append(float(agreement(*seen[-1][:4])[0]))
            going &= ~torch.isin(token, ends)
            if not going.any() or step == steps - 1 or (listener is not None and listener.closed):
                break
            constraint.update(token)
            rows.step(token)
        own, made, best, top, end = (torch.stack(column, 1) for column in zip(*seen, strict=True))
        scores = TokenScores(agreement(own, made, best, top), (end - best).exp(), own - best)
        return torch.cat([first, torch.stack(tokens, 1)], 1), start, scores

    def _search(self, batch: _Batch) -> tuple[Tensor, int]:
        """Decode by a search of the engine's own. Return the ids and the first new column.

        Beam search reorders rows, so scores recorded while decoding would belong to other rows.
        """
        inputs, sequences = batch.inputs, batch.each
        start = self.engine.text_start if self.engine.encoder_decoder else inputs["input_ids"].shape[1]
        kept = [len(one.kept.ids) for one in batch.requests]
        steps = (
            max(one.left for one in batch.requests) + 2
        )  # and a language token before the text and an end token after it
        where: dict[str, Any] = {"start": start - max(kept), "skip": [max(kept) - n for n in kept]}
        processors: list[Any] = [
            LengthBudgetLogitsProcessor(
                batch.meter, **batch.limits(1), **where, eos=self.engine.eos, finish=batch.finish
            )
        ]
        if sampler := batch.sampler(steps):  # every candidate is a row of its own
            inputs, sequences = _repeated(inputs, batch.each), 1
            processors.append(SampledLogitsProcessor(sampler, start))
        options = batch.options
        how: dict[str, Any] = {"beams": options.beams, "sequences": sequences, "options": options.engine}
        found = self.engine.search(inputs, max_new_tokens=steps, processors=processors, **how)
        return found.sequences, start

    def _judged(
        self, batch: _Batch, written: Tensor, start: int, full_stops: Tensor, scores: TokenScores | None
    ) -> TokenScores:
        """Return the scores of the written tokens, full stops and ends judged without length inputs if possible."""
        engine = self.engine
        if scores is None:
            scores = score_tokens(engine, _repeated(batch.inputs, batch.each), written, start)
        plain = self.without_length(batch.inputs, batch.meter.unit.name)
        if plain is None:
            return scores
        # A model whose hidden states depend on the length inputs reads the prompt again.
        shared = engine.plain_without_length
        cache = engine.prompt_cache(plain, batch.each, batch.options.engine) if shared else None
        own = score_tokens(engine, _repeated(plain, batch.each), written, start, cache)
        scores = judged_without_length(scores, own, full_stops)
        if shared or engine.encoder_decoder:
            return scores
        return replace(
            scores, end_ratio=torch.zeros_like(scores.end_ratio)
        )  # its end token follows the length, so it is no evidence

    def without_length(self, inputs: Inputs, unit: str) -> Inputs | None:
        """Return the inputs with which the model judges a text regardless of its length.

        None if the model received no length, or cannot work without one. An answer can always continue, so a causal
        model may receive a longer length; a translation is over when its source is.
        """
        if "decoder_length" not in inputs:
            return None
        if self.engine.plain_without_length:
            return without_length_inputs(inputs)
        if not self.engine.encoder_decoder:
            return inputs | {"decoder_length": distant_length(inputs["decoder_length"])}
        return inputs | distant_limit_inputs(inputs["decoder_length"]) if self.engine.takes_limits_in(unit) else None

    @torch.inference_mode()
    def stream_judge(self, request: Request) -> Callable[[list[int], list[float]], list[float]]:
        """Return a function that re-judges the agreement of a text's first tokens as `drafts` will in the end."""
        meter, engine = self.requests.meter(request.budget.unit), self.engine
        inputs = self._inputs([request])
        plain = self.without_length(inputs, meter.unit.name)
        if plain is None or engine.encoder_decoder:
            return lambda ids, agreed: agreed
        start = inputs["input_ids"].shape[1]
        constraint = LengthConstraint(meter, [0], None, eos=engine.eos)
        cache = engine.prompt_cache(plain, 1) if engine.plain_without_length else None

        @torch.inference_mode()
        def judge(ids: list[int], agreed: list[float]) -> list[float]:
            new = torch.tensor([ids], device=engine.device)
            own = score_tokens(engine, plain, torch.cat([plain["input_ids"], new], 1), start, cache)
            if cache is not None:
                cache.crop(-len(ids))  # the prompt alone again, for the next call
            seen = replace(own, agreement=torch.tensor([agreed], device=engine.device))
            return judged_without_length(seen, own, constraint.full_stops(new)).agreement[0].tolist()

        return judge


def _observed(scores: Tensor, kept: Tensor, token: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
    """Return (rows,) each: the token's score before and after the constraint, the best of both, the best end score."""
    column = token.unsqueeze(1)
    own, made = scores.gather(1, column).squeeze(1), kept.gather(1, column).squeeze(1)
    return own, made, scores.amax(1), kept.amax(1), scores.index_select(1, ends).amax(1)


def _drafts(written: Tensor, rows: list[Request], scores: TokenScores, meter: Meter, eos: set[int]) -> list[Draft]:
    drafts = []
    columns = zip(written.tolist(), rows, *(t.tolist() for t in vars(scores).values()), strict=True)
    for new, row, agreed, end_ratio, token_scores in columns:
        end = next((i for i, token in enumerate(new) if token in eos), len(new))
        kept, ids = row.kept, [*row.kept.ids, *new[:end]]
        text, reach = spelled(meter, ids)
        score = (len(kept.ids) * kept.score + sum(token_scores[:end])) / max(len(ids), 1)
        agreed = [*kept.agreement, *agreed[:end]]
        drafts.append(Draft(text, reach, agreed, end_ratio[end] if end < len(new) else 0.0, score, ids))
    return drafts


def spelled(meter: Meter, ids: list[int]) -> tuple[str, list[int]]:
    """Return the text of these tokens without leading white space, and its length in characters after each token."""
    decoder, text, reach = codecs.getincrementaldecoder("utf-8")("replace"), "", []
    for token in ids:
        text = (text + decoder.decode(meter.pieces[token])) if text else decoder.decode(meter.pieces[token]).lstrip()
        reach.append(len(text))
    return text + decoder.decode(b"", final=True), reach


def _repeated(inputs: Inputs, each: int) -> Inputs:
    return {key: value.repeat_interleave(each, 0) for key, value in inputs.items()}
