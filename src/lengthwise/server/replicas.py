"""Replicas: several servers behind one address, each in a process with its own models and queue, run by Ray Serve.

Ray Serve takes the requests, gives each to the replica that has fewer, and starts a replica again when it dies.
All of it runs on this machine and ends with the command.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

from ..engines.threads import threads
from ..errors import how_to_install
from ..integrations.ray import Placement, connect, placement, quiet_ray
from .app import make_app
from .metrics import joined_page
from .reports import Reporter, listening
from .running import free_port
from .service import Service

_APP = "lengthwise"
_UNLIMITED = 1_000_000  # requests of a replica: its own queue decides how many may wait
_REPLY = 5.0  # seconds for a replica to say how it is
_POLL = 0.2  # seconds


@dataclass(frozen=True)
class Plan:
    """What each replica is made of. `make` is called in its process, so it must be picklable."""

    make: Callable[[str], Service]  # from a device
    device: str  # "cpu" or "cuda"
    threads: int
    keys: Sequence[str]
    reports: str  # the address that takes them


class Replica:
    """A server in a process of its own. Ray Serve passes requests to its application."""

    def __init__(self, plan: Plan) -> None:
        from ray import serve

        os.environ["OMP_NUM_THREADS"] = str(plan.threads)  # before anything reads it
        self._keys, self._open, self._reporter = plan.keys, 0, Reporter(plan.reports)
        self._name = serve.get_replica_context().replica_tag
        try:
            self.service = plan.make(plan.device)
        except Exception as error:
            self._reporter.fail(error)
            raise

    def __serve_build_asgi_app__(self) -> Any:
        app = make_app(self.service, self._keys, partial(self._reporter.send, "request"), self.all_metrics)

        async def counted(scope: Any, receive: Any, send: Any) -> None:
            self._open += scope["type"] == "http"
            try:
                await app(scope, receive, send)
            finally:
                self._open -= scope["type"] == "http"

        return counted

    async def all_metrics(self) -> tuple[bytes, str]:
        """Return the page of metrics of all replicas; only those of this one while another starts or dies."""
        from ray import serve
        from ray.exceptions import RayError

        found = [self.metrics()]
        with suppress(RayError, TimeoutError):
            found = await serve.get_app_handle(_APP).broadcast("metrics").results_async(timeout_s=_REPLY)
        return joined_page(dict(found))

    def models(self) -> list[str]:
        return self.service.models

    def metrics(self) -> tuple[str, list[Any]]:
        """Return the name of this replica and its metrics."""
        return self._name, self.service.current_metrics().collect()

    def drain(self) -> bool:
        """Refuse new requests from now on, and return whether any is left."""
        self.service.draining = True
        return self._open > 0

    def close(self) -> None:
        """End the requests that are left."""
        self.service.close()


def serve_replicas(
    make: Callable[[str], Service],
    count: int,
    address: tuple[str, int],
    started: Callable[[str, Sequence[str]], None],
    *,
    device: str | None,
    keys: Sequence[str],
    grace: float,
    log: Callable[[dict[str, Any]], None] | None,
) -> None:
    """Serve with `count` replicas until a signal; then finish what was accepted, for at most `grace` seconds.

    `started` receives the URL and the names of the models. `log` receives each request.
    """
    ray, serve = ray_serve()
    host, port = address[0], free_port(*address)
    failures: list[Exception] = []

    def receive(kind: str, value: Any) -> None:
        if kind == "request" and log is not None:
            log(value)
        elif kind == "log":
            logging.getLogger("lengthwise.server").error(value)
        elif kind == "failed":
            failures.append(value)

    connect(ray, "local")
    try:
        place = placement([node["Resources"] for node in ray.nodes()], count, device, what="replica")
        with listening(receive) as reports, _signals() as stop:
            plan = Plan(make, place.device, max(1, threads() // count), list(keys), reports)
            try:
                handle = _deploy(serve, plan, place, host, port)
            except (RuntimeError, ray.exceptions.RayError) as error:
                raise failures[0] if failures else OSError(f"the replicas did not start: {error}") from error
            [models, *_] = handle.broadcast("models").results(timeout_s=_REPLY)
            stop.serving = True
            started(f"http://{f'[{host}]' if ':' in host else host}:{port}", models)
            stop.wait()
            _drain(handle, grace)
            serve.delete(_APP)
    finally:
        ray.shutdown()


def ray_serve() -> tuple[Any, Any]:
    """Return the modules `ray` and `ray.serve`; if they are not installed, raise an `ImportError` that says how."""
    # Ray Serve kills its HTTP proxy if it is not ready in 5 s, which is too short on a busy machine. Read on import.
    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")
    try:
        ray = quiet_ray()
        from ray import serve
    except ImportError:
        missing = f"several replicas need Ray Serve, which is not installed; {how_to_install('replicas')}"
        raise ImportError(missing) from None
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    return ray, serve


def _deploy(serve: Any, plan: Plan, place: Placement, host: str, port: int) -> Any:
    """Start the replicas and return a handle to them, when all of them are ready."""
    quiet = {"log_level": "ERROR", "enable_access_log": False}
    http = {"host": host, "port": port}
    serve.start(proxy_location="HeadOnly", http_options=http, logging_config=quiet)
    deployment = serve.deployment(serve.ingress()(Replica)).options(
        name="replicas",
        num_replicas=place.workers,
        max_ongoing_requests=_UNLIMITED,
        max_constructor_retry_count=1,
        graceful_shutdown_timeout_s=_REPLY,
        ray_actor_options={"num_cpus": place.cores, "num_gpus": place.gpus},
    )
    return serve.run(deployment.bind(plan), name=_APP, logging_config=quiet)


def _drain(handle: Any, grace: float) -> None:
    """Let all replicas refuse new requests, and wait until they have finished the others or the time is over."""
    from ray.exceptions import RayError

    end = time.monotonic() + grace
    while True:
        with suppress(RayError, TimeoutError):  # a replica that has just died
            if not any(handle.broadcast("drain").results(timeout_s=_REPLY)):
                return
        if time.monotonic() > end:
            break
        time.sleep(_POLL)
    with suppress(RayError, TimeoutError):
        handle.broadcast("close").results(timeout_s=_REPLY)


class _Stop(threading.Event):
    """What SIGINT or SIGTERM sets. A second one interrupts, and so does the first while it is not `serving`."""

    serving = False


@contextmanager
def _signals() -> Iterator[_Stop]:
    """Yield an event that the signals set. Handlers are in place until the end of the block."""
    stop = _Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set() or not stop.serving:
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
