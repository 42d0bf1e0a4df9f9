"""The lines of stdin as they come, for commands that write while they read. Knows bytes, not what they mean."""

import queue
import threading
from collections.abc import Iterator

from .terminal import stdin

LOOK_AHEAD = 1024  # lines to hold while the model is busy
AT_ONCE = 0.05  # seconds: a line that comes later than this after another is not waited for


class Lines:
    """The lines of stdin, read by a thread of its own, so that those which are there need not wait for others."""

    def __init__(self) -> None:
        self.seen, self.all_seen = 0, False
        self._items: queue.Queue[bytes | OSError | None] = queue.Queue(LOOK_AHEAD)  # None: the end
        self._end: list[OSError | None] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        end = None
        try:
            with stdin() as stream:
                for line in stream:
                    self.seen += 1
                    self._items.put(line)
        except OSError as error:
            end = error
        self.all_seen = True
        self._items.put(end)

    def stopped(self, done: int, verb: str) -> str:
        """How far it came, for somebody who stopped it. What has not been read cannot be counted."""
        lines = f"{self.seen:,} lines" if self.all_seen else f"the {self.seen:,} lines read so far"
        return f"stopped: {done:,} of {lines} were {verb}"

    def batches(self, size: int) -> Iterator[list[bytes]]:
        """All lines in order, as many at a time as are there: at least one, at most `size`."""
        while not self._end:
            if batch := list(self._ready(size)):
                yield batch
        if self._end[0] is not None:
            raise self._end[0]

    def _ready(self, size: int) -> Iterator[bytes]:
        patience = None  # for the first line as long as it takes
        for _ in range(size):
            try:
                item = self._items.get(timeout=patience)
            except queue.Empty:
                return
            if not isinstance(item, bytes):
                self._end.append(item)
                return
            yield item
            patience = AT_ONCE
