"""TokenCosts: what each token takes from the room, by what the text is in the middle of.

Made once for a meter and kept. It knows tokens and their texts; which rows have how much room is `fit.py`'s.
"""

from enum import IntEnum
from functools import lru_cache

import numpy as np
import regex
import torch
from torch import Tensor

from ..length.meter import Meter
from ..length.utf8 import STATES
from .length_state import Booleans, Integers, LengthState

BANNED = 1 << 29  # a price that no room can pay

# Tokens after which a text may stop: a full stop of some script, with quotes and brackets that close behind it.
_CLOSER = regex.compile(r"\s?[.!?…。！？｡۔؟।]['\"”’»›)\]）」』]*")
_PLAIN_CLOSER = regex.compile(r"[.!?。！？۔؟।]")
_UNPRINTABLE = regex.compile(r"(?![\t\n\r])\p{Cc}")


class State(IntEnum):
    """What the next token comes after. From `SPLIT` on: inside a character, in UTF-8 state 1 and more."""

    CLOSED = 0
    OPEN = 1  # inside a word, where words are counted
    FRESH = 2  # nothing is written yet
    SPLIT = 3


class TokenCosts:
    """The tables of one meter. With `finish`, a token that cannot end the text keeps a unit for a full stop."""

    def __init__(self, meter: Meter, finish: bool) -> None:
        texts = [piece.decode("utf-8", "replace") for piece in meter.pieces]
        self.meter = meter
        self.closes = torch.tensor([bool(_CLOSER.fullmatch(t)) for t in texts])  # (vocabulary,)
        self.closers = torch.tensor([i for i, t in enumerate(texts) if _PLAIN_CLOSER.fullmatch(t)]).long()
        self.lacks = torch.tensor([state[0] for state in STATES])  # bytes missing, by UTF-8 state
        self.rows = self._rows(texts, finish)  # (states, vocabulary); int32
        self.closing = self.closes.numpy()
        self.closing_costs = self.rows[State.OPEN, self.closers].long().numpy()
        self.dearest = int(self.rows[self.rows < BANNED].max())

    def full_stops(self, tokens: Tensor) -> Tensor:
        """Which of these are full stops. A model may know tokens beyond those of its tokenizer."""
        return self.closes.to(tokens.device)[tokens.clamp(max=len(self.closes) - 1)]

    def _rows(self, texts: list[str], finish: bool) -> Tensor:
        """A token that cannot end the text also reserves what it takes to end it: a full stop, the missing bytes of a
        character, something to follow a space.
        """
        meter, unit, closer = self.meter, self.meter.unit.name, self.closes
        ends_word = closer | torch.tensor([bool(t) and (t[-1].isalnum() or t[-1] in "'’\ufffd") for t in texts])
        closed = ends_word if unit == "words" else closer if finish else meter.trail == 0  # words: a stop is free
        price = meter.prices + (~closed).long()
        inside = price - meter.joins.long() if meter.joins is not None else price
        # The first token may take the whole room, "Yes", but must be something, and no full stop.
        fresh = (meter.prices - meter.lead).masked_fill(meter.white | closer, BANNED)
        if unit in ("bytes", "tokens"):
            fresh = fresh + (meter.utf8[0] > 0).long()  # what follows inside a character is charged for a full stop
        # The rest of a character is paid for already, and so is the full stop behind it.
        rest = inside - ((meter.prices == 0) & ~closed).long()
        rows = [price, inside, fresh, *[rest] * (len(STATES) - 1)]
        never = torch.tensor([not t or bool(_UNPRINTABLE.search(t)) for t in texts])
        for n, state in enumerate([0, 0, 0, *range(1, len(STATES))]):
            after = meter.utf8[state]  # (vocabulary,)
            if unit in ("bytes", "tokens"):  # what a character still lacks has a price of its own
                rows[n] = rows[n] + self.lacks[after]
            rows[n] = rows[n].masked_fill(never | (after < 0), BANNED)
        return torch.stack(rows).int()

    @staticmethod
    def state(at: LengthState) -> Integers:
        """Which row of prices applies: (rows,)."""
        state = np.where(at.begun, at.open, State.FRESH)
        return np.where(at.character > 0, State.SPLIT - 1 + at.character, state)

    def hurry(self, at: LengthState, left: Integers, low: Integers) -> Booleans:
        """Rows that must gain a unit with nearly every token that is `left` to them (rows,) to reach their minimum."""
        lacking = self.lacks.numpy()[at.character]
        return (low > at.used) & (left <= low - at.used + lacking + 2)

    def late(self, at: LengthState, left: Integers, hurry: Booleans, rows: Integers) -> Tensor:
        """Tokens that these rows, with few tokens left, cannot take and still reach their minimum or end a character.

        (rows, vocabulary).
        """
        character, few = torch.from_numpy(at.character[rows]), torch.from_numpy(left[rows])
        after = self.meter.utf8[character]  # (rows, vocabulary)
        endless = self.lacks[after.clamp(min=0)] > (few - 1).unsqueeze(1)
        gain = self.meter.prices.expand_as(after)
        if self.meter.joins is not None:
            gain = gain - torch.from_numpy(at.open[rows]).long().unsqueeze(1) * self.meter.joins.long()
        idle = ((gain < 1) | (after > 0)) & (character == 0).unsqueeze(1)
        return endless | (idle & torch.from_numpy(hurry[rows]).unsqueeze(1))


@lru_cache(maxsize=32)
def token_costs_of(meter: Meter, finish: bool) -> TokenCosts:
    """The prices of this very meter; reading a vocabulary takes a quarter of a second."""
    return TokenCosts(meter, finish)
