"""Meters: `Meter` counts a text in a unit token by token, from a table of the cost of each token.

`Meter.running(ids)` returns, from token ids alone, how long the text is after every token. It looks up the cost of each
token in a table. Some costs depend on the neighbouring tokens: a combining mark joins the letter before it, an emoji is
split over three tokens. Only the rows that contain such tokens are decoded and measured.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from ..protocols import Tokenizer
from . import utf8
from .units import Unit, unit_named
from .vocabulary import ends_in_ascii, vocabulary_of

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

# In these units each character of a plain word counts 1, whatever follows; in others, a plain word counts 1.
_EACH_COUNTS = frozenset({"chars", "chars-nospace", "graphemes", "cells", "bytes", "tweet"})
_LETTERS_JOIN = re.compile(r"[A-Za-z0-9]+(?![\w'-])")  # at the start of a token: it continues a word of ASCII letters
_LETTER_ENDS = re.compile(r"[A-Za-z0-9]\Z")
_HAN_LEAD = range(0xE4, 0xEA)  # first bytes of the characters that `words-cjk` counts
# Grapheme clusters grow through these; any other character starts a cluster of its own.
_CLUSTERING = regex.compile(
    r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}\p{GCB=Prepend}\p{GCB=RI}\p{GCB=L}\p{GCB=V}\p{GCB=T}\r]"
)


@lru_cache
def _composing() -> frozenset[str]:
    """Return the characters that NFC can merge with the one before them (Å from A and a ring)."""
    found = {chr(c) for c in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}  # Hangul vowels and finals
    for c in (*range(0xC0, 0x3400), *range(0xF900, 0xFB50), *range(0x11000, 0x17000)):
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            found.add(chr(int(parts[1], 16)))
    return frozenset(found)


@lru_cache
def _expanding() -> frozenset[str]:
    """Return the characters that NFC splits (a Hebrew shin with its dot becomes two)."""
    places = (*range(0x340, 0x3000), *range(0xFB1D, 0xFB50), *range(0x1D100, 0x1D200))
    return frozenset(chr(c) for c in places if len(unicodedata.normalize("NFC", chr(c))) > 1)


@lru_cache
def _changed_by_nfc() -> frozenset[str]:
    return _composing() | _expanding()


def _nfc_may_change(text: str) -> bool:
    return not text.isascii() and any(c in _changed_by_nfc() for c in text)


@lru_cache
def _largest_costs(unit: Unit) -> dict[bytes, int]:
    """Return the largest cost of a character that NFC splits, by each proper prefix of its UTF-8 bytes."""
    largest: dict[bytes, int] = {}
    for c in _expanding():
        for n in range(1, len(c.encode())):
            largest[c.encode()[:n]] = max(largest.get(c.encode()[:n], 0), unit.running(c))
    return largest


@lru_cache
def _prefixes(characters: frozenset[str]) -> frozenset[bytes]:
    """Return every proper prefix of the UTF-8 bytes of these characters."""
    return frozenset(c.encode()[:n] for c in characters for n in range(1, len(c.encode())))


_WIDE_SPACES = frozenset(c for c in map(chr, range(0x80, 0x3001)) if c.isspace())


class Meter:
    """The running length of a text in `unit`, computed from token ids.

    Tables, one entry per token (vocabulary size):
      cost      units it adds in the middle of a text; of a character split over tokens, the first token has the cost
      lead      units of white space at its start, which are not counted at the start of a text
      trail     units of white space at its end, which are not counted at the end of a text
      blank     whether it costs nothing at both ends of a text: empty or, unless tokens are counted, white space
      solid     whether its last character is ASCII and not white space, and a space after it changes no count
      joins     (words, words-cjk) whether it starts inside a word if the token before ends inside one
      opens     (words, words-cjk) whether it ends inside a word
      context_dependent  whether its cost may depend on its neighbours
    and `pieces`, `white`, `spaced` and `utf8` of its `Vocabulary`.
    """

    def __init__(self, tokenizer: Tokenizer, unit: str, size: int = 0) -> None:
        """Read the vocabulary. `size`: the rows of the model's embedding, if it has more than the tokenizer."""
        self.tokenizer = tokenizer
        self.unit: Unit = unit_named(unit)
        self.signature = self.unit.signature
        if self.unit.name == "tokens":
            self.signature += f"|tokenizer:{getattr(tokenizer, 'name_or_path', '') or type(tokenizer).__name__}"
        self.vocabulary = vocabulary = vocabulary_of(tokenizer, max(size, len(tokenizer)))
        self.pieces, texts = vocabulary.pieces, vocabulary.texts
        self.white, self.spaced, self.utf8 = vocabulary.white, vocabulary.spaced, vocabulary.utf8
        self.solid = vocabulary.solid
        self.splits_characters = bool((self.utf8 > 0).any())
        self._read_costs()
        self.joins: Booleans | None = None
        self.opens: Booleans | None = None
        if self.unit.name == "words":
            self.joins = np.array([bool(t) and not t[0].isspace() for t in texts])
            self.opens = np.array([bool(t) and not t[-1].isspace() for t in texts])
        elif self.unit.name == "words-cjk":
            self.joins = np.array([bool(_LETTERS_JOIN.match(t)) for t in texts]) & (self.cost > 0)
            self.opens = np.array([bool(_LETTER_ENDS.search(t)) for t in texts])
            # A space after these changes the count.
            self.solid = self.solid & np.array([t[-1:] not in ("'", "-") for t in texts])

    def _read_costs(self) -> None:
        """Make the tables of costs: of plain words, which are most tokens, all at once."""
        plain, spaced = self.vocabulary.plain, self.spaced
        self.cost, self.lead, self.trail = (np.zeros(len(plain), np.int64) for _ in range(3))
        self.blank, self.context_dependent = np.zeros(len(plain), np.bool_), np.zeros(len(plain), np.bool_)
        tables = (self.cost, self.lead, self.trail, self.blank, self.context_dependent)
        self.cost[plain] = 1
        if self.unit.name in _EACH_COUNTS:
            self.cost[plain] = self.vocabulary.sizes[plain]
            if self.unit.name == "chars-nospace":
                self.cost[plain & spaced] -= 1
            else:
                self.lead[plain & spaced] = 1
        for n in (~plain).nonzero()[0].tolist():
            for table, value in zip(tables, self._costs_of(self.pieces[n]), strict=True):
                table[n] = value

    def _costs_of(self, piece: bytes) -> tuple[int, int, int, bool, bool]:
        """Return (cost, lead, trail, blank, context_dependent) of one token."""
        head, whole, split = utf8.split(piece)
        if self.unit.name == "tokens":
            return (1 if piece else 0), 0, 0, not piece, False
        text = whole.decode("utf-8", "ignore")
        if self.unit.name == "words":  # a part of a character is a letter of some word
            text = piece.decode("utf-8", "replace")
        count = self.unit.running
        if self.unit.name == "words-cjk":  # the most that it can add: after a space, or after a letter such as é
            most = max(count(text), count("_" + text)) + self._incomplete_cost(split)
            return most, 0, 0, not text.strip() and not split and not head, self._depends_on_context(text, split, head)
        cost = len(piece) if self.unit.name == "bytes" else count(text) + self._incomplete_cost(split)
        lead = count(text) - count(text.lstrip()) if not head and text[:1].isspace() else 0
        trail = count(text) - count(text.rstrip()) if not split and text[-1:].isspace() else 0
        blank = not text.strip() and not split and not head
        return cost, lead, trail, blank, self._depends_on_context(text, split, head)

    def _incomplete_cost(self, split: bytes) -> int:
        """Return the largest cost of a character whose first bytes are `split`."""
        match self.unit.name:
            case "bytes":
                return len(split)
            case "words":
                return 0
            case "words-cjk":
                return int(bool(split) and split[0] in _HAN_LEAD)
        usual = (2 if self.unit.name in ("cells", "tweet") else 1) if split else 0
        return max(usual, _largest_costs(self.unit).get(split, 0))

    def _depends_on_context(self, text: str, split: bytes, head: int) -> bool:
        """Return whether this token's cost can depend on its neighbours. A wrong True only costs time."""
        if split in _prefixes(_WIDE_SPACES):  # may become white space
            return True
        match self.unit.name:
            case "chars" | "chars-nospace":
                return _nfc_may_change(text) or split in _prefixes(_changed_by_nfc())
            case "cells":
                return bool(split or head)
            case "words-cjk":
                return bool(split or head or not text.isascii() or any(c in text for c in "'-_"))
            case "graphemes":
                return bool(split or head or _CLUSTERING.search(text))
            case "tweet":
                return bool(split or head or "." in text or _nfc_may_change(text) or _CLUSTERING.search(text))
        return False

    # ---- counting

    def running(self, ids: Integers, start: Integers | None = None) -> Integers:
        """Return the units written after each token, as if more text followed: (rows, time) -> (rows, time).

        `start` (rows,): the column of the first token that counts; a prompt before it costs nothing.
        """
        counts: Integers = self.token_costs(ids, start).cumsum(1)
        dependent = self.context_dependent[ids]  # (rows, time)
        if start is not None:
            dependent &= np.arange(ids.shape[1]) >= start[:, None]
        for row in np.flatnonzero(dependent.any(1)).tolist():
            first, written = 0 if start is None else int(start[row]), b""
            for column, token in enumerate(ids[row, first:].tolist(), first):
                written += self.pieces[token]
                counts[row, column] = self.measure(written)
        return counts

    def token_costs(self, ids: Integers, start: Integers | None = None) -> Integers:
        """Return the units each token adds if no cost depends on the context: (rows, time)."""
        cost, blank = self.cost[ids], self.blank[ids]  # (rows, time)
        if start is not None:
            before = np.arange(ids.shape[1]) < start[:, None]
            cost, blank = np.where(before, 0, cost), blank | before
        if self.unit.name == "tokens":
            return cost
        begun = (~blank).cumsum(1)
        cost = np.where(begun == 0, 0, cost) - self.lead[ids] * ((begun == 1) & ~blank)
        if self.joins is not None and self.opens is not None:
            in_word = np.zeros_like(blank)
            in_word[:, 1:] = (self.opens[ids] & ~blank)[:, :-1]
            cost = cost - (self.joins[ids] & in_word & ~blank)
        return cost

    def spell(self, row: list[int]) -> bytes:
        """Return the bytes that these tokens write."""
        return b"".join(self.pieces[token] for token in row)

    def measure(self, written: bytes, ended: bool = False) -> int:
        """Return the length of `written`, as if more text followed or, with `ended`, as a whole text.

        Bytes that are not UTF-8 cost the same as in the tables: 1 each in the unit bytes, else 0.
        """
        _, whole, split = utf8.split(b"." + written)  # after a dot, leading continuation bytes are invalid
        text = whole[1:].decode("utf-8", "ignore")
        stray = len(whole) - 1 - len(text.encode()) if self.unit.name == "bytes" else 0
        text = text.lstrip()
        if split and self.unit.name == "words":
            text += "?"
        length = self.unit.measure(text) if ended and not split else self.unit.running(text)
        return length + self._incomplete_cost(split) + stray

    def end_counts_less(self, written: bytes) -> bool:
        """Return whether the last character may cost less, or nothing, at the end of a text."""
        if self.unit.count_open and written[-1:] in (b"'", b"-"):
            return True
        return not ends_in_ascii(written)

    def character(self, ids: Integers) -> Integers:
        """Return the UTF-8 state after the last token of each row, 0 between characters: (rows,)."""
        state = np.zeros(len(ids), np.int64)
        if self.splits_characters:
            for column in ids[:, -3:].T:  # an incomplete character has at most three bytes
                state = np.maximum(self.utf8[state, column], 0)
        return state


def meter_of(tokenizer: Any, unit: str) -> Meter:
    """Return a cached meter: reading a vocabulary takes a quarter of a second."""
    return _meter(tokenizer, unit, len(tokenizer))


@lru_cache(maxsize=32)
def _meter(tokenizer: Any, unit: str, size: int) -> Meter:
    """Return the meter. `size` changes if tokens are added."""
    return Meter(tokenizer, unit)


# Upper estimate of the tokens per unit: a word has several pieces, a character up to four bytes, a grapheme several
# characters.
_TOKENS_PER_UNIT = {"tokens": 1, "bytes": 1, "words": 8, "words-cjk": 8, "graphemes": 8}


def most_tokens(length: int, unit: str) -> int:
    """Return an upper estimate of the tokens of a text. It ends a text whose last word does not end."""
    return _TOKENS_PER_UNIT.get(unit, 4) * length + 16
