"""Interrupts: the first Ctrl-C only sets a flag, so that the training loop can save first; a second one quits."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Stopped by Ctrl-C at a point from which the work can be resumed; the text says where, and how."""


@contextmanager
def interrupts(on_first: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether there was a Ctrl-C. At the first one `on_first` is called.

    In a thread that is not the main one, and where SIGINT is ignored (a script's background), nothing is changed.
    """
    own, before = os.getpid(), signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    received: list[int] = []

    def receive(number: int, frame: Any) -> None:
        if os.getpid() != own:  # a forked worker continues: the current step needs its batches
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        received.append(number)
        with suppress(RuntimeError):  # raised if the signal interrupted a write to the same stream
            on_first()

    signal.signal(signal.SIGINT, receive)
    try:
        yield lambda: bool(received)
    finally:
        signal.signal(signal.SIGINT, before if callable(before) else signal.default_int_handler)
