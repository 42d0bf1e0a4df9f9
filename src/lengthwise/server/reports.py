"""Reports: what replicas tell the process that started them, such as requests, messages of their log, and errors."""

import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from logging import ERROR, Handler, LogRecord, getLogger
from multiprocessing.connection import Client, Connection, Listener
from typing import Any


@contextmanager
def listening(receive: Callable[[str, Any], None]) -> Iterator[str]:
    """Yield an address for `Reporter`; `receive` gets the kind and the value of each report, one at a time."""
    one_at_a_time = threading.Lock()

    def read(connection: Connection) -> None:
        with suppress(EOFError, OSError):
            while True:
                kind, value = connection.recv()
                with one_at_a_time:
                    receive(kind, value)

    def accept() -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                threading.Thread(target=read, args=(listener.accept(),), daemon=True).start()

    with Listener() as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield str(listener.address)


class Reporter:
    """The end of a connection that belongs to a replica. Errors in the log of the server are reported as "log"."""

    def __init__(self, address: str) -> None:
        self._connection, self._lock = Client(address), threading.Lock()
        getLogger("lengthwise").addHandler(_ToReports(self))

    def send(self, kind: str, value: Any) -> None:
        with self._lock, suppress(OSError):  # the other process is gone, and so will be this one
            self._connection.send((kind, value))

    def fail(self, error: Exception) -> None:
        """Report an exception as "failed"."""
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = OSError(f"{type(error).__name__}: {error}")
        self.send("failed", error)


class _ToReports(Handler):
    def __init__(self, reporter: Reporter) -> None:
        super().__init__(ERROR)
        self._reporter = reporter

    def emit(self, record: LogRecord) -> None:
        self._reporter.send("log", self.format(record))
