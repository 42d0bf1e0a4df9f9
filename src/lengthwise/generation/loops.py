"""Loops: notice while a text is decoded that it repeats itself, and lower the scores of the tokens that would go on.

A text loops with period p if its last tokens equal those p before, for long enough: two more copies of a short phrase,
or 16 tokens. Tokens that differ in case, in white space or in digits are alike: "1. Cake 2. Cake 3. Cake" is a loop.
If a number differs, a whole copy is needed; if several do, 96 tokens: they may be the rows of a table or of data.
The next word of the loop is lowered, and the text goes on otherwise. A word that does not end is ended.
Scores are lowered, not banned: if the budget leaves no other token, the text still reaches its length.
Depends on token ids and their bytes only, not on a unit, a budget or an engine.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from ..arrays import Array, converter
from ..length.meter import Booleans, Integers, Meter
from ..length.vocabulary import Vocabulary

LONGEST = 96  # tokens of the longest period
_PERIODS = np.arange(1, LONGEST + 1)
_NEEDED = np.clip(2 * _PERIODS, 8, 16)  # tokens that must be like those one period before
_NEEDED_WITHOUT_LETTERS = np.maximum(40, _NEEDED)  # digits of a number, a line of dashes
_NEEDED_WITH_NUMBERS = 96  # "7 x 2 = 14 7 x 3 = 21": more numbers change than that of an item
_LEAST = int(_NEEDED.min())
_LONGEST_WORD = 80  # letters and hyphens
_LOWERED = 1000.0  # nats: such a token is chosen only if no other is allowed

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}\p{Javanese}\p{Balinese}"
_BEGINS_WORD = regex.compile(rf"\s|[{_UNSPACED}]")
_LETTER = regex.compile(r"\p{L}")
_IN_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]\Z")
_LETTERS = rf"(?V1)[[\p{{L}}\p{{M}}'’-]--[{_UNSPACED}]]+"  # of words, in scripts with spaces between them
_FIRST_LETTERS, _LAST_LETTERS = regex.compile(_LETTERS), regex.compile(_LETTERS + r"\Z")


class _Token(NamedTuple):
    """What the guard looks up for a token."""

    digit: bool = False  # it has digits only
    lettered: bool = False  # it has a letter
    begins_word: bool = False  # it starts with white space, or with a script that has no spaces between words
    ends_in_word: bool = False  # its last character is a letter or a digit
    joins: bool = False  # it starts with a letter or a hyphen, in scripts that have spaces between words
    letters: int = 0  # letters and hyphens at its end, in such scripts
    all_letters: bool = False  # it has no other character
    opens_letter: bool = False  # it has the first bytes of a character, and they are those of a letter
    in_character: bool = False  # it starts with bytes of a character that another token has begun


class LoopTables:
    """The properties of all tokens of a vocabulary, as arrays; see `_Token`. The last entry is for no token, -1."""

    kind: Integers  # equal for tokens that are alike: with the same letters in any case, or with digits only
    digit: Booleans
    lettered: Booleans
    begins_word: Booleans
    ends_in_word: Booleans
    joins: Booleans
    letters: Integers
    all_letters: Booleans
    opens_letter: Booleans
    in_character: Booleans

    def __init__(self, vocabulary: Vocabulary) -> None:
        spaced, sizes = vocabulary.spaced, vocabulary.sizes
        words = vocabulary.plain & np.array([text.lstrip().isalpha() for text in vocabulary.texts])
        # Words of ASCII letters, which are most tokens, are described all at once.
        columns: dict[str, Any] = {"lettered": words, "begins_word": words & spaced, "ends_in_word": words}
        columns |= {"joins": words & ~spaced, "letters": (sizes - spaced) * words, "all_letters": words & ~spaced}
        for field, none in _Token()._asdict().items():
            setattr(self, field, np.append(columns.get(field, np.full(len(words), none)), none))
        kinds, names = [], dict[str | bytes, int]()
        for n, is_word in enumerate(words.tolist()):
            if is_word:
                name: str | bytes = vocabulary.texts[n].lstrip().lower()
            else:
                name, token = _described(vocabulary.pieces[n])
                for field, value in zip(_Token._fields, token, strict=True):
                    getattr(self, field)[n] = value
            kinds.append(names.setdefault(name, len(names)))
        self.kind = np.array([*kinds, -1])

    def alike(self, tokens: Sequence[int]) -> Integers:
        """Return the tokens of the same kinds as these."""
        found: Integers = np.isin(self.kind, self.kind[tokens]).nonzero()[0]
        return found


def _described(piece: bytes) -> tuple[str | bytes, _Token]:
    """Return the name of the token's kind, and its properties."""
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return piece, _part_of_character(piece)
    bare_text = text.strip()
    digit, last = bare_text.isdecimal(), _LAST_LETTERS.search(text)
    letters = len(last[0]) if last else 0
    return "0" if digit else bare_text.casefold() or text, _Token(
        digit,
        _LETTER.search(text) is not None,
        _BEGINS_WORD.match(text) is not None,
        _IN_WORD.search(text) is not None,
        _FIRST_LETTERS.match(text) is not None,
        letters,
        0 < letters == len(text),
    )


def _part_of_character(piece: bytes) -> _Token:
    """Return the properties of a token that has a part of a character; the first byte shows the script.

    0xE2 and 0xF0 begin punctuation, symbols and emoji. A loop is left at the last byte of a letter: the first bytes of
    all letters of a script are the same.
    """
    first = piece.lstrip()[:1]
    if b"\x80" <= first < b"\xc0":
        return _Token(begins_word=True, ends_in_word=True, in_character=True)
    return _Token(ends_in_word=True, opens_letter=b"\xc3" <= first < b"\xf0" and first != b"\xe2")


