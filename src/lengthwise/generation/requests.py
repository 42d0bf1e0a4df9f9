"""Requests: a text and a budget become token ids, limits and batches.

Each request is checked against the model's context window before decoding.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..constraint.mask import UNLIMITED
from ..engines.base import Engine, LengthInputs
from ..length.budget import Budget, as_budget, check_text
from ..length.meter import Meter, meter_of, most_tokens
from .endings import EMPTY, Draft
from .steering import REACH

# The most tokens that the rows of a batch read together. They bound its KV cache: 46 KB a token for SmolLM2-135M in
# float32, 1.5 GB in all.
BATCH_TOKENS = 32_768


class Listener(Protocol):
    """Receives the tokens of a text while it is decoded, and can end it."""

    @property
    def closed(self) -> bool:
        """Whether the row ends at the next step, because its text is no longer wanted or is long enough."""

    @property
    def shown(self) -> int:
        """How many characters of the text can no longer change, because a reader has them."""

    def put(self, ids: list[int], agreement: list[float]) -> None:
        """Receive the tokens so far and their agreement (see `TokenScores`)."""


@dataclass(frozen=True)
class Request:
    """A row that can be decoded."""

    place: int  # among the caller's texts
    source: str
    prompt: list[int]
    budget: Budget
    limit: int  # tokens of the text at most
    seed: int = 0
    kept: Draft = EMPTY  # the first part of the text, which decoding continues
    listener: Listener | None = None
    repairs: bool = True  # an ending that is not complete is decoded again
    steered: bool = True  # by a future discriminator, if there is one; False: by a length control, if there is one

    @property
    def shown(self) -> int:
        """How many characters of the text a reader has already."""
        return 0 if self.listener is None else self.listener.shown

    @property
    def closed(self) -> bool:
        """Whether the listener has ended the text."""
        return self.listener is not None and self.listener.closed

    @property
    def start(self) -> int:
        """The number of tokens before the first new one."""
        return len(self.prompt) + len(self.kept.ids)

    @property
    def left(self) -> int:
        """The number of tokens that may still be generated."""
        return self.limit - len(self.kept.ids)


class Requests:
    """Makes requests for one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def meter(self, unit: str) -> Meter:
        """Return the meter that counts `unit` with the engine's tokenizer."""
        return meter_of(self.engine.tokenizer, unit)

    def make(
        self, place: int, text: str, budget: str | Budget, system: str | None = None, *, control_text: bool = True
    ) -> Request:
        """Return the request for one text; a `ValueError` or `TypeError` says why it cannot be carried out.

        `control_text`: attached controls may edit the text (length tokens, a length in the prompt).
        """
        known = self._budget(text, budget)
        edited = self._edited(text, known) if control_text else text
        return self._request(place, text, self.engine.prompt_ids(edited, system), known)

    def chat(self, place: int, messages: Sequence[Mapping[str, str]], budget: str | Budget) -> Request:
        """Return the request for the next message of a chat; `role` and `content` of each message are strings.

        The last message is the text that a relative budget refers to, and that attached controls may edit.
        """
        *before, last = messages
        text = last["content"]
        known = self._budget(text, budget)
        prompt = self.engine.chat_ids([*before, {**last, "content": self._edited(text, known)}])
        return self._request(place, text, prompt, known)

    def continuation(self, place: int, text: str, budget: str | Budget) -> Request:
        """Return the request for what follows `text`, without a chat template."""
        known = self._budget(text, budget)
        return self._request(place, text, self.engine.tokenizer(text)["input_ids"], known)

    def _request(self, place: int, source: str, prompt: list[int], budget: Budget) -> Request:
        return Request(place, source, prompt, budget, self._limit(prompt, budget))

    def _edited(self, text: str, budget: Budget) -> str:
        """Return the text as attached controls edit it, such as with the length in the prompt."""
        for control in self.engine.controls:
            text = control.prefix(text, int(budget.target), budget.unit, self.engine.tokenizer)
        return text

    def _budget(self, text: str, budget: str | Budget) -> Budget:
        """Return the budget in counts; raise a `ValueError` if there is no text to write for."""
        check_text(text)
        if not text.strip():
            raise ValueError("the text is empty; give a prompt")
        return as_budget(budget).resolve(text, self.engine.tokenizer)

    def _limit(self, prompt: list[int], budget: Budget) -> int:
        """Return the maximum number of tokens: what the budget can use, and no more than the window leaves."""
        window, taken = self.engine.window, self.window_used(len(prompt))
        if len(prompt) >= window:
            raise ValueError(f"the text is too long for the model: {len(prompt)} tokens; its window has {window}")
        least = self.fewest_tokens(budget)
        if least > window - taken - 1:
            raise ValueError(
                f"'{budget}' is impossible here: it takes {least} tokens or more, "
                f"and the model's window of {window} leaves {window - taken - 1}"
            )
        longest = budget.high if budget.high is not None else 2 * budget.low + 200
        return min(most_tokens(int(longest), budget.unit), window - taken - 1)

    def fewest_tokens(self, budget: Budget) -> int:
        """Return an estimate of the fewest tokens that reach the minimum, from the 95th percentile of token costs."""
        if budget.low <= 1:
            return int(budget.low)
        costs = self.meter(budget.unit).cost
        long = int(np.quantile(costs[costs > 0], 0.95))
        return -(-int(budget.low) // max(long, 1))

    def window_used(self, tokens: int) -> int:
        """Return how many tokens of the context window a prompt of `tokens` tokens uses."""
        return len(self.engine.forced_start) if self.engine.encoder_decoder else tokens

    def batches(self, requests: list[Request], each: int, batch_size: int) -> Iterator[list[Request]]:
        """Yield requests of similar size, `batch_size` sequences at a time, `each` of a request.

        Sequences with long prompts are fewer, so that they have at most `BATCH_TOKENS` tokens together.
        A row that has ended is padded until the last one has, and its padding must stay inside the window.
        """
        batch: list[Request] = []
        window, longest, before = self.engine.window, 0, ""  # the longest prompt of the batch, and its kind
        for kind, _, _, number in sorted((self.kind(one), one.left, one.start, n) for n, one in enumerate(requests)):
            one = requests[number]
            longest = max(longest, one.start)
            overruns = one.left > window - self.window_used(longest)
            too_long = (len(batch) + 1) * each * longest > BATCH_TOKENS
            if batch and (len(batch) * each >= batch_size or kind != before or overruns or too_long):
                yield batch
                batch, longest = [], one.start
            before = kind
            batch.append(one)
        if batch:
            yield batch

    def kind(self, request: Request) -> str:
        """Return what all requests of a batch have in common: whether they are steered, or have length inputs.

        An encoder-decoder may judge endings in some units only, so there it is the unit.
        """
        unit = request.budget.unit
        if self.engine.encoder_decoder:
            return unit
        return f"{self.can_steer(request)} {self.without_length(request)} {unit in self.engine.units}"

    def without_length(self, request: Request) -> bool:
        """Return whether the model receives no length, because it has a future discriminator that plans the end."""
        known, budget = self.engine.discriminator, request.budget
        if known is None or budget.high is None or budget.unit not in known.units or budget.unit not in REACH:
            return False
        return request.steered or budget.unit not in self.engine.units  # or else a length control is tried

    def can_steer(self, request: Request) -> bool:
        """Return whether a future discriminator steers this text to its end.

        A text that has only a maximum may end at any sentence, so its first draft is the plain model's.
        So is one that is repaired from its beginning: steered, short code is often an empty block.
        """
        return self.without_length(request) and (request.budget.low > 1 or bool(request.kept.ids))

    def length_inputs(self, requests: list[Request]) -> LengthInputs | None:
        """Return the lengths for attached controls; None if none of them counts in this unit."""
        units = self.engine.units
        if requests[0].budget.unit not in units:
            return None
        return LengthInputs(
            length=[min(int(one.budget.target), UNLIMITED) for one in requests],
            unit=[units.index(one.budget.unit) for one in requests],
            at_most=[one.budget.is_limit for one in requests],
            written=[len(one.kept.ids) for one in requests],
        )
