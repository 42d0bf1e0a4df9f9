"""The tokens of a vocabulary as bytes, and what of them is the same in every unit. Costs are in `meter.py`."""

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..protocols import Tokenizer
from . import utf8

_METASPACE, _BYTE_SPACE = "▁", "Ġ"  # a space in the tokens of SentencePiece, and of byte-level vocabularies
_PLAIN_WORD = re.compile(rb" ?[A-Za-z0-9]+")  # most tokens of a vocabulary
_THAI = "\u0e00"  # the first script without spaces between words, and the next after those of Europe and India
_JOINERS = ("-", "'", "’")
_BYTE_FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")


class Vocabulary:
    """The tokens of a tokenizer. Arrays have one entry per token.

    pieces    the bytes that it adds in the middle of a text
    texts     these as text, with U+FFFD for parts of characters
    sizes     the number of its bytes
    plain     whether it is a word of ASCII letters and digits, with or without a space before it
    white     whether it is empty or white space
    spaced    whether it starts with a space
    solid     whether its last character is ASCII and not white space
    fences    whether it has a backtick or a tilde: without these there is no block of code
    utf8      (states, vocabulary) the UTF-8 state after it; -1 where its bytes cannot follow
    """

    def __init__(self, tokenizer: Tokenizer, size: int) -> None:
        self.pieces = pieces(tokenizer)
        self.pieces += [b""] * (size - len(self.pieces))  # a model's embedding may be larger than its tokenizer
        self.texts = [piece.decode("utf-8", "replace") for piece in self.pieces]
        self.sizes = np.array([len(piece) for piece in self.pieces])
        self.spaced = np.array([piece[:1] == b" " for piece in self.pieces])
        self.plain = np.array([_PLAIN_WORD.fullmatch(piece) is not None for piece in self.pieces])
        self.white, self.solid = ~self.plain, self.plain.copy()
        self.fences = np.zeros(len(self.pieces), np.bool_)
        for n in (~self.plain).nonzero()[0].tolist():
            piece = self.pieces[n]
            self.white[n], self.solid[n] = not self.texts[n].strip(), ends_in_ascii(piece)
            self.fences[n] = b"`" in piece or b"~" in piece
        self.utf8 = utf8.transitions(self.pieces)

    def inside_words(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each token goes on with a word that the token before it has begun: (rows, time).

        Hyphens and apostrophes belong to words. In scripts without spaces between words, such as Thai or Chinese, no
        token does: it cannot be told.
        """
        found = self._begins[ids]
        found[:, 1:] &= self._ends[ids][:, :-1]
        found[:, :1] = False
        return found

    @cached_property
    def _begins(self) -> NDArray[np.bool_]:
        return np.array([text[:1] in _JOINERS or (text[:1].isalpha() and text[0] < _THAI) for text in self.texts])

    @cached_property
    def _ends(self) -> NDArray[np.bool_]:
        return np.array([text[-1:].isalpha() and text[-1] < _THAI for text in self.texts])


def vocabulary_of(tokenizer: Any, size: int) -> Vocabulary:
    """Return a cached vocabulary, which the meters of all units share. `size` changes if tokens are added."""
    return _vocabulary(tokenizer, size)


@lru_cache(maxsize=16)
def _vocabulary(tokenizer: Any, size: int) -> Vocabulary:
    return Vocabulary(tokenizer, size)


def ends_in_ascii(written: bytes) -> bool:
    """Return whether the last character is ASCII and not white space."""
    return b" " < written[-1:] < b"\x7f"


def pieces(tokenizer: Tokenizer) -> list[bytes]:
    """Return the bytes that each token adds in the middle of a text, by id; special tokens add none.

    b" to" for token 284 of GPT-2.
    """
    if (own := getattr(tokenizer, "pieces", None)) is not None:  # a tokenizer that spells its tokens itself
        return list(own())
    special, decoder = set(tokenizer.all_special_ids), tokenizer.added_tokens_decoder  # slow properties: read once
    spell = _speller(tokenizer)
    table = []
    for i, token in enumerate(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))):
        added = decoder.get(i)
        if token is None or i in special or (added is not None and added.special):
            table.append(b"")
        else:
            table.append(spell(token) if added is None else added.content.encode())
    return table


def _speller(tokenizer: Tokenizer) -> Callable[[str], bytes]:
    """Return the function with which this tokenizer's decoder turns a token into bytes."""
    backend = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    decoder = "" if backend is None else backend.__getstate__().decode()  # JSON; that of the whole tokenizer is slow
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
    bare = token[1:] if token[:1] == _BYTE_SPACE else token
    if bare.isascii():  # most tokens; the alphabet spells these bytes as they are
        return (bare if bare is token else f" {bare}").encode()
    alphabet = _byte_alphabet()
    try:
        return token.translate(alphabet).encode("latin-1")
    except UnicodeEncodeError:  # a user-defined token with characters outside the byte alphabet
        return b"".join(bytes([alphabet[ord(c)]]) if ord(c) in alphabet else c.encode() for c in token)


@lru_cache
def _byte_alphabet() -> dict[int, int]:
    """Return the byte for each code point of GPT-2's byte alphabet: 'Ġ' is a space, 'Ċ' a line break."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in plain]
    return {b: b for b in plain} | {256 + n: b for n, b in enumerate(hidden)}