def loop_tables_of(meter: Meter) -> LoopTables:
    """Return the tables of the meter's tokenizer, whatever its unit."""
    return _tables(meter.vocabulary)


@lru_cache(maxsize=8)
def _tables(vocabulary: Vocabulary) -> LoopTables:
    """Return the tables. Cached: reading a vocabulary takes a tenth of a second."""
    return LoopTables(vocabulary)


class LoopGuard:
    """Notices loops in a batch of rows. `written`: the ids of a text that a row continues.

    In each step, `apply` lowers scores and `update` receives the chosen tokens.
    """

    _ARRAYS = ("_recent", "_lettered", "_run", "_digits", "_unlettered", "_letters", "_letter_opened")

    def __init__(self, tables: LoopTables, written: Sequence[Sequence[int]]) -> None:
        self.tables, rows = tables, len(written)
        # of the last tokens, the newest first; two of the longest periods, to compare a whole copy
        self._recent = np.full((rows, 2 * LONGEST), -1)  # -1: none
        self._lettered = np.zeros((rows, LONGEST), np.bool_)
        # (rows, periods)
        self._run = np.zeros((rows, LONGEST), np.int64)  # how many of the last tokens are like those a period before
        # (rows,)
        self._digits, self._unlettered = np.zeros(rows, np.int64), np.zeros(rows, np.int64)  # such tokens at the end
        self._letters = np.zeros(rows, np.int64)  # letters at the end
        self._letter_opened = np.zeros(rows, np.bool_)
        tails = [list(ids[-3 * LONGEST :]) for ids in written]
        for back in range(max(map(len, tails), default=0), 0, -1):
            self.update(np.array([ids[-back] if back <= len(ids) else -1 for ids in tails]))

    def apply(self, scores: Array) -> Array:
        """Return the scores (rows, vocabulary) with those of the tokens that would go on with a loop lowered."""
        if self._run.max() < _LEAST and self._letters.max() <= _LONGEST_WORD:
            return scores
        lettered = self._unlettered[:, None] < _PERIODS
        noticed = self._run >= np.where(lettered, _NEEDED, _NEEDED_WITHOUT_LETTERS)  # (rows, periods)
        endless = self._letters > _LONGEST_WORD
        kept, convert = None, converter(scores)
        for row in (noticed.any(1) | endless).nonzero()[0].tolist():
            tokens = self._going_on(row, noticed[row].nonzero()[0], lettered[row])
            if endless[row]:
                tokens = np.concatenate([tokens, self.tables.joins.nonzero()[0]])
            if len(tokens):
                kept = scores + 0 if kept is None else kept
                kept[row, convert(tokens)] -= _LOWERED
        return scores if kept is None else kept

    def _going_on(self, row: int, noticed: Integers, lettered: Booleans) -> Integers:
        """Return the tokens with which a loop of one of these periods would go on: at the next word that begins."""
        tables, recent = self.tables, self._recent[row]
        after_word = tables.ends_in_word[recent[0]]
        tokens = []
        for at in noticed.tolist():
            overdue = self._run[row, at] > _NEEDED[at] + at  # no word began in a whole period
            begins = tables.begins_word[recent[at]] or not after_word or overdue
            goes_on = not lettered[at] or (self._lettered[row, at] and begins)
            if goes_on and not self._may_be_data(row, at, bool(lettered[at])):
                tokens.append(int(recent[at]))
        return tables.alike(tokens) if tokens else np.empty(0, np.int64)

    def _may_be_data(self, row: int, at: int, lettered: bool) -> bool:
        """Return whether the numbers differ from those a period before, other than the one that counts items."""
        period, run = at + 1, int(self._run[row, at])
        if run >= _NEEDED_WITH_NUMBERS:
            return False
        new, old = (self._recent[row, start:][: min(run, period)] for start in (0, period))
        differs = self.tables.digit[new] & (new != old)
        numbers = int(differs.sum() - (differs[1:] & differs[:-1]).sum())  # adjacent digits are one number
        return numbers > (lettered and run >= period)

    def update(self, tokens: NDArray[np.int64]) -> None:
        """Append the chosen tokens, one for each row; -1: the row has not begun, or has ended."""
        tables, recent = self.tables, self._recent[:, :LONGEST]
        alike = tables.kind[recent] == tables.kind[tokens][:, None]
        alike &= (tokens >= 0)[:, None]
        self._digits = (self._digits + 1) * tables.digit[tokens]
        if self._digits.any():  # inside one number, digits are alike only if they are equal
            alike &= (self._digits[:, None] < _PERIODS) | (recent == tokens[:, None])
        self._run += 1
        self._run *= alike
        lettered = tables.lettered[tokens] | (tables.in_character[tokens] & self._letter_opened)
        self._letter_opened = np.where(tables.in_character[tokens], self._letter_opened, tables.opens_letter[tokens])
        for past, new in ((self._recent, tokens), (self._lettered, lettered)):
            past[:, 1:] = past[:, :-1]
            past[:, 0] = new
        self._unlettered = (self._unlettered + 1) * ~lettered
        self._letters = tables.letters[tokens] + self._letters * tables.all_letters[tokens]

    def select(self, rows: NDArray[np.int64]) -> None:
        """Keep these rows in this order. A row that is given twice is forked; one that is not given is dropped."""
        for name in self._ARRAYS:
            setattr(self, name, getattr(self, name)[rows])
