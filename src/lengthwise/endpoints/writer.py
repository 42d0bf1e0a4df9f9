"""`EndpointWriter`: the interface of `Writer` for a model behind an API. Several texts are written at once.

An error in one row does not affect the others, unless it would be the same for all: a refused key, an unknown model.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from ..generation.generator import Written
from ..generation.options import TEXT_SEED_STEP
from ..length.budget import Budget, as_budget, with_budgets
from .client import Answer, Endpoint, EndpointError, Reply
from .fitting import Fitting, Found, Messages

MAX_CALLS = 8  # of one text
CONCURRENCY = 8  # texts at once
MAX_WAIT = 60.0  # seconds: what Retry-After may ask for
RETRIES = 3  # failed calls in a row, before a text is given up
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
        broken: list[str] = []  # errors that are the same for all rows

        def one(place: int) -> EndpointText:
            calls = _Calls(
                self.endpoint, self.max_calls, {**generation, "seed": None if seed is None else seed + place}
            )
            return self._write(prompts[place], asked[place], system, candidates, calls, broken)

        results: dict[int, EndpointText] = {}
        for place, written in _in_threads(one, len(prompts), self.concurrency):
            results[place] = written
            if progress:
                progress(1)
        return [results[place] for place in range(len(prompts))]

    def _write(
        self, text: str, budget: str | Budget, system: str | None, candidates: int, calls: "_Calls", broken: list[str]
    ) -> EndpointText:
        unit = budget.unit if isinstance(budget, Budget) else ""
        note, error = None, None
        fitting: Fitting | None = None
        try:
            known = check_row(text, budget)
            unit, budget = known.unit, known
            if broken:
                raise EndpointError(broken[0])
            fitting = Fitting(text, known, system, calls.ask, candidates)
            fitting.run(lambda: calls.left > 0)
        except EndpointError as fault:
            note = str(fault)
            if fault.fatal:
                broken.append(note)
        except (ValueError, TypeError) as fault:
            error = str(fault)
        if fitting is None:
            error = error or note
            return EndpointText("", 0, unit, str(budget), False, False, self.name, 0, calls=calls.made, error=error)
        return text_record(fitting, self.name, calls.made, calls.tokens, note or error)


def text_record(fitting: Fitting, model: str, calls: int, tokens: int, note: str | None = None) -> EndpointText:
    """Return the best text that was found, with its properties; if it does not fit, its note says so."""
    budget, best = fitting.budget, fitting.best
    known: dict[str, Any] = {"unit": budget.unit, "budget": str(budget), "model": model}
    if best is None:
        error = note or f"{model} sent no text in {calls} calls"
        return EndpointText("", 0, fits=False, complete=False, tokens=0, **known, calls=calls, error=error)
    if note is None and not best.fits:
        note = f"nothing that fits was found in {calls} calls; this is the nearest"
    others = [EndpointText(**_fields(other), **known) for other in fitting.others]
    fields = _fields(best) | {"tokens": tokens}
    return EndpointText(**fields, **known, candidates=list(others), calls=calls, note=note)


def check_row(text: str, budget: str | Budget) -> Budget:
    """Return the budget in counts; a `ValueError` or `TypeError` says what is wrong with the row."""
    if not isinstance(text, str):
        raise TypeError(f"a text is a string; got {type(text).__name__}")
    if not text.strip():
        raise ValueError("the text is empty; give a prompt")
    text.encode()  # raises a ValueError for half a surrogate pair
    if (budget := as_budget(budget)).unit == "tokens":
        raise ValueError("an endpoint's tokens cannot be counted here; give the length in words or chars")
    return budget.resolve(text)


def _fields(found: Found) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("text", "length", "tokens", "fits", "complete")}


class _Calls:
    """The calls of one text: made, counted, and repeated where that can help."""

    def __init__(self, endpoint: Endpoint, limit: int, options: dict[str, Any]) -> None:
        self.endpoint, self.limit, self.options = endpoint, limit, options
        self.made = self.tokens = 0

    @property
    def left(self) -> int:
        return self.limit - self.made

    def ask(self, messages: Messages, n: int, max_tokens: int | None) -> list[Reply]:
        """Return the replies to `messages`. A failed call is repeated while calls are left."""
        # Greedy replies are all equal. Each call has a seed of its own, or a repeated one would repeat its reply.
        n = 1 if self.options.get("temperature") == 0 else n
        options = self.options | {"n": n if n > 1 else None, "max_tokens": max_tokens}
        failed = 0
        while True:
            if options["seed"] is not None:
                options["seed"] = self.options["seed"] + TEXT_SEED_STEP * self.made
            self.made += 1
            try:
                answer: Answer = self.endpoint.ask(messages, **options)
            except EndpointError as error:
                failed += not error.changed
                if error.wait is None or error.wait > MAX_WAIT or not self.left or failed == RETRIES:
                    raise
                time.sleep(min(error.wait * 2 ** (failed - 1), MAX_WAIT))
                continue
            self.tokens += answer.tokens
            return answer.replies


def _in_threads(work: Callable[[int], EndpointText], count: int, threads: int) -> Iterator[tuple[int, EndpointText]]:
    """Yield each number below `count` with its result, as soon as it is there.

    Daemon threads, not a pool of `concurrent.futures`: after Ctrl-C that would wait for the calls that are under way.
    """
    places: SimpleQueue[int] = SimpleQueue()
    done: SimpleQueue[tuple[int, EndpointText | BaseException]] = SimpleQueue()
    for place in range(count):
        places.put(place)

    def run() -> None:
        with suppress(Empty):
            while True:
                place = places.get_nowait()
                try:
                    done.put((place, work(place)))
                except BaseException as error:  # raised in the caller's thread
                    done.put((place, error))

    for _ in range(min(threads, count)):
        threading.Thread(target=run, daemon=True).start()
    try:
        for _ in range(count):
            place, result = done.get()
            if isinstance(result, BaseException):
                raise result
            yield place, result
    finally:  # no further row begins
        with suppress(Empty):
            while True:
                places.get_nowait()
