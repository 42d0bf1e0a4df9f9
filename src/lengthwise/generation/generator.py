"""The writer: `Writer.write` and `Writer.stream`, which turn prompts and budgets into finished texts that fit.

This file combines requests (prompts, limits, batches), decoding (engine and hard budget), endings, repair, ranking and
streaming. An error in one row does not affect the others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Self

from ..engines.base import Engine
from ..length.addresses import final_address
from ..length.budget import Budget, with_budgets
from ..length.meter import Meter
from ..protocols import Tokenizer
from .decoding import Decoder
from .endings import Draft, Ending, Measure, best_ending, without_odd_mark
from .options import TEXT_SEED_STEP, DecodingOptions, decoding_options
from .repair import Drafts, repair
from .requests import Request, Requests
from .streaming import SentenceStreamer, stream


@dataclass(frozen=True)
class Written:
    """A text and its properties. `complete`: it ends as a finished sentence, or where the model chose to stop."""

    text: str
    length: int
    unit: str
    budget: str
    fits: bool
    complete: bool
    model: str
    tokens: int
    candidates: list["Written"] = field(default_factory=list)
    error: str | None = None
    ids: tuple[int, ...] = field(default=(), repr=False)  # the tokens, where a writer has generated the text

    @classmethod
    def failed(cls, error: str, budget: str | Budget | None, model: str, **others: Any) -> Self:
        """Return the record of a text that could not be generated. `others`: fields of the subclass."""
        unit = budget.unit if isinstance(budget, Budget) else ""
        return cls("", 0, unit, str(budget or ""), False, False, model, 0, error=error, **others)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as plain values, without `ids`; `error` only where there is one."""
        fields = asdict(self)
        del fields["ids"]
        if self.error is None:
            del fields["error"]
        for other in fields["candidates"]:
            for known in ("unit", "budget", "model", "candidates", "error", "ids"):
                other.pop(known, None)
        return fields


Preference = Callable[[Ending, Draft, Budget], Any]  # greater is better


def nearest_to_target(ending: Ending, draft: Draft, budget: Budget) -> Any:
    """Prefer a text that fits, then a complete one, then the nearest to the target, then the most probable."""
    return *ending.rank(budget), draft.score


