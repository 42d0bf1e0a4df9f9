"""`EndpointWriter`: the interface of `Writer` for a model behind an API. Several texts are written at once.

An error in one row does not affect the others, unless it would be the same for all: a refused key, an unknown model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..generation.generator import Written
from ..length.budget import Budget, as_budget, check_text, with_budgets
from .calls import Ask, S, Searched, search_all
from .client import Endpoint
from .fitting import Fitting, Found

MAX_CALLS = 8  # of one text
CONCURRENCY = 8  # texts at once
_RESERVED = ("model", "messages", "n", "stream", "max_tokens", "max_completion_tokens", "num_beams")


@dataclass(frozen=True)
class EndpointText(Written):
    """A text from an endpoint. `tokens`: those of all calls, as the endpoint counts them. `note`: what went wrong."""

    calls: int = 0
    note: str | None = None

    def as_json(self) -> dict[str, Any]:
        fields = super().as_json()
        for other in fields["candidates"]:
            for of_row in ("calls", "note", "tokens"):
                del other[of_row]
        return {name: value for name, value in fields.items() if name != "note" or value}


class EndpointWriter:
    """Writes texts within budgets with a model behind an API. Made by `lengthwise.load("openai:NAME@URL")`.

    `max_calls`: HTTP requests for one text at most, repeated ones included. `concurrency`: texts at once.
    """

    def __init__(self, endpoint: Endpoint, *, max_calls: int = MAX_CALLS, concurrency: int = CONCURRENCY) -> None:
        for name, number in (("max_calls", max_calls), ("concurrency", concurrency)):
            if number < 1:
                raise ValueError(f"{name} must be at least 1; got {number}")
        self.endpoint, self.max_calls, self.concurrency = endpoint, max_calls, concurrency
        self.batch_size = 4 * concurrency

    @property
    def name(self) -> str:
        return f"openai:{self.endpoint.model}@{self.endpoint.url}"

    def write(
        self,
        texts: str | Sequence[str],
        budgets: str | Budget | Sequence[str | Budget],
        *,
        system: str | None = None,
        candidates: int = 1,
        seed: int | None = None,
        progress: Callable[[int], None] | None = None,
        **generation: Any,
    ) -> list[EndpointText]:
        """Answer each text within its budget; see `Writer.write`. If a text cannot be written, its `error` is set.

        `generation` goes to the endpoint (`temperature`, `top_p`, ...).
        """
        if candidates < 1:
            raise ValueError(f"candidates must be at least 1; got {candidates}")
        if taken := [name for name in _RESERVED if name in generation]:
            raise ValueError(f"{taken[0]} is set by the budget, or does not exist behind an API; it cannot be given")
        prompts, asked = with_budgets(texts, budgets)

        def begin(text: str, budget: str | Budget, ask: Ask) -> Fitting:
            return Fitting(text, check_row(text, budget), system, ask, candidates)

        found = self.search(
            [partial(begin, text, budget) for text, budget in zip(prompts, asked, strict=True)],
            progress=progress,
            seed=seed,
            **generation,
        )
        return [self._text(one, budget) for one, budget in zip(found, asked, strict=True)]

    def search(
        self, begin: Sequence[Callable[[Ask], S]], progress: Callable[[int], None] | None = None, **options: Any
    ) -> list[Searched[S]]:
        """Run searches with this model, several at once; `options` go to the endpoint."""
        limits = {"max_calls": self.max_calls, "concurrency": self.concurrency}
        return search_all(self.endpoint, begin, **limits, options=options, progress=progress)

    def _text(self, one: Searched[Fitting], budget: str | Budget) -> EndpointText:
        if one.search is not None:
            return text_record(one.search, self.name, one.calls, one.tokens, one.note)
        return EndpointText.failed(one.note or "", budget, self.name, calls=one.calls)


def text_record(fitting: Fitting, model: str, calls: int, tokens: int, note: str | None = None) -> EndpointText:
    """Return the best text that was found, with its properties; if it does not fit, its note says so."""
    budget, best = fitting.budget, fitting.best
    known: dict[str, Any] = {"unit": budget.unit, "budget": str(budget), "model": model}
    if best is None:
        error = note or f"{model} sent no text in {calls} calls"
        return EndpointText.failed(error, budget, model, calls=calls)
    if note is None and not best.fits:
        note = f"nothing that fits was found in {calls} calls; this is the nearest"
    others = [EndpointText(**_fields(other), **known) for other in fitting.others]
    fields = _fields(best) | {"tokens": tokens}
    return EndpointText(**fields, **known, candidates=list(others), calls=calls, note=note)


def check_row(text: str, budget: str | Budget) -> Budget:
    """Return the budget in counts; a `ValueError` or `TypeError` says what is wrong with the row."""
    check_text(text)
    if not text.strip():
        raise ValueError("the text is empty; give a prompt")
    if (budget := as_budget(budget)).unit == "tokens":
        raise ValueError("an endpoint's tokens cannot be counted here; give the length in words or chars")
    return budget.resolve(text)


def _fields(found: Found) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("text", "length", "tokens", "fits", "complete")}
