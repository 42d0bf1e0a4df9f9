"""Decoding: run a batch of requests with the engine under the hard budget, and return drafts.

Greedy and sampled texts are decoded step by step here. Beam search and other searches of the engine receive the
budget as a logits processor. Each draft contains the model's scores of its tokens. `endings.py` chooses the ending,
and `repair.py` chooses what is decoded again.
"""

import codecs
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constraint.closings import Closings
from ..constraint.mask import LIKELY_END, LengthConstraint
from ..constraint.mixed import MixedConstraint
from ..constraint.token_costs import token_costs_of
from ..engines.base import Engine, LengthInputs
from ..engines.rows import Processor, Rows, closing
from ..engines.sampling import SeededSampler
from ..length.blocks import is_signed, may_end_line
from ..length.meter import Meter
from ..length.sentences import finished
from ..scoring.completeness import (
    TokenScores,
    can_judge_without_length,
    judged_without_length,
    neutral_lengths,
    score_tokens,
    token_scores,
    without_bent_words,
)
from .choice_record import ChoiceRecord
from .endings import Draft
from .loops import LoopGuard, loop_tables_of
from .options import DecodingOptions
from .repair import SEED_STEP, Drafts
from .requests import Request, Requests
from .steering import Steering
from .token_choice import TokenChoice, only

Judge = Callable[[list[int], list[float]], list[float]]  # (tokens, their agreement) -> the final agreement
Texts = list[list[int]]  # the new tokens of each row, padded to one length after the end token


@dataclass(frozen=True)
class _Batch:
    """Requests that are decoded together, one row each. `meters`: of their units."""

    requests: list[Request]
    meters: dict[str, Meter]
    lengths: LengthInputs | None  # what attached controls receive
    steered: bool  # by a future discriminator; then `lengths` is None, as plain texts are likelier

    @property
    def prompts(self) -> Texts:
        return [[*one.prompt, *one.kept.ids] for one in self.requests]

    @property
    def meter(self) -> Meter:
        """The meter of the first unit. All meters of a tokenizer spell its tokens alike."""
        return next(iter(self.meters.values()))

    def constraint(self, eos: list[int], finish: bool) -> LengthConstraint | MixedConstraint:
        """Return the hard budget of the rows."""
        parts = []
        for unit, meter in self.meters.items():
            rows = [n for n, one in enumerate(self.requests) if one.budget.unit == unit]
            own = [self.requests[n] for n in rows]
            low: Any = [one.budget.low for one in own]
            high: Any = [one.budget.high for one in own]
            limit, written = [one.limit for one in own], [one.kept.ids for one in own]
            part = LengthConstraint(meter, low, high, eos=eos, limit=limit, finish=finish, written=written)
            parts.append((rows, part))
        return parts[0][1] if len(parts) == 1 else MixedConstraint(parts)


