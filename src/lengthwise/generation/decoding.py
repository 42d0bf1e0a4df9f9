"""Decoding: a batch of requests through the engine and the hard budget, into drafts.

Greedy and sampled texts are decoded step by step here; beam search and other searches of the engine's own run with the
budget as a logits processor. Each draft carries the model's scores of its tokens. Which ending is best, and what is
written again, is decided elsewhere.
"""

import codecs
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from ..constraint.mask import UNLIMITED, LengthConstraint
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
    """What follows a text while it is decoded."""

    closed: bool  # nobody reads on: stop

    def put(self, ids: list[int], agreement: list[float]) -> None:
        """Take the tokens so far and how far the model itself chose them."""


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
        meter = self.requests.meter(requests[0].budget.unit)
        lengths = self.requests.length_inputs(requests)
        inputs = self.engine.inputs([[*one.prompt, *one.kept.ids] for one in requests], lengths)
        constraint = LengthConstraint(meter, **_limits(requests, each), eos=self.engine.eos, finish=finish)
        if options.beams > 1 or not self.engine.steps(options.engine):
            written, start, scores = *self._search(requests, inputs, each, options, meter, finish), None
        else:
            written, start, scores = self._steps(requests, inputs, each, options, constraint, listener)
        full_stops = constraint.full_stops(written[:, start:])
        scores = self._judged(inputs, written, start, each, options, meter, full_stops, scores)
        rows = [one for one in requests for _ in range(each)]
        made = _drafts(written[:, start:], rows, scores, meter, set(self.engine.eos))
        return {one.place: made[n * each :][:each] for n, one in enumerate(requests)}

    # ---- step by step

    def _steps(
        self,
        requests: list[Request],
        inputs: Inputs,
        each: int,
        options: DecodingOptions,
        constraint: LengthConstraint,
        listener: Listener | None,
    ) -> tuple[Tensor, int, TokenScores]:
        """Return the ids (rows, time), the column of the first new token, and the scores of the new tokens."""
        rows = self.engine.rows(inputs, options.engine, each)
        steps = max(one.left for one in requests) + 1  # and an end
        sampler = _sampler(requests, each, steps, options)
        first, start = rows.ids, rows.ids.shape[1]
        ends = torch.tensor(self.engine.eos, device=first.device)
        going = torch.ones(len(first), dtype=torch.bool, device=first.device)
        tokens: list[Tensor] = []
        seen: list[tuple[Tensor, ...]] = []
        for step in range(steps):
            if listener is not None:
                listener.put([int(token[0]) for token in tokens], [float(agreement(*one[:4])[0]) for one in seen])
            kept = constraint.apply(rows.scores)
            token = kept.argmax(1) if sampler is None else sampler(kept, step)
            token = torch.where(going, token, self.engine.pad)
            seen.append(_observed(rows.scores, kept, token, ends))
            tokens.append(token)
            going &= ~torch.isin(token, ends)
            if not going.any() or step == steps - 1 or (listener is not None and listener.closed):
                break
            constraint.update(token)
            rows.step(token)
        own, made, best, top, end = (torch.stack(column, 1) for column in zip(*seen, strict=True))
        scores = TokenScores(agreement(own, made, best, top), (end - best).exp(), own - best)
        return torch.cat([first, torch.stack(tokens, 1)], 1), start, scores

    # ---- a search of the engine's own

    def _search(
        self,
        requests: list[Request],
        inputs: Inputs,
        each: int,
        options: DecodingOptions,
        meter: Meter,
        finish: bool,
    ) -> tuple[Tensor, int]:
        """Return the ids and the column of the first new token; the scores must be computed again.

        Rows of a beam search are reordered: what is observed while decoding would be another row's.
        """
        start = self.engine.text_start if self.engine.encoder_decoder else inputs["input_ids"].shape[1]
        kept = [len(one.kept.ids) for one in requests]
        limits = _limits(requests, 1)
        steps = max(one.left for one in requests) + 2  # a language token before and an end behind the text
        processors = [
            LengthBudgetLogitsProcessor(
                meter,
                limits["low"],
                limits["high"],
                start=start - max(kept),
                skip=[max(kept) - n for n in kept],
                eos=self.engine.eos,
                limit=limits["limit"],
                finish=finish,
            )
        ]
        sequences = each
        if sampler := _sampler(requests, each, steps, options):  # every candidate is a row of its own
            inputs, sequences = _repeated(inputs, each), 1
            processors.append(SampledLogitsProcessor(sampler, start))
        found = self.engine.search(
            inputs,
            max_new_tokens=steps,
            processors=processors,
            beams=options.beams,
            sequences=sequences,
            options=options.engine,
        )
        return found.sequences, start

    # ---- how far the model itself agrees

    def _judged(
        self,
        inputs: Inputs,
        written: Tensor,
        start: int,
        each: int,
        options: DecodingOptions,
        meter: Meter,
        full_stops: Tensor,
        scores: TokenScores | None,
    ) -> TokenScores:
        """Return the scores of the written tokens, full stops and ends judged without length inputs if possible."""
        engine = self.engine
        if scores is None:
            scores = score_tokens(engine, _repeated(inputs, each), written, start)
        plain = self.without_length(inputs, meter.unit.name)
        if plain is None:
            return scores
        # A model whose hidden states depend on the length inputs reads the prompt again.
        cache = engine.prompt_cache(plain, each, options.engine) if engine.plain_without_length else None
        own = score_tokens(engine, _repeated(plain, each), written, start, cache)
        scores = judged_without_length(scores, own, full_stops)
        if engine.plain_without_length or engine.encoder_decoder:
            return scores
        return replace(scores, end_ratio=torch.zeros_like(scores.end_ratio))  # it ends where the length says

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

    def stream_judge(self, request: Request) -> Callable[[list[int], list[float]], list[float]]:
        """Return a function that re-judges the agreement of a text's first tokens as `drafts` will in the end."""
        meter, engine = self.requests.meter(request.budget.unit), self.engine
        inputs = engine.inputs([[*request.prompt, *request.kept.ids]], self.requests.length_inputs([request]))
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


def _limits(requests: list[Request], each: int) -> dict[str, Any]:
    """Return minimum, maximum, token limit and the tokens that are kept, for each row."""
    rows = [one for one in requests for _ in range(each)]
    return {
        "low": [int(one.budget.low) for one in rows],
        "high": [UNLIMITED if one.budget.high is None else min(int(one.budget.high), UNLIMITED) for one in rows],
        "limit": [one.limit for one in rows],
        "written": [list(one.kept.ids) for one in rows],
    }


def _sampler(requests: list[Request], each: int, steps: int, options: DecodingOptions) -> SeededSampler | None:
    if options.sampling is None:
        return None
    seeds = [(one.seed + SEED_STEP * n) % 2**63 for one in requests for n in range(each)]
    return SeededSampler(seeds, steps, **options.sampling)


def _observed(scores: Tensor, kept: Tensor, token: Tensor, ends: Tensor) -> tuple[Tensor, ...]:
    """Return of the token: its score before and after the constraint; the best of each; the best end: each (rows,)."""
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
