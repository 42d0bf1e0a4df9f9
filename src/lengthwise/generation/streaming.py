"""Streaming: a text sentence by sentence, while it is being written.

A sentence is yielded once it is final: its ending was not forced, more text follows, and no earlier ending can still
be chosen. Yielded text never changes.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

from ..length.budget import Budget
from ..length.meter import Meter
from .decoding import Judge, spelled
from .endings import Draft, Measure, unforced_ends
from .repair import DEEPEST


class SentenceStreamer:
    """Receives the tokens during decoding and hands finished sentences to `release`; see `requests.Listener`."""

    def __init__(
        self, meter: Meter, budget: Budget, measure: Measure, judge: Judge, release: Callable[[str], None]
    ) -> None:
        self.meter, self.budget, self.measure, self.judge, self.release = meter, budget, measure, judge, release
        self.shown = 0  # characters released
        self.closed = False  # the consumer has stopped reading
        self._judged = 0  # characters up to the last end that was judged

    def put(self, ids: list[int], agreement: list[float]) -> None:
        """Release the sentences that are final, given the tokens so far."""
        text, reach = spelled(self.meter, ids)
        draft, text = Draft(text, reach, agreement, 0.0, 0.0), text.rstrip()
        sure = [one for one in unforced_ends(draft, text) if one[0] > self._judged and self._stays(draft, text, *one)]
        if not sure:
            return
        self._judged = sure[-1][0]  # each end is judged once: that takes a forward pass
        ends = unforced_ends(replace(draft, agreement=self.judge(ids, agreement)), text)
        for end, _ in (one for one in sure if one in ends):
            self.release(text[self.shown : end])
            self.shown = end

    def _stays(self, draft: Draft, text: str, end: int, tokens: int) -> bool:
        """Return whether this sentence end is final: no later token can make the text stop before it."""
        settled = len(text[end:].split()) > 1  # a word has followed: the end cannot become an abbreviation
        length = self.measure(text[:end], tokens)
        # Repair may remove a beginning below the minimum, if no complete ending is found for the rest.
        stays = length >= self.budget.low or len(draft.reach) - tokens > DEEPEST
        return settled and stays and length <= self.budget.target


def stream(write: Callable[[SentenceStreamer], str], made: Callable[..., SentenceStreamer]) -> Iterator[str]:
    """Run `write`, which returns the whole text, in a thread, and yield the parts that the streamer releases.

    `made` returns the streamer, given the function that takes its parts.
    """
    parts: queue.Queue[str | BaseException | None] = queue.Queue()
    streamer = made(parts.put)

    def work() -> None:
        try:
            parts.put(write(streamer)[streamer.shown :])
            parts.put(None)
        except BaseException as error:  # raised in the consumer's thread
            parts.put(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        while (part := parts.get()) is not None:
            if isinstance(part, BaseException):
                raise part
            if part:
                yield part
    finally:  # an abandoned stream stops decoding
        streamer.closed = True
        worker.join()