class Decoder:
    """Decodes requests under their budgets. `requests` makes them and has the meters."""

    def __init__(self, engine: Engine, requests: Requests) -> None:
        self.engine, self.requests = engine, requests

    def _batch(self, requests: list[Request], options: DecodingOptions, finish: bool = True) -> _Batch:
        units = dict.fromkeys(one.budget.unit for one in requests)
        meters = {unit: self.requests.meter(unit) for unit in units}
        one_by_one = options.one_by_one and self.engine.steps(options.engine)
        plain = finish and one_by_one and self.requests.without_length(requests[0])
        lengths = None if plain else self.requests.length_inputs(requests)
        return _Batch(requests, meters, lengths, plain and self.requests.can_steer(requests[0]))

    def drafts(self, requests: list[Request], each: int, options: DecodingOptions, *, finish: bool = True) -> Drafts:
        """Return `each` drafts of every request, then their forks. `finish`: near the maximum, favour sentence ends.

        Listeners receive the tokens only if there is one draft. A closed one ends its rows.
        """
        batch = self._batch(requests, options, finish)
        rows = self._batch([one for one in requests for _ in range(each)], options, finish)
        steps = max(one.left for one in requests) + 1  # one more for the end token
        sampler = None
        if options.sampling is not None:
            seeds = [(one.seed + SEED_STEP * n) % 2**63 for one in requests for n in range(each)]
            sampler = SeededSampler(seeds, steps, **options.sampling)
        scores: TokenScores | None = None
        owners = [n for n in range(len(requests)) for _ in range(each)]  # the request of each row
        if options.one_by_one:
            texts, record = self._steps(batch, rows, options, steps, finish, sampler)
            scores = record.token_scores
            owners += [owners[fork.origin] for fork in record.forks]
            rows = self._batch([requests[n] for n in owners], options, finish)
        else:
            texts, scores = self._search(batch, rows, options, steps, finish, sampler)
        scores = self._judged(rows, owners, options, texts, scores)
        made = _drafts(texts, rows.requests, scores, batch.meter, set(self.engine.eos))
        found: Drafts = {one.place: [] for one in requests}
        for n, draft in zip(owners, made, strict=True):
            found[requests[n].place].append(draft)
        return found

    def _guard(self, rows: _Batch, options: DecodingOptions) -> LoopGuard | None:
        """Return the loop guard of the rows. A translation has none: it repeats what its source repeats."""
        if not options.guards_loops or self.engine.encoder_decoder:
            return None
        return LoopGuard(loop_tables_of(rows.meter), [one.kept.ids for one in rows.requests])

    def _steps(
        self,
        batch: _Batch,
        rows: _Batch,
        options: DecodingOptions,
        steps: int,
        finish: bool,
        sampler: SeededSampler | None,
    ) -> tuple[Texts, ChoiceRecord]:
        """Decode token by token: here, or where only the engine can carry out the options, inside its search."""
        each = len(rows.requests) // len(batch.requests)
        constraint, listeners = rows.constraint(self.engine.eos, finish), [one.listener for one in rows.requests]
        given = constraint, sampler, listeners, each == 1, self._guard(rows, options)
        if not self.engine.steps(options.engine):
            choice = TokenChoice(self.engine, *given)
            how: dict[str, Any] = {"max_new_tokens": steps, "options": options.engine}
            processors = [lambda ids, scores: only(choice(scores), scores)]
            return self.engine.search(rows.prompts, rows.lengths, processors=processors, **how).ids, choice.record
        steering = self._steering(rows, constraint)
        how = {"max_new_tokens": steps, "hidden": steering is not None}
        made = self.engine.prefill(batch.prompts, batch.lengths, options.engine, each=each, **how)
        with closing(made) as found:
            closings, starts = None, list[int]()
            if not self.engine.encoder_decoder:
                closings = Closings(constraint)
                starts = [one.start for one in rows.requests] if getattr(found, "can_fork", False) else []
            choice = TokenChoice(self.engine, *given, closings=closings, starts=starts)
            self._choose(found, steps, choice, steering)
        return choice.record.texts, choice.record

    def _steering(self, rows: _Batch, constraint: LengthConstraint | MixedConstraint) -> Steering | None:
        """Return what steers the rows to a sentence end in time; None if nothing does."""
        discriminator = self.engine.discriminator
        return Steering(self.engine, discriminator, constraint) if rows.steered and discriminator else None

    def _choose(self, found: Rows, steps: int, choice: TokenChoice, steering: Steering | None) -> None:
        """Choose a token of each row until all have ended."""

        def scores() -> Any:
            return found.scores if steering is None else steering.apply(found.scores, found.hidden)

        can_select = getattr(found, "can_select", True)
        choice(scores())
        while not choice.done and choice.record.steps < steps:
            if can_select and (changed := choice.rearranged()) is not None:
                found.select(changed)
            found.step(choice.last)
            choice(scores())

    def _search(
        self,
        batch: _Batch,
        rows: _Batch,
        options: DecodingOptions,
        steps: int,
        finish: bool,
        sampler: SeededSampler | None,
    ) -> tuple[Texts, TokenScores | None]:
        """Decode by a search that reorders rows or proposes several tokens at once, such as beam search.

        The scores of the tokens are those that the search has noted, if it has.
        """
        each = len(rows.requests) // len(batch.requests)
        if sampler is not None:  # every candidate is a row of its own
            batch, each = rows, 1
        processors: list[Processor] = [batch.constraint(self.engine.eos, finish)]
        if sampler is not None:
            processors.append(lambda ids, scores: only(sampler(scores, ids.shape[1]), scores))
        how: dict[str, Any] = {"beams": options.beams, "sequences": each, "options": options.engine}
        found = self.engine.search(batch.prompts, batch.lengths, max_new_tokens=steps, processors=processors, **how)
        return found.ids, None if found.log_probs is None else token_scores(found.log_probs)

    # ---- completeness

    def _judged(
        self, rows: _Batch, owners: list[int], options: DecodingOptions, texts: Texts, scores: TokenScores | None
    ) -> TokenScores:
        """Return the scores of the generated tokens; those of full stops and ends without length inputs if possible.

        Steering raises the scores of full stops, as a length control does. `owners`: rows with the same number have the
        same prompt.
        """
        engine = self.engine
        if scores is None:
            scores = score_tokens(engine, rows.prompts, texts, rows.lengths)
        judges = rows.lengths is not None and can_judge_without_length(engine, rows.meter.unit.name)
        if judges or rows.steered:
            scores = self._without_length(rows, owners, options, texts, scores)
        if engine.encoder_decoder:
            return without_bent_words(scores, rows.meter.vocabulary.inside_words(np.array(texts)))
        return self._with_line_ends(rows, texts, scores)

    def _with_line_ends(self, rows: _Batch, texts: Texts, scores: TokenScores) -> TokenScores:
        """Return the scores, where the end of a line ends a text that stops in a list item or a signature, if likely.

        After a signature, the end of the text may be likely instead: the scores of a fork do not have its own end.
        """
        newline, ends = token_costs_of(rows.meter, True).newline, set(self.engine.eos)
        if newline is None:
            return scores
        last: dict[int, int] = {}  # for each such row: its number of tokens
        signed = set[int]()
        for row, (new, request) in enumerate(zip(texts, rows.requests, strict=True)):
            end = next((i for i, token in enumerate(new) if token in ends), len(new))
            text = spelled(rows.meter, [*request.kept.ids, *new[:end]])[0].rstrip()
            if end < len(new) and may_end_line(text) and not finished(text):
                last[row] = end
                if is_signed(text):
                    signed.add(row)
        if not last:
            return scores
        read = [[*texts[row][:end], newline] for row, end in last.items()]  # the last score is that of the new line
        lengths = None if rows.lengths is None else neutral_lengths(self.engine, rows.lengths.select(list(last)))
        own = score_tokens(self.engine, [rows.prompts[row] for row in last], read, lengths)
        end_ratio = scores.end_ratio.copy()
        for n, (row, end) in enumerate(last.items()):
            if (likely := float(own.score[n, end])) >= LIKELY_END:
                end_ratio[row, end] = max(end_ratio[row, end], np.exp(likely))
            if row in signed and own.end_ratio[n, end] >= math.exp(LIKELY_END):
                end_ratio[row, end] = max(end_ratio[row, end], own.end_ratio[n, end])
        return replace(scores, end_ratio=end_ratio)

    def _without_length(
        self, rows: _Batch, owners: list[int], options: DecodingOptions, texts: Texts, scores: TokenScores
    ) -> TokenScores:
        """Return the scores, those of full stops and ends from a pass without length inputs."""
        engine = self.engine
        # A model whose hidden states depend on the length inputs reads the prompt again.
        if engine.plain_without_length or rows.lengths is None:
            own = self._plain_scores(rows, owners, options, texts)
        else:
            own = score_tokens(engine, rows.prompts, texts, neutral_lengths(engine, rows.lengths))
        scores = judged_without_length(scores, own, self._full_stops(rows, texts))
        if engine.plain_without_length or engine.encoder_decoder:
            return scores
        # The end token of such a model depends on the length, so it does not show that the text is complete.
        return replace(scores, end_ratio=np.zeros_like(scores.end_ratio))

    def _plain_scores(self, rows: _Batch, owners: list[int], options: DecodingOptions, texts: Texts) -> TokenScores:
        """Return the scores of the texts without length inputs. Rows with the same prompt share its KV cache."""
        engine, prompts = self.engine, rows.prompts
        together: dict[int, list[list[int]]] = {}  # by their number, the rows of each owner
        for n in dict.fromkeys(owners):
            own = [row for row, owner in enumerate(owners) if owner == n]
            together.setdefault(len(own), []).append(own)
        found = np.zeros((3, len(texts), len(texts[0])), np.float32)
        for each, groups in together.items():
            cache = engine.prompt_cache([prompts[own[0]] for own in groups], each, options.engine)
            some = [row for own in groups for row in own]
            scored = score_tokens(engine, [prompts[row] for row in some], [texts[row] for row in some], None, cache)
            found[:, some] = scored.agreement, scored.end_ratio, scored.score
        return TokenScores(*found)

    def stream_judge(self, request: Request, options: DecodingOptions) -> Judge:
        """Return a function that computes the final agreement of the tokens so far, as `drafts` does at the end."""
        engine, batch = self.engine, self._batch([request], options)
        if engine.encoder_decoder or (batch.lengths is None and not batch.steered):
            return lambda ids, agreed: agreed
        lengths = None if batch.lengths is None else neutral_lengths(engine, batch.lengths)

        @cache
        def prompt() -> Any:  # read when the first sentence ends
            return engine.prompt_cache(batch.prompts, 1, options.engine) if lengths is None else None

        def judge(ids: list[int], agreed: list[float]) -> list[float]:
            own = score_tokens(engine, batch.prompts, [ids], lengths, prompt())
            seen = replace(own, agreement=np.array([agreed]))
            return judged_without_length(seen, own, self._full_stops(batch, [ids])).agreement[0].tolist()

        return judge

    def _full_stops(self, batch: _Batch, texts: Texts) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = batch.constraint(self.engine.eos, True).full_stops(np.array(texts))
        return found


def _drafts(texts: Texts, rows: list[Request], scores: TokenScores, meter: Meter, eos: set[int]) -> list[Draft]:
    drafts = []
    columns = zip(texts, rows, *(t.tolist() for t in vars(scores).values()), strict=True)
    for new, row, agreed, end_ratio, own_scores in columns:
        end = next((i for i, token in enumerate(new) if token in eos), len(new))
        kept, ids = row.kept, [*row.kept.ids, *new[:end]]
        text, reach = spelled(meter, ids)
        score = (len(kept.ids) * kept.score + sum(own_scores[:end])) / max(len(ids), 1)
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