class Writer:
    """Generates texts within budgets. Made by `lengthwise.load`, or from any transformers model and its tokenizer.

    `model` may also be an engine, without a tokenizer. `batch_size`: texts that are decoded together, by default
    as many as the engine's device has room for. `prefer` ranks the drafts of a text.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer | None = None,
        *,
        name: str = "",
        batch_size: int | None = None,
        prefer: Preference = nearest_to_target,
    ) -> None:
        if tokenizer is None and not hasattr(model, "prefill"):
            raise TypeError(f"a writer takes an engine, or a model and its tokenizer; got {type(model).__name__} alone")
        self.engine: Engine = model
        if tokenizer is not None:
            from ..engines.transformers import TransformersEngine  # takes seconds

            self.engine = TransformersEngine(model, tokenizer, name)
        self.batch_size, self.prefer = batch_size or self.engine.batch_size, prefer
        self.requests = Requests(self.engine)
        self.decoder = Decoder(self.engine, self.requests)

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def model(self) -> Any:
        """The model of the engine, where it has one in this process."""
        return getattr(self.engine, "model", None)

    @property
    def tokenizer(self) -> Any:
        return self.engine.tokenizer

    def meter(self, unit: str) -> Meter:
        """Return the meter that counts `unit` for this model's tokenizer."""
        return self.requests.meter(unit)

    # ---- public methods

    def write(
        self,
        texts: str | Sequence[str],
        budgets: str | Budget | Sequence[str | Budget],
        *,
        system: str | None = None,
        candidates: int = 1,
        seed: int | None = None,
        finish: bool = True,
        progress: Callable[[int], None] | None = None,
        **generation: Any,
    ) -> list[Written]:
        """Answer (or translate, with an encoder-decoder) each text within its budget.

        `budgets`: one for all, or one per text. `candidates`: write several at once and keep the best. `finish=False`
        keeps the hard limits but does not steer towards a sentence end. `generation` goes to the engine (`temperature`,
        `num_beams`, `repetition_penalty`, ...). If a text cannot be generated, its `error` is set.
        """
        options = decoding_options(candidates, seed, generation)
        one_batch = partial(self.write_batch, candidates=candidates, finish=finish, options=options)

        def make(place: int, text: str, budget: str | Budget) -> Request:
            return replace(self.requests.make(place, text, budget, system), seed=options.seed + TEXT_SEED_STEP * place)

        return self.rows(texts, budgets, make, one_batch, max(candidates, options.beams), progress)

    def rows(
        self,
        texts: str | Sequence[str],
        budgets: str | Budget | Sequence[str | Budget],
        make: Callable[[int, str, str | Budget], Request],
        write: Callable[[list[Request]], Mapping[int, Any]],
        each: int,
        progress: Callable[[int], None] | None = None,
    ) -> list[Any]:
        """Return a result for each text: `make` requests, `write` them in batches, and set `error` where that fails."""
        texts, asked = with_budgets(texts, budgets)
        results: dict[int, Any] = {}
        requests: list[Request] = []
        for place, (text, budget) in enumerate(zip(texts, asked, strict=True)):
            try:
                requests.append(make(place, text, budget))
            except (ValueError, TypeError) as error:
                results[place] = Written.failed(str(error), budget, self.name)
        if progress and results:
            progress(len(results))
        for batch in self.requests.batches(requests, each, self.batch_size):
            results.update(write(batch))
            if progress:
                progress(len(batch))
        return [results[place] for place in range(len(texts))]

    def stream(
        self,
        text: str,
        budget: str | Budget,
        *,
        system: str | None = None,
        seed: int | None = None,
        **generation: Any,
    ) -> Iterator[str]:
        """Yield the text sentence by sentence, as soon as a sentence is final.

        Yielded text never changes; joined, the parts are the text that `write` would return.
        """
        options = decoding_options(1, seed, generation)
        request = replace(self.requests.make(0, text, budget, system), seed=options.seed)
        if options.beams > 1:
            raise ValueError("beams are compared at the end, so nothing can be streamed; leave num_beams at 1")

        def write(streamer: SentenceStreamer) -> str:
            return self.write_batch([replace(request, listener=streamer)], 1, options)[0].text

        yield from stream(write, partial(self.streamer, request, options))

    def streamer(self, request: Request, options: DecodingOptions, release: Callable[[str], None]) -> SentenceStreamer:
        """Return a listener that hands the sentences of this request to `release`, as soon as each is final."""
        unit = request.budget.unit
        judge = self.decoder.stream_judge(request, options)
        return SentenceStreamer(self.meter(unit), request.budget, self._measure(unit), judge, release)

    # ---- a batch

    def write_batch(
        self, requests: list[Request], candidates: int, options: DecodingOptions, finish: bool = True
    ) -> dict[int, Written]:
        """Return the texts of requests that are decoded together, by the place of each request."""
        drafts = self.decoder.drafts(requests, candidates, options, finish=finish)
        if finish and options.one_by_one and not self.engine.encoder_decoder:
            self._repair(requests, drafts, options)
        return {one.place: self._best(one, drafts[one.place], candidates) for one in requests}

    def _repair(self, requests: list[Request], drafts: Drafts, options: DecodingOptions) -> None:
        """Add drafts with other endings for requests without a complete text."""
        repair(
            requests,
            drafts,
            options,
            best=lambda request, found: self._ranked(request, found)[0],
            decode=self.decoder.drafts,
            batches=lambda some, each: self.requests.batches(some, each, self.batch_size),
            pieces=self.meter(requests[0].budget.unit).pieces,
            batch_size=self.batch_size,
        )

    # ---- the best of the drafts

    def _measure(self, unit: str) -> Measure:
        meter = self.meter(unit)
        return lambda text, tokens: tokens if meter.unit.name == "tokens" else meter.unit.measure(text)

    def _ranked(self, request: Request, drafts: list[Draft]) -> list[tuple[Ending, Draft]]:
        """Return the drafts with their best endings, the best first."""
        budget, measure = request.budget, self._measure(request.budget.unit)
        last = final_address(request.source)
        found = [(best_ending(draft, budget, measure, request.shown, last), draft) for draft in drafts]
        return sorted(found, key=lambda one: self.prefer(one[0], one[1], budget), reverse=True)

    def _best(self, request: Request, drafts: list[Draft], candidates: int) -> Written:
        """Return the best draft; its `candidates` are the other first drafts, best first."""
        ending, best = self._ranked(request, drafts)[0]
        ending = without_odd_mark(ending, best, request.budget, self._measure(request.budget.unit))
        first = self._ranked(request, drafts[:candidates])  # repaired drafts follow them
        others = [ending for ending, draft in first if draft is not best][: candidates - 1]
        known: dict[str, Any] = {"unit": request.budget.unit, "budget": str(request.budget), "model": self.name}
        rest = [Written(**vars(other), **known) for other in others]
        return Written(**vars(ending), **known, candidates=rest, ids=tuple(best.ids[: ending.tokens]))
