"""Metrics for Prometheus: requests, seconds, the queue, batches, tokens and how texts came out."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .writing import Text

_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        made: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("lengthwise_requests", "Requests, by route and status.", ["route", "status"], **made)
        self.seconds = Histogram(
            "lengthwise_request_seconds", "Seconds until a reply was complete.", ["route"], buckets=_SECONDS, **made
        )
        self.tokens = Counter("lengthwise_tokens", "Tokens read (prompt) and written (text).", ["kind"], **made)
        self.texts = Counter("lengthwise_texts", "Texts written.", ["fits", "complete"], **made)
        self.dropped = Counter("lengthwise_dropped", "Texts whose client went away.", **made)
        self.batches = Histogram(
            "lengthwise_batch_rows",
            "Rows that run when a batch, or a text that joins one, begins.",
            buckets=(1, 2, 4, 8, 16, 32, 64),
            **made,
        )
        self.waiting = Gauge("lengthwise_waiting", "Texts in the queue.", **made)
        self.running = Gauge("lengthwise_running", "Texts that are being written.", **made)

    def count(self, texts: Sequence[Text], n: int) -> None:
        """Count written texts, `n` to each prompt."""
        self.tokens.labels("prompt").inc(sum(text.prompt_tokens for text in texts[::n]))
        self.tokens.labels("text").inc(sum(text.tokens for text in texts))
        for text in texts:
            self.texts.labels(str(text.fits).lower(), str(text.complete).lower()).inc()

    def page(self) -> tuple[bytes, str]:
        """Return the text for Prometheus and its content type."""
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def collect(self) -> list[Any]:
        """Return the metrics as values that can be sent to another process."""
        return list(self.registry.collect())


def joined_page(replicas: Mapping[str, list[Any]]) -> tuple[bytes, str]:
    """Return one page with the metrics of all replicas; the label `replica` has the name of each."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

    class Joined(Collector):
        def collect(self) -> Iterator[Metric]:
            for same in zip(*replicas.values(), strict=True):
                metric = Metric(same[0].name, same[0].documentation, same[0].type)
                for name, one in zip(replicas, same, strict=True):
                    metric.samples += [s._replace(labels={**s.labels, "replica": name}) for s in one.samples]
                yield metric

    registry = CollectorRegistry()
    registry.register(Joined())
    return generate_latest(registry), CONTENT_TYPE_LATEST


class RequestMetrics:
    """ASGI middleware that counts requests and their seconds, and gives each to `log`."""

    def __init__(self, app: Any, metrics: Metrics, log: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.app, self.metrics, self.log = app, metrics, log

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.monotonic(), 500

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            seconds = time.monotonic() - start
            route = getattr(scope.get("route"), "path", "other")  # not the path, which a client can invent
            self.metrics.requests.labels(route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(seconds)
            if self.log is not None:
                line = {"method": scope["method"], "route": route, "status": status, "seconds": round(seconds, 3)}
                self.log(line)
