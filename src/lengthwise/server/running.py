"""Running: uvicorn with a shutdown that refuses new requests and finishes the accepted ones."""

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn

from .service import Service

_POLL = 0.05  # seconds


class Server(uvicorn.Server):
    """After the first signal, new requests receive 503 and accepted ones are finished; a second signal ends at once."""

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[str], None]) -> None:
        super().__init__(config)
        self.service, self._started = service, started
        self._drain: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: Any = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._started(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.service.draining:
            self.should_exit = self.force_exit = True
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # each reply that is cut off has a traceback
            return
        self.service.draining = True
        if self._loop is None:  # nothing was accepted yet
            self.should_exit = True
        else:
            self._loop.call_soon_threadsafe(self._begin_drain)

    def _begin_drain(self) -> None:
        self._drain = asyncio.ensure_future(self._finish())

    async def _finish(self) -> None:
        """Wait until nothing is left to do, or the time for it is over."""
        end = asyncio.get_running_loop().time() + self.service.limits.grace
        while self.service.busy and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_POLL)
        await asyncio.to_thread(self.service.close)
        self.should_exit = True

    async def shutdown(self, sockets: Any = None) -> None:
        await super().shutdown(sockets)
        if self.force_exit:  # onnxruntime aborts a process that exits while a thread runs a model
            await asyncio.to_thread(self.service.close)

    def stop(self) -> None:
        """Shut down as after a signal; for servers in a thread."""
        self.handle_exit(signal.SIGTERM, None)


def make_server(app: Any, service: Service, host: str, port: int, started: Callable[[str], None]) -> Server:
    """Return a server for the application; `run` serves until a signal. `started` receives the address."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",  # the application has none, and a second signal would leave a traceback of its end in the log
        timeout_graceful_shutdown=2,  # for replies that are being sent
        h11_max_incomplete_event_size=64 * 1024,
    )
    return Server(config, service, started)


def free_port(host: str, port: int) -> int:
    """Return the port, or a free one for 0; raise an `OSError` if the address cannot be used."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            return int(found.getsockname()[1])
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(f"port {port} of {host} is taken by another program; give --port") from error
        raise OSError(f"cannot listen on {host}, port {port}: {error.strerror}") from error
