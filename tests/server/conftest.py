"""A server with a model that says what it was asked: in this process, or in a thread on a port of 127.0.0.1."""

import threading

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

from echo_engine import EchoEngine
from lengthwise import Writer
from lengthwise.server.app import make_app
from lengthwise.server.limits import Limits
from lengthwise.server.running import make_server
from lengthwise.server.service import Service


@pytest.fixture
def engine(byte_bpe):
    return EchoEngine(byte_bpe)


@pytest.fixture
def make_service(engine):
    """A function that makes a service with these limits; it is closed after the test."""
    made = []

    def make(**limits):
        made.append(Service(Writer(engine), limits=Limits(**limits)))
        return made[-1]

    yield make
    engine.gate.set()
    for service in made:
        service.close()


@pytest.fixture
def service(make_service):
    return make_service()


class Running:
    """A server in a thread. `url` is its address."""

    def __init__(self, service, keys=()):
        self.service, self.ready = service, threading.Event()
        self.server = make_server(make_app(service, keys), service, "127.0.0.1", 0, self._started)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        assert self.ready.wait(30)

    def _started(self, url):
        self.url = url
        self.ready.set()

    @property
    def address(self):
        host, _, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)

    def stop(self):
        self.server.stop()
        self.thread.join(30)
        assert not self.thread.is_alive()


@pytest.fixture
def serve():
    """A function that starts a server for a service."""
    made = []

    def start(service, keys=()):
        made.append(Running(service, keys))
        return made[-1]

    yield start
    for one in made:
        if one.thread.is_alive():
            one.stop()
