"""Parts of a server with replicas that need no Ray: reports, metrics, draining, the port and the signals."""

import logging
import queue
import signal
import socket
import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

from lengthwise.errors import ModelNotFound
from lengthwise.server import replicas
from lengthwise.server.metrics import Metrics, joined_page
from lengthwise.server.reports import Reporter, listening
from lengthwise.server.running import free_port


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def test_reports_arrive():
    found = queue.Queue()
    with listening(lambda *report: found.put(report)) as address:
        reporter = Reporter(address)
        reporter.send("request", {"status": 200})
        assert found.get(timeout=30) == ("request", {"status": 200})
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            logging.getLogger("lengthwise.server").exception("a stream failed")
        kind, text = found.get(timeout=30)
        assert (kind, text.partition("\n")[0]) == ("log", "a stream failed")
        assert text.endswith("ZeroDivisionError")
        expected = ModelNotFound("x", "there is no x", "look for it")
        reporter.fail(expected)
        kind, error = found.get(timeout=30)
        assert (kind, type(error), error.short) == ("failed", ModelNotFound, expected.short)
        reporter.fail(Unpicklable("one", "two"))
        assert str(found.get(timeout=30)[1]) == "Unpicklable: one and two"
    logging.getLogger("lengthwise").handlers.clear()


def test_metrics_of_replicas_are_on_one_page():
    first, second = Metrics(), Metrics()
    first.requests.labels("/health", "200").inc()
    second.requests.labels("/health", "200").inc(2)
    page = joined_page({"a": first.collect(), "b": second.collect()})[0].decode()
    assert 'lengthwise_requests_total{replica="a",route="/health",status="200"} 1.0' in page
    assert 'lengthwise_requests_total{replica="b",route="/health",status="200"} 2.0' in page
    assert page.count("# TYPE lengthwise_requests_total counter") == 1
    assert 'lengthwise_waiting{replica="b"} 0.0' in page


class Handle:
    """Replicas that have requests left for some calls, or die; `calls` has what they were asked."""

    def __init__(self, *answers):
        self.answers, self.calls = list(answers), []

    def broadcast(self, method):
        self.calls.append(method)
        return SimpleNamespace(results=self._results)

    def _results(self, timeout_s):
        answer = self.answers.pop(0) if self.answers else [True]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def ray_errors(monkeypatch):
    """A module with the base class of Ray's exceptions, so that these tests run without Ray."""
    module = SimpleNamespace(RayError=type("RayError", (Exception,), {}))
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(exceptions=module))
    monkeypatch.setitem(sys.modules, "ray.exceptions", module)
    monkeypatch.setattr(replicas, "_POLL", 0)
    return module


def test_accepted_requests_are_finished(ray_errors):
    handle = Handle([True, True], ray_errors.RayError("it died"), [False, True], [False, False])
    replicas._drain(handle, grace=60)
    assert handle.calls == ["drain"] * 4


def test_requests_that_take_too_long_are_ended(ray_errors):
    handle = Handle()
    replicas._drain(handle, grace=0)
    assert handle.calls[-1] == "close"
    assert set(handle.calls[:-1]) == {"drain"}


def test_the_address():
    assert free_port("127.0.0.1", 0) > 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} of 127.0.0.1 is taken by another program"):
            free_port("127.0.0.1", port)
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1, port 0: "):  # an address of documentation
        free_port("192.0.2.1", 0)


def test_a_signal_before_it_serves_and_a_second_one_interrupt():
    with replicas._signals() as stop:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert not stop.is_set()
        stop.serving = True
        signal.raise_signal(signal.SIGTERM)
        assert stop.wait(30)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
