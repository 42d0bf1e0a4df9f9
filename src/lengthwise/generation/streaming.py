"""Streaming: a text sentence by sentence, while it is being written.

A sentence is let go once it is sure to stay: the model wrote its end freely, more text follows, and no end that the
budget could prefer lies before it. What was let go is never taken back.
"""

import codecs
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from torch import Tensor
from transformers import StoppingCriteria

from ..constraint.mask import LengthBudgetLogitsProcessor
from ..length.budget import Budget
from ..length.meter import Meter
from .endings import Draft, free_ends
from .repair import DEEPEST

Look = Callable[[list[int], list[float]], list[float]]  # (tokens, their freedom) -> what the writer will make of it


class SentenceStreamer(StoppingCriteria):  # type: ignore[misc]  # transformers is untyped
    """What `generate` hands each new token to; and what tells it to stop when nobody listens any more."""

    fit: LengthBudgetLogitsProcessor  # both are set by the writer, before writing begins
    sober: Look

    def __init__(self, meter: Meter, budget: Budget, measure: Callable[[str, int], int]) -> None:
        self.meter, self.budget, self.measure = meter, budget, measure
        self.parts: queue.Queue[str | BaseException | None] = queue.Queue()
        self.shown = 0  # characters let go
        self.closed = threading.Event()
        self._ids: list[int] = []
        self._judged = 0  # characters up to the last end that was looked at soberly
        self._begun = False

    def put(self, value: Tensor) -> None:
        """Called with the prompt first, then with each token."""
        if self._begun:
            self._ids += value.flatten().tolist()
            self._let_go()
        self._begun = True

    def end(self) -> None:
        """Called when all is written; what remains is for the writer to say."""

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        return input_ids.new_full((len(input_ids),), self.closed.is_set(), dtype=bool)

    def _let_go(self) -> None:
        freedom = self.fit.freedom()  # known for all tokens but the last
        ids = self._ids[: len(freedom)]
        text, reach = spelled(self.meter, ids)
        draft, text = Draft(text, reach, freedom, 0.0, 0.0), text.rstrip()
        sure = [one for one in free_ends(draft, text) if one[0] > self._judged and self._stays(draft, text, *one)]
        if not sure:
            return
        self._judged = sure[-1][0]  # once an end: what it takes to look soberly, it takes for each
        ends = free_ends(replace(draft, freedom=self.judged_without_length(ids, freedom)), text)
        for end, _ in (one for one in sure if one in ends):
            self.parts.put(text[self.shown : end])
            self.shown = end

    def _stays(self, draft: Draft, text: str, end: int, tokens: int) -> bool:
        """Can nothing that is still to come put the end of the text before this end?"""
        settled = len(text[end:].split()) > 1  # a word has followed: nothing can undo this end
        length = self.measure(text[:end], tokens)
        # What does not fit by itself may be taken back, if no good end is found for what follows.
        stays = length >= self.budget.low or len(draft.reach) - tokens > DEEPEST
        return settled and stays and length <= self.budget.target


def spelled(meter: Meter, ids: list[int]) -> tuple[str, list[int]]:
    """The text of these tokens, without white space before it, and how much of it is there after each token."""
    decoder, text, reach = codecs.getincrementaldecoder("utf-8")("replace"), "", []
    for token in ids:
        text = (text + decoder.decode(meter.pieces[token])) if text else decoder.decode(meter.pieces[token]).lstrip()
        reach.append(len(text))
    return text + decoder.decode(b"", final=True), reach


def stream(tap: SentenceStreamer, write: Callable[[], str]) -> Iterator[str]:
    """Runs `write`, which returns the whole text, in a thread of its own, and yields the parts that `tap` lets go."""

    def work() -> None:
        try:
            tap.parts.put(write()[tap.shown :])
            tap.parts.put(None)
        except BaseException as error:  # handed to the reader's thread, which raises it
            tap.parts.put(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        while (part := tap.parts.get()) is not None:
            if isinstance(part, BaseException):
                raise part
            if part:
                yield part
    finally:  # an abandoned stream does not write on
        tap.closed.set()
        worker.join()
