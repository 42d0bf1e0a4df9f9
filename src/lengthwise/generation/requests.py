"""Requests: a text and a budget become token ids, limits and batches.

Each request is checked against the model's context window before decoding.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..constraint.mask import UNLIMITED
from ..engines.base import Engine, LengthInputs
from ..length.budget import Budget, as_budget
from ..length.meter import Meter, meter_of
from .endings import EMPTY, Draft

# Upper estimate of the tokens per unit: a word has several pieces, a character up to four bytes, a grapheme several
# characters. The hard budget ends nearly all rows long before this limit.
_TOKENS_PER_UNIT = {"tokens": 1, "bytes": 1, "words": 8, "graphemes": 8}


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
        if not isinstance(text, str):
            raise TypeError(f"a text is a string; got {type(text).__name__}")
        if not text.strip():
            raise ValueError("the text is empty; give a prompt")
        text.encode()  # raises a ValueError for half a surrogate pair
        known = as_budget(budget).resolve(text, self.engine.tokenizer)
        source = text
        for control in self.engine.controls if control_text else []:
            text = control.prefix(text, int(known.target), known.unit, self.engine.tokenizer)
        prompt = self.engine.prompt_ids(text, system)
        return Request(place, source, prompt, known, self._limit(prompt, known))

    def _limit(self, prompt: list[int], budget: Budget) -> int:
        """Return the maximum number of tokens: what the budget can use, and no more than the window leaves."""
        window, taken = self.engine.window, self.window_used(len(prompt))
        if len(prompt) >= window:
            raise ValueError(f"the text is too long for the model: {len(prompt)} tokens; its window has {window}")
        least = self._fewest_tokens(budget)
        if least > window - taken - 1:
            raise ValueError(
                f"'{budget}' is impossible here: it takes {least} tokens or more, "
                f"and the model's window of {window} leaves {window - taken - 1}"
            )
        longest = budget.high if budget.high is not None else 2 * budget.low + 200
        return int(min(_TOKENS_PER_UNIT.get(budget.unit, 4) * longest + 16, window - taken - 1))

    def _fewest_tokens(self, budget: Budget) -> int:
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
        """Yield requests of the same unit and similar size, `batch_size` sequences at a time, `each` of a request.

        A row that has ended is padded until the last one has, and its padding must stay inside the window.
        """
        batch: list[Request] = []
        for one in sorted(requests, key=lambda one: (one.budget.unit, one.left, one.start)):
            together = [*batch, one]
            overruns = one.left > min(self.engine.window - self.window_used(r.start) for r in together)
            other_unit = bool(batch) and one.budget.unit != batch[0].budget.unit
            if batch and (len(batch) * each >= batch_size or other_unit or overruns):
                yield batch
                batch = []
            batch.append(one)
        if batch:
            yield batch

    def length_inputs(self, requests: list[Request]) -> LengthInputs | None:
        """Return the lengths for attached controls; None if none of them counts in this unit."""
        units, unit = self.engine.units, requests[0].budget.unit
        if unit not in units:
            return None
        return LengthInputs(
            length=[min(int(one.budget.target), UNLIMITED) for one in requests],
            unit=[units.index(unit)] * len(requests),
            at_most=[one.budget.is_limit for one in requests],
            written=[len(one.kept.ids) for one in requests],
        )
