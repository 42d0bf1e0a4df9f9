"""A progress bar with the speed of this run and the time left."""

import time

from . import terminal


class TextProgress:
    """The progress bar of a run over many texts, which may be a resumed one.

    `verb`: translating or shortening; `past`: translated or shortened; `what`: texts or sentences. Without a terminal,
    and if it is `hidden`, nothing is shown.
    """

    def __init__(self, verb: str, past: str, what: str, hidden: bool = False) -> None:
        self.verb, self.past, self.what, self.done = verb, past, what, "the start"
        self.bar = terminal.progress_bar(disable=hidden)
        self.task = self.bar.add_task(verb, total=None)
        self.first, self.begun = 0, 0.0

    def show(self, done: int, total: int) -> None:
        """Show how much is done. The speed is that of this run."""
        if self.done == "the start":
            self.first, self.begun = done, time.monotonic()
            if done:
                terminal.print_message(f"resuming: {done:,} of {total:,} {self.what} were {self.past} before")
        self.done = f"{done:,} of {total:,} {self.what}"
        rate = (done - self.first) / max(time.monotonic() - self.begun, 1e-3)
        self.bar.update(self.task, description=f"{self.verb}, {rate:.1f} {self.what}/s", completed=done, total=total)
