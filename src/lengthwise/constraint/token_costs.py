"""TokenCosts: the cost of each token in units, for each state of the text. Cached per meter."""

from enum import IntEnum
from functools import lru_cache

import numpy as np
import regex
from numpy.typing import NDArray

from ..length.meter import Booleans, Integers, Meter
from ..length.utf8 import STATES
from .length_state import LengthState

BANNED = 1 << 29  # a cost above any maximum
FENCE = "```"

# Tokens after which a text may stop: a full stop of some script, with closing quotes and brackets.
_FULL_STOP = regex.compile(r"\s?[.!?…。！？｡۔؟।]['\"”’»›)\]）」』]*")
_PLAIN_STOP = regex.compile(r"[.!?。！？۔؟।]")
_GLUED = regex.compile(r"[^\n]*``")
_UNPRINTABLE = regex.compile(r"(?![\t\n\r])\p{Cc}")
_MISSING = np.array([state[0] for state in STATES])  # bytes that complete the character, by UTF-8 state
_SPARE = 2  # tokens that need not add a unit


class State(IntEnum):
    """Where the text so far stops. `IN_CHARACTER` and above: inside a character, in UTF-8 state 1 and above."""

    BETWEEN = 0
    IN_WORD = 1  # inside a word, where words are counted
    EMPTY = 2  # nothing is written yet
    IN_CHARACTER = 3


class TokenCosts:
    """The cost tables of one meter. With `finish`, a token that cannot end the text reserves a unit for a full stop."""

    def __init__(self, meter: Meter, finish: bool) -> None:
        texts = meter.vocabulary.texts
        self.meter = meter
        # Most tokens end in a letter, and the first test is ten times as fast as the second.
        self.is_full_stop = np.array([not t[-1:].isalnum() and bool(_FULL_STOP.fullmatch(t)) for t in texts])
        self.plain_stops = np.array(
            [i for i in self.is_full_stop.nonzero()[0] if _PLAIN_STOP.fullmatch(texts[i])], np.int64
        )
        self.ends_word = np.array([t[-1:].isalnum() for t in texts])  # a sentence may end after it with a full stop
        self.newlines = np.array([i for i, t in enumerate(texts) if t[:1] == "\n" and t.isspace()], np.int64)
        self.newline = texts.index("\n") if "\n" in texts else None
        self.ends_line = np.array([t.endswith("\n") for t in texts])
        self.fence = texts.index(FENCE) if FENCE in texts else None  # closes a block of code
        # A fence, or two thirds of it, that closes nothing inside a line.
        self.glued = np.array([n for n, t in enumerate(texts) if _GLUED.match(t)], np.int64)
        self.by_state = self._by_state(texts, finish)  # (states, vocabulary)
        self.least = self._least(texts)  # (2, vocabulary): between words, in a word
        self.stop_costs = self.by_state[State.IN_WORD, self.plain_stops].astype(np.int64)
        self.largest = int(self.by_state[self.by_state < BANNED].max())

    def _by_state(self, texts: list[str], finish: bool) -> NDArray[np.int32]:
        """Return the cost of each token in each state: (states, vocabulary).

        A token that cannot end the text also reserves what is needed to end it: a full stop, the missing bytes of a
        character, a word after a space.
        """
        meter, unit, stop = self.meter, self.meter.unit.name, self.is_full_stop
        ends_word = stop | np.array([bool(t) and (t[-1].isalnum() or t[-1] in "'’\ufffd") for t in texts])
        may_end = ends_word if meter.opens is not None else stop if finish else meter.trail == 0  # a stop adds no word
        cost = meter.cost + ~may_end
        in_word = cost - meter.joins if meter.joins is not None else cost
        # The first token may use the whole length, as in "Yes", but is neither white space nor a full stop.
        first = np.where(meter.white | stop, BANNED, meter.cost - meter.lead)
        if unit in ("bytes", "tokens"):
            first = first + (meter.utf8[0] > 0)  # the rest of the character reserves a full stop
        # The cost of the first byte includes the rest of its character, and the full stop after it.
        rest = in_word - ((meter.cost == 0) & ~may_end)
        tables = [cost, in_word, first, *[rest] * (len(STATES) - 1)]
        never = np.array([not t or (not t.isprintable() and bool(_UNPRINTABLE.search(t))) for t in texts])
        for n, state in enumerate([0, 0, 0, *range(1, len(STATES))]):
            after = meter.utf8[state]  # (vocabulary,)
            if unit in ("bytes", "tokens"):  # the missing bytes of a character have a cost of their own
                tables[n] = tables[n] + _MISSING[after]
            tables[n] = np.where(never | (after < 0), BANNED, tables[n])
        return np.stack(tables).astype(np.int32)

    def _least(self, texts: list[str]) -> NDArray[np.int64]:
        """Return the fewest units that each token adds between words and in a word: (2, vocabulary).

        In words-cjk these depend on the character before: after é, "e" begins no word, and 中 takes one from "a".
        """
        meter, cost = self.meter, self.meter.cost
        least = np.stack([cost, cost if meter.joins is None else cost - meter.joins])
        if meter.unit.name == "words-cjk":
            plain, spaced = meter.vocabulary.plain, meter.spaced
            least[:, plain & ~spaced] = 0
            for n in (~plain).nonzero()[0].tolist():
                added = {before: meter.unit.running(before + texts[n]) - meter.unit.running(before) for before in " éa"}
                least[:, n] = min(added[" "], added["é"]), added["a"]
            least[1, meter.utf8[0] > 0] = -1  # the character may be such a letter
        return least

    @staticmethod
    def state(at: LengthState) -> Integers:
        """Return the row of `by_state` that applies to each row: (rows,)."""
        state = np.where(at.begun, at.in_word, State.EMPTY)
        return np.where(at.utf8_state > 0, State.IN_CHARACTER - 1 + at.utf8_state, state)

    @staticmethod
    def near_too_late(at: LengthState, left: Integers, low: Integers) -> Booleans:
        """Return the rows that do not reach their minimum if many of the `left` (rows,) tokens add no unit."""
        return (low > at.used) & (left <= low - at.used + _MISSING[at.utf8_state] + _SPARE + _MISSING.max())

    def too_late(self, at: LengthState, left: Integers, low: Integers, rows: Integers) -> Booleans:
        """Return the tokens after which a row cannot complete a character or reach its minimum: (rows, vocabulary)."""
        before, left, low = at.utf8_state[rows, None], left[rows, None], low[rows, None]
        after = self.meter.utf8[at.utf8_state[rows]]  # (rows, vocabulary)
        missing = _MISSING[np.maximum(after, 0)]
        least = self.least[at.in_word[rows].astype(np.int64)]  # (rows, vocabulary)
        least = np.where(after > 0, np.minimum(least, 0), least)
        short = low - at.used[rows, None] - least  # of the minimum, after the token
        idle = (least < 1) & (short > 0) & (left - missing <= short + _SPARE)
        return (missing > left - 1) | (idle & (before == 0))


@lru_cache(maxsize=32)
def token_costs_of(meter: Meter, finish: bool) -> TokenCosts:
    """Return the costs of this meter. Cached: reading a vocabulary takes a quarter of a second."""
    return TokenCosts(meter, finish)
