"""Counting while a model writes: a unit bound to a tokenizer.

`Meter.running(ids)` says, from token ids alone, how long the text is after every token. It is a table look-up: each
token has a price. Where prices do not simply add up (a combining mark joins the letter before it, an emoji is split
over three tokens) the rows concerned, and only they, are decoded and measured. This file knows nothing of models.
"""

import json
import unicodedata
from functools import lru_cache
from typing import Any

import regex
import torch
from torch import Tensor

from . import utf8
from .units import Unit, unit_named

_METASPACE = "▁"
_BYTE_FALLBACK = regex.compile(r"<0x([0-9A-F]{2})>")
# Grapheme clusters grow through these; any other character starts a cluster of its own.
_CLUSTERING = regex.compile(
    r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}\p{GCB=Prepend}\p{GCB=RI}\p{GCB=L}\p{GCB=V}\p{GCB=T}\r]"
)


def pieces(tokenizer: Any) -> list[bytes]:
    """The bytes every token adds in the middle of a text, by id; special tokens add none.

    >>> pieces(gpt2)[284], pieces(marian)[77]
    (b' to', b' de')
    """
    size = len(tokenizer)
    special, decoder = set(tokenizer.all_special_ids), tokenizer.added_tokens_decoder  # made anew whenever asked for
    added = {i: token for i, token in decoder.items() if not token.special}
    tokens = tokenizer.convert_ids_to_tokens(list(range(size)))
    spell = _speller(tokenizer)
    table = []
    for i, token in enumerate(tokens):
        if token is None or i in special or (i in decoder and i not in added):
            table.append(b"")
        elif i in added:
            table.append(added[i].content.encode())
        else:
            table.append(spell(token))
    return table


def _speller(tokenizer: Any) -> Any:
    """How this tokenizer's decoder turns a token's name into bytes."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    decoder = json.dumps(json.loads(backend.to_str()).get("decoder")) if backend is not None else ""
    if '"ByteLevel"' in decoder:
        return _spell_byte_level
    if '"WordPiece"' in decoder:
        return lambda token: (token[2:] if token.startswith("##") else " " + token).encode()
    if '"BPEDecoder"' in decoder:
        return lambda token: token.replace("</w>", " ").encode()
    return _spell_sentencepiece


def _spell_sentencepiece(token: str) -> bytes:
    if match := _BYTE_FALLBACK.fullmatch(token):
        return bytes([int(match[1], 16)])
    return token.replace(_METASPACE, " ").encode("utf-8", "surrogatepass")


def _spell_byte_level(token: str) -> bytes:
    alphabet = _byte_alphabet()
    try:
        return token.translate(alphabet).encode("latin-1")
    except UnicodeEncodeError:  # somebody's own token, which no byte stands behind
        return b"".join(bytes([alphabet[ord(c)]]) if ord(c) in alphabet else c.encode() for c in token)


@lru_cache
def _byte_alphabet() -> dict[int, int]:
    """GPT-2's printable stand-ins for the 256 bytes, by code point: 'Ġ' is a space, 'Ċ' a line break."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in plain]
    return {b: b for b in plain} | {256 + n: b for n, b in enumerate(hidden)}


@lru_cache
def _composing() -> frozenset[str]:
    """Characters that NFC can merge with the one before them (Å from A and a ring)."""
    found = {chr(c) for c in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}  # Hangul vowels and finals
    for c in (*range(0xC0, 0x3400), *range(0xF900, 0xFB50), *range(0x11000, 0x17000)):
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            found.add(chr(int(parts[1], 16)))
    return frozenset(found)


@lru_cache
def _expanding() -> frozenset[str]:
    """Characters that NFC takes apart (a Hebrew shin with its dot is two)."""
    places = (*range(0x340, 0x3000), *range(0xFB1D, 0xFB50), *range(0x1D100, 0x1D200))
    return frozenset(chr(c) for c in places if len(unicodedata.normalize("NFC", chr(c))) > 1)


@lru_cache
def _unsettled() -> frozenset[str]:
    """Characters that NFC changes, alone or by what stands before them."""
    return _composing() | _expanding()


