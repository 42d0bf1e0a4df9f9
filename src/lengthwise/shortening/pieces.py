"""Pieces: split a text into sentences of words and marks, and join the words that are kept into a text again.

A mark (comma, bracket, full stop) is a piece of its own, so that a clause can be left out together with its commas.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import regex

from ..length.sentences import finished_ends
from ..translation.placeholders import split_placeholders

_WORD = r"[\p{L}\p{N}\p{M}_]"
_PIECE = regex.compile(
    r"(?<!\w)(['\"])\w[\w-]*\1(?!\w)|"  # a word in straight quotation marks
    rf"(?:\p{{L}}\.){{2,}}|[€$£#]?{_WORD}+(?:(?:[-'’./&@+]|::|(?<=\d)[:,](?=\d)){_WORD}+)*(?:%|\+\+|#|['’](?=\s|$))?"
    r"|\.\.\.|--|\S"
)
OPENING, CLOSING = "([{“«‘", ")]}”»"
FINAL = (".", "!", "?", "…", "...", ":", ";", "。", "！", "？")
_VOWEL = regex.compile(r"(?i:(?!uni|use|usu|eur|one\b|once)[aeiou]|hour|honest)|[FHLMNRSX](?=[A-Z\d])|8|11\b|18\b")


@dataclass(frozen=True)
class Piece:
    """A word, a mark or a placeholder. `spaced`: white space stands before it."""

    text: str
    spaced: bool
    is_word: bool
    is_placeholder: bool = False

    @property
    def lower(self) -> str:
        return self.text.lower()


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text; line breaks become spaces.

    >>> split_sentences("It works. Dr. Who agrees!")
    ['It works.', 'Dr. Who agrees!']
    """
    text = " ".join(text.split())
    ends = sorted({*finished_ends(text), len(text)})
    return [part for start, end in zip([0, *ends[:-1]], ends, strict=True) if (part := text[start:end].strip())]


def split_pieces(sentence: str) -> list[Piece]:
    """Return the pieces of a sentence.

    >>> [piece.text for piece in split_pieces("Open {name}, Dr. X's 3.5-inch disk (old).")]
    ['Open', '{name}', ',', 'Dr.', "X's", '3.5-inch', 'disk', '(', 'old', ')', '.']
    """
    found: list[Piece] = []
    spaced = False
    for part, is_placeholder in split_placeholders(sentence):
        at = 0
        if is_placeholder:
            found.append(Piece(part, spaced, True, True))
            spaced = False
            continue
        for match in _PIECE.finditer(part):
            spaced = spaced or match.start() > at
            found.append(Piece(match[0], spaced and bool(found), regex.search(_WORD, match[0]) is not None))
            spaced, at = False, match.end()
        spaced = spaced or at < len(part)
    return _merged(found)


def _merged(pieces: list[Piece]) -> list[Piece]:
    """Join words and placeholders that have nothing between them ("{n}x"), and abbreviations with their full stop."""
    merged: list[Piece] = []
    for place, piece in enumerate(pieces):
        before = merged[-1] if merged else None
        follows = before is not None and before.is_word and not piece.spaced
        dotted = piece.text == "." and place + 1 < len(pieces)  # a full stop inside a sentence belongs to its word
        if follows and before is not None and (piece.is_word or dotted):
            held = before.is_placeholder or piece.is_placeholder
            merged[-1] = replace(before, text=before.text + piece.text, is_placeholder=held)
        else:
            merged.append(piece)
    return merged


def join_pieces(pieces: Sequence[Piece]) -> str:
    """Return the text of the pieces, with spaces between words and the right form of "a" and "an"."""
    return "".join(written_pieces(pieces))


def written_pieces(pieces: Sequence[Piece]) -> list[str]:
    """Return what the text of the pieces has for each: the piece, the space before it, the right form of "a"."""
    found = []
    for place, piece in enumerate(pieces):
        written = piece.text
        if written in ("a", "an", "A", "An") and place + 1 < len(pieces) and pieces[place + 1].is_word:
            written = written[0] + ("n" if _VOWEL.match(pieces[place + 1].text) else "")
        found.append((" " if piece.spaced and place else "") + written)
    return found


def capitalised(piece: Piece) -> Piece:
    """Return the piece with a capital first letter, unless it is a placeholder or has capitals inside (iPhone)."""
    plain = piece.is_word and not piece.is_placeholder and piece.text == piece.lower and "/" not in piece.text
    return replace(piece, text=piece.text[:1].upper() + piece.text[1:]) if plain else piece
