"""Calls: search for several texts at once with a model behind an API; the calls of each text are limited."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from ..generation.options import TEXT_SEED_STEP
from .client import Answer, Endpoint, EndpointError, Reply

MAX_WAIT = 60.0  # seconds: what Retry-After may ask for
RETRIES = 3  # failed calls in a row, before a text is given up

Messages = list[dict[str, str]]
Ask = Callable[[Messages, int, int | None], list[Reply]]  # (messages, replies, max_tokens) -> replies


class Search(Protocol):
    """The search for one text, which makes calls until the text is good or no call is left."""

    def run(self, calls_left: Callable[[], bool]) -> None: ...


S = TypeVar("S", bound=Search)
T = TypeVar("T")


@dataclass(frozen=True)
class Searched(Generic[S]):
    """A search that has ended. `search` is None if it could not begin. `note`: the fault that ended it.

    `down`: this fault is the same for all texts, such as a refused key or no connection.
    """

    search: S | None
    calls: int
    tokens: int
    note: str | None
    down: bool = False


def search_all(
    endpoint: Endpoint,
    begin: Sequence[Callable[[Ask], S]],
    *,
    max_calls: int,
    concurrency: int,
    options: dict[str, Any],
    progress: Callable[[int], None] | None = None,
) -> list[Searched[S]]:
    """Run the searches, `concurrency` at once. An error ends one search, or all if it would be the same for all.

    `options` go to every call; text n has the seed `options["seed"]` + n.
    """
    broken: list[str] = []  # errors that are the same for all

    def one(place: int) -> Searched[S]:
        seed = options.get("seed")
        calls = _Calls(endpoint, max_calls, {**options, "seed": None if seed is None else seed + place})
        search, note, down = None, None, False
        try:
            search = begin[place](calls.ask)
            if broken:
                raise EndpointError(broken[0], fatal=True)
            search.run(lambda: calls.left > 0)
        except EndpointError as fault:
            note, down = str(fault), fault.down
            if fault.fatal:
                broken.append(note)
        except (ValueError, TypeError) as fault:
            note = str(fault)
        return Searched(search, calls.made, calls.tokens, note, down)

    results: dict[int, Searched[S]] = {}
    for place, found in _in_threads(one, len(begin), concurrency):
        results[place] = found
        if progress:
            progress(1)
    return [results[place] for place in range(len(begin))]


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


def _in_threads(work: Callable[[int], T], count: int, threads: int) -> Iterator[tuple[int, T]]:
    """Yield each number below `count` with its result, as soon as it is there.

    Daemon threads, not a pool of `concurrent.futures`: after Ctrl-C that would wait for the calls that are under way.
    """
    places: SimpleQueue[int] = SimpleQueue()
    done: SimpleQueue[tuple[int, T | BaseException]] = SimpleQueue()
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
