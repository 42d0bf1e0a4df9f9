"""Service: the models of a server, each with a worker that runs its batches."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..generation.generator import Writer
from ..length.budget import Budget
from ..shortening.shortener import Shortener
from .batching import Closed, Job, QueueFull, Worker
from .errors import ApiError
from .limits import Limits
from .metrics import Metrics
from .openai_shapes import ShortenRequest, TranslateRequest
from .writing import Row, WriteOptions, Writing

if TYPE_CHECKING:
    from ..translation import Translator

_JOIN = 1.0  # seconds that all workers together have for their last step; their threads do not hold up the process
Line = tuple[str, Budget | None]


class Service:
    """Writes and shortens with `writer`, and translates with `translators`, by their languages.

    `rewriters`: load the models that were trained for forms of short texts, when the first such text is asked for.
    """

    def __init__(
        self,
        writer: Writer,
        translators: "Mapping[tuple[str, str], Translator] | None" = None,
        limits: Limits | None = None,
        rewriters: Mapping[str, Callable[[], Writer]] | None = None,
    ) -> None:
        self.writer, self.translators, self.limits = writer, dict(translators or {}), limits or Limits()
        self.metrics = Metrics()
        self.writing = Writing(writer, self.limits)
        self.shortener = None if writer.engine.encoder_decoder else Shortener(writer)
        self._rewriters, self._loading = dict(rewriters or {}), threading.Lock()
        self._shorteners: dict[Callable[[], Writer], Shortener] = {}
        self.worker = self._worker(writer.name, joins=writer.engine.share())
        self._workers = {pair: self._worker(one.name) for pair, one in self.translators.items()}
        self.draining = False

    def _worker(self, name: str, joins: bool = False) -> Worker:
        return Worker(name, self.limits.batch, self.limits.queue, self.metrics.batches.observe, joins)

    @property
    def workers(self) -> list[Worker]:
        return [self.worker, *self._workers.values()]

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys([self.writer.name, *(one.name for one in self.translators.values())]))

    def check_model(self, name: str) -> None:
        """Raise an error if a request names a model that does not write here."""
        if name not in ("", self.writer.name):
            message = f"the model {name!r} is not served here; the model is {self.writer.name!r}"
            raise ApiError(404, message, param="model", code="model_not_found")

    # ---- jobs

    def write(self, options: WriteOptions, rows: list[Row]) -> list[Job]:
        """Queue these rows and return their jobs; each result is a `Text`."""
        return self._queue(self.worker, [Job(self.writing.write, options, row, options.candidates) for row in rows])

    def shorten(self, asked: ShortenRequest) -> list[Job]:
        """Queue the texts and return their jobs; each result is a `Shortened`."""
        self.check_model(asked.model)
        self._check(asked.text)
        self.limits.check_count("candidates", asked.candidates, self.limits.candidates)
        if self.shortener is None:
            raise ApiError(404, f"{self.writer.name} translates; start the server with a causal model to shorten")
        options = asked.form, asked.candidates, asked.faithful
        lines = [(text, self._budget(text, asked.budget())) for text in asked.text]
        return self._queue(self.worker, [Job(self._shorten, options, line, asked.candidates) for line in lines])

    def translate(self, asked: TranslateRequest) -> list[Job]:
        """Queue the lines and return their jobs; each result is a `Translation`."""
        self._check(asked.text)
        pair = asked.from_, asked.to
        if pair not in self.translators:
            known = ", ".join(f"{source} to {target}" for source, target in self.translators)
            hint = f"it translates {known}" if known else "start it with --translate-to"
            message = f"this server does not translate from {pair[0]!r} to {pair[1]!r}; {hint}"
            raise ApiError(404, message, param="to", code="model_not_found")
        if asked.model not in ("", self.translators[pair].name):
            raise ApiError(404, f"the model {asked.model!r} is not served here", param="model", code="model_not_found")
        lines = [(text, self._budget(text, asked.budget())) for text in asked.text]
        return self._queue(self._workers[pair], [Job(self._translate, pair, line) for line in lines])

    def _check(self, texts: Sequence[str]) -> None:
        self.limits.check_count("text", len(texts), self.limits.texts)
        for text in texts:
            self.limits.check_text(text, "text")

    def _budget(self, text: str, budget: Budget | None) -> Budget | None:
        """Return the budget; raise an error if it is too long for this text."""
        if budget is None or not text.strip():
            return budget
        try:
            known = budget.resolve(text, self.writer.tokenizer)
        except ValueError as error:
            raise ApiError(400, str(error), param="length", code="invalid_length") from None
        self.limits.check_budget(known)
        return budget

    def _queue(self, worker: Worker, jobs: list[Job]) -> list[Job]:
        if len(jobs) > self.limits.queue:
            raise ApiError(
                400, f"a request has {len(jobs)} texts; the queue has room for {self.limits.queue} (--queue)"
            )
        try:
            worker.submit(jobs)
        except QueueFull as error:
            raise ApiError(429, str(error), code="queue_full", retry_after=error.seconds) from None
        except Closed as error:
            raise ApiError(503, str(error), code="shutting_down", retry_after=5) from None
        return jobs

    # ---- batches, in the thread of a worker

    def _shorten(self, options: tuple[Any, int, bool], lines: list[Line]) -> Iterator[tuple[int, Any]]:
        form, candidates, faithful = options
        headline_by_rules = form == "headline" and faithful
        shortener = self.shortener if headline_by_rules else self._shortener(form)
        assert shortener is not None
        texts, budgets = [text for text, _ in lines], [budget or "" for _, budget in lines]
        return enumerate(shortener.shorten(texts, budgets, form=form, candidates=candidates, faithful=faithful))

    def _shortener(self, form: str) -> Shortener | None:
        """Return the shortener for this form, whose model is loaded once for all forms that it writes."""
        load = self._rewriters.get(form)
        if load is None:
            return self.shortener
        with self._loading:  # several threads may ask for the first one
            if load not in self._shorteners:
                rewriter = load()
                rewriter.engine.share()
                self._shorteners[load] = Shortener(self.writer, rewriter)
            return self._shorteners[load]

    def _translate(self, pair: tuple[str, str], lines: list[Line]) -> Iterator[tuple[int, Any]]:
        texts, budgets = [text for text, _ in lines], [budget for _, budget in lines]
        return enumerate(self.translators[pair].translate(texts, budgets))

    # ---- state

    @property
    def waiting(self) -> int:
        return sum(worker.waiting for worker in self.workers)

    @property
    def busy(self) -> bool:
        return any(worker.busy for worker in self.workers)

    def current_metrics(self) -> Metrics:
        """Return the metrics, with the present state of the queues."""
        self.metrics.waiting.set(self.waiting)
        self.metrics.running.set(sum(worker.running for worker in self.workers))
        return self.metrics

    def close(self) -> None:
        """Drop what waits, end what runs, and stop the workers."""
        for worker in self.workers:
            worker.close()
        end = time.monotonic() + _JOIN
        for worker in self.workers:
            worker.join(end - time.monotonic())
