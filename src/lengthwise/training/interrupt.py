"""Interrupts: Ctrl-C is noted, so that a loop can stop where it may be resumed; a second one quits at once.

Knows signals, not what is being done.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Stopped by Ctrl-C in good order; the text says where, and how to go on."""


@contextmanager
def interrupts(note: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether there was a Ctrl-C; at the first one `note` is called.

    Only the main thread hears signals; in another one, or where it is ignored, Ctrl-C is none of our business.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # as in the background of a script
    if ignored or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    heard: list[int] = []
    own, before = os.getpid(), signal.getsignal(signal.SIGINT)

    def hear(number: int, frame: Any) -> None:
        if os.getpid() != own:  # a worker, forked from here: it goes on, for the step in hand needs its batches
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        heard.append(number)
        with suppress(RuntimeError):  # Python was writing to the same stream at this very moment
            note()

    signal.signal(signal.SIGINT, hear)
    try:
        yield lambda: bool(heard)
    finally:
        signal.signal(signal.SIGINT, before if callable(before) else signal.default_int_handler)