def _changes(text: str) -> bool:
    return not text.isascii() and any(c in _unsettled() for c in text)


@lru_cache
def _dearest(unit: Unit) -> dict[bytes, int]:
    """The most that a character can cost which NFC takes apart, by each proper beginning of its UTF-8 spelling."""
    dearest: dict[bytes, int] = {}
    for c in _expanding():
        for n in range(1, len(c.encode())):
            dearest[c.encode()[:n]] = max(dearest.get(c.encode()[:n], 0), unit.count(c))
    return dearest


@lru_cache
def _beginnings(characters: frozenset[str]) -> frozenset[bytes]:
    """Every proper beginning of the UTF-8 spelling of these characters."""
    return frozenset(c.encode()[:n] for c in characters for n in range(1, len(c.encode())))


_WIDE_SPACES = frozenset(
    chr(c) for c in (0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
)


class Meter:
    """The running length of a text in `unit`, read off token ids.

    Tables, one entry a token (vocabulary size):
      prices    units the token adds in the middle of a text; a character split over tokens is paid by its first byte
      lead      units of white space at its start, free at the start of a text
      trail     units of white space at its end, free at the end of a text
      blank     it is empty or white space only, and so free at both ends of a text; in tokens nothing is but the empty
      white     it is empty or white space only
      joins     (words) it starts inside a word if the token before leaves one open
      opens     (words) it leaves a word open
      utf8      (states, vocabulary) the state of the character it leaves behind; -1 where its bytes cannot follow
      delicate  its price may depend on its neighbours
    """

    def __init__(self, tokenizer: Any, unit: str, vocabulary: int = 0) -> None:
        self.tokenizer = tokenizer
        self.unit: Unit = unit_named(unit)
        self.signature = self.unit.signature
        if self.unit.name == "tokens":
            self.signature += f"|tokenizer:{getattr(tokenizer, 'name_or_path', '') or type(tokenizer).__name__}"
        self.pieces = pieces(tokenizer)
        self.pieces += [b""] * (vocabulary - len(self.pieces))  # a model's embedding may be larger than its tokenizer
        self._tables()

    def to(self, device: torch.device | str) -> "Meter":
        """Moves the tables to `device`."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value.to(device))
        return self

    # ---- tables

    def _tables(self) -> None:
        rows = [self._price(piece) for piece in self.pieces]
        columns = list(zip(*rows, strict=True))
        self.prices, self.lead, self.trail = (torch.tensor(c, dtype=torch.long) for c in columns[:3])
        self.blank, self.delicate = (torch.tensor(c, dtype=torch.bool) for c in columns[3:5])
        self.white = torch.tensor([not piece.decode("utf-8", "replace").strip() for piece in self.pieces])
        self.utf8 = utf8.transitions(self.pieces)
        words = self.unit.name == "words"
        texts = [p.decode("utf-8", "replace") for p in self.pieces] if words else []
        self.joins = torch.tensor([bool(t) and not t[0].isspace() for t in texts]) if words else None
        self.opens = torch.tensor([bool(t) and not t[-1].isspace() for t in texts]) if words else None
        self.splits_characters = bool((self.utf8 > 0).any())

    def _price(self, piece: bytes) -> tuple[int, int, int, bool, bool]:
        """(price, lead, trail, blank, delicate) of one token."""
        head, whole, split = utf8.split(piece)
        if self.unit.name == "tokens":
            return (1 if piece else 0), 0, 0, not piece, False
        text = whole.decode("utf-8", "ignore")
        if self.unit.name == "words":  # a part of a character is a letter of some word
            text = piece.decode("utf-8", "replace")
        count = self.unit.count
        price = len(piece) if self.unit.name == "bytes" else count(text) + self._unknown(split)
        lead = count(text) - count(text.lstrip()) if not head and text[:1].isspace() else 0
        trail = count(text) - count(text.rstrip()) if not split and text[-1:].isspace() else 0
        blank = not text.strip() and not split and not head
        return price, lead, trail, blank, self._delicate(text, split, head)

    def _unknown(self, split: bytes) -> int:
        """What a character costs of which only the beginning is written: the most it can turn out to cost."""
        match self.unit.name:
            case "bytes":
                return len(split)
            case "words":
                return 0
        usual = (2 if self.unit.name in ("cells", "tweet") else 1) if split else 0
        return max(usual, _dearest(self.unit).get(split, 0))

    def _delicate(self, text: str, split: bytes, head: int) -> bool:
        """Can this token's price depend on the tokens beside it? When in doubt, yes: it costs time, not truth."""
        if split in _beginnings(_WIDE_SPACES):  # may turn out to be white space
            return True
        match self.unit.name:
            case "chars" | "chars-nospace":
                return _changes(text) or split in _beginnings(_unsettled())
            case "cells":
                return bool(split or head)
            case "graphemes":
                return bool(split or head or _CLUSTERING.search(text))
            case "tweet":
                return bool(split or head or "." in text or _changes(text) or _CLUSTERING.search(text))
        return False

    # ---- counting

    def running(self, ids: Tensor, start: Tensor | None = None) -> Tensor:
        """Units written after each token, as if more text followed: (batch, time) -> (batch, time).

        `start` (batch,): the column of the first token that counts; what stands before it (a prompt) is free.
        """
        counts = self.costs(ids, start).cumsum(1)
        for row in self._delicate_rows(ids, start):
            first = int(start[row]) if start is not None else 0
            exact = self._recount(ids[row, first:].tolist())
            counts[row, first:] = torch.tensor(exact, dtype=counts.dtype, device=counts.device)
        return counts

    def _delicate_rows(self, ids: Tensor, start: Tensor | None) -> list[int]:
        delicate = self.delicate[ids]  # (batch, time)
        if start is not None:
            delicate = delicate & (torch.arange(ids.shape[1], device=ids.device) >= start[:, None])
        return delicate.any(1).nonzero().flatten().tolist()

    def _recount(self, row: list[int]) -> list[int]:
        """The running counts of a row in which tokens flow into each other, by measuring every prefix."""
        written, counts = b"", []
        for token in row:
            written += self.pieces[token]
            counts.append(self.measure(written))
        return counts

    def spell(self, row: list[int]) -> bytes:
        """What these tokens write."""
        return b"".join(self.pieces[token] for token in row)

    def measure(self, written: bytes, settled: bool = False) -> int:
        """The length of what was written, as if more followed or, `settled`, if it ended here.

        Bytes that are no UTF-8 cost what `_price` says: nothing, or themselves.
        """
        _, whole, split = utf8.split(b"." + written)  # the dot: a leading continuation byte is no character
        text = whole[1:].decode("utf-8", "ignore")
        stray = len(whole) - 1 - len(text.encode()) if self.unit.name == "bytes" else 0
        text = text.lstrip()
        if split and self.unit.name == "words":
            text += "?"
        elif settled and not split:
            text = text.rstrip()
        return self.unit.count(text) + self._unknown(split) + stray

    def costs(self, ids: Tensor, start: Tensor | None = None) -> Tensor:
        """What each token adds, delicate neighbours aside: (batch, time)."""
        cost = self.prices[ids]  # (batch, time)
        blank = self.blank[ids]
        if start is not None:
            before = torch.arange(ids.shape[1], device=ids.device) < start[:, None]
            cost, blank = cost.masked_fill(before, 0), blank | before
        if self.unit.name == "tokens":
            return cost
        begun = (~blank).cumsum(1)
        cost = cost.masked_fill(begun == 0, 0)
        cost = cost - self.lead[ids] * ((begun == 1) & ~blank)
        if self.joins is not None and self.opens is not None:
            open_before = torch.zeros_like(blank)
            open_before[:, 1:] = (self.opens[ids] & ~blank)[:, :-1]
            cost = cost - (self.joins[ids] & open_before & ~blank).long()
        return cost

    def character(self, ids: Tensor) -> Tensor:
        """The UTF-8 state that the last tokens leave: (batch,), 0 between characters."""
        state = torch.zeros(len(ids), dtype=torch.long, device=ids.device)
        if self.splits_characters:
            for column in ids[:, -3:].T:  # what is still incomplete began at most three bytes ago
                state = self.utf8[state, column].clamp(min=0)
        return state
