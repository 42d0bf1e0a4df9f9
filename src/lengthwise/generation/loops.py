"""Loops: notice while a text is decoded that it repeats itself, and lower the scores of the tokens that would go on.

A text loops with period p if its last tokens equal those p before, for long enough: two more copies of a short phrase,
or 16 tokens; 24 if p is over 96: then a sentence is repeated after other sentences. If over a third of the last tokens
are copies, 6 tokens are enough: a model that has repeated sentences with one word changed continues to do so.
Tokens that differ in case, in white space or in digits are alike: "1. Cake 2. Cake 3. Cake" is a loop.
If a number differs, a whole copy is needed; if several do, 96 tokens: they may be the rows of a table or of data.
The guard lowers the scores of the tokens that would continue the loop, at the start of a word; anywhere if no word has
begun in a whole period. If the loop has no letters, it lowers those of all tokens without letters, but brackets: other
digits or marks would be the next loop. After 80 letters and hyphens of a word, it lowers the scores of all
tokens that would continue the word.
Scores are lowered, not banned: if the budget leaves no other token, the text still reaches its length.
Depends on token ids and their bytes only, not on a unit, a budget or an engine.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from ..arrays import Array, converter
from ..length.meter import Booleans, Integers, Meter
from ..length.vocabulary import Vocabulary

_NEAR = 96  # tokens of the longest period for which `_NEEDED` has a number
_PERIODS = np.arange(1, _NEAR + 1)
_NEEDED = np.clip(2 * _PERIODS, 8, 16)  # tokens that must be like those one period before
_NEEDED_FAR = 24  # the same for longer periods
_NEEDED_WITHOUT_LETTERS = 32  # digits of a number, a line of dashes
_NEEDED_AGAIN = 12  # the same, once such a loop was left: the model returns to it
_NEEDED_WITH_NUMBERS = 96  # "7 x 2 = 14 7 x 3 = 21": more numbers change than that of an item
_LEAST = int(_NEEDED.min())
_STRETCH, _STRETCH_WORDS = 6, 4  # tokens of a copy, and how many of them begin a word: no cells of a table, no code
_COPIES = 0.35  # of the last tokens: if more of them are in copies, `_STRETCH` tokens are needed
_WINDOW = 64  # tokens over which the share of copies is averaged
_REPLAYED = 4 * _NEAR  # tokens at the end of a written text that the guard compares with earlier ones when it begins
_LONGEST_WORD = 80  # letters and hyphens
_CLOSERS = (")", "]", "}")  # may end a loop without letters: "[0, 0, 0]"
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
    starts: Booleans  # it begins a word, and has a letter

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
        self._by_kind = self.kind[:-1].argsort(kind="stable")
        self._ends = np.bincount(kinds).cumsum()  # of the kinds in that order
        self.starts = self.lettered & self.begins_word
        closes = np.array([text.lstrip().startswith(_CLOSERS) for text in vocabulary.texts])
        in_letter = self.lettered | self.opens_letter | self.in_character
        # (ids,) of tokens without a letter that close nothing; special tokens have no bytes
        self.wordless = (~in_letter[:-1] & ~closes & (vocabulary.sizes > 0)).nonzero()[0]

    def alike(self, tokens: Iterable[int]) -> Integers:
        """Return the tokens of the same kinds as these."""
        kinds = {int(self.kind[token]) for token in tokens}
        found = (self._by_kind[self._ends[kind - 1] if kind else 0 : self._ends[kind]] for kind in kinds)
        return np.concatenate([np.empty(0, np.int64), *found])


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

    _ARRAYS: tuple[str, ...] = ("_past", "_kinds", "_lettered", "_run", "_longest", "_copies")
    _ARRAYS += ("_digits", "_unlettered", "_letters", "_letter_opened", "_left_wordless")

    def __init__(self, tables: LoopTables, written: Sequence[Sequence[int]]) -> None:
        self.tables, rows = tables, len(written)
        # (rows, room) of all tokens, the newest first, from column `_first` on; -1: none.
        # `_kinds` has the kinds of the tokens in `_past`, each looked up once.
        self._first = room = 2 * _NEAR
        self._past, self._kinds = np.full((rows, room), -1), np.full((rows, room), -1)
        self._lettered = np.zeros((rows, room), np.bool_)
        # (rows, periods)
        self._run = np.zeros((rows, room), np.int32)  # how many of the last tokens are like those a period before
        # (rows,)
        self._longest = np.zeros(rows, np.int64)  # of the runs
        self._copies = np.zeros(rows)  # the share of copies among the last words, a running mean
        self._digits, self._unlettered = np.zeros(rows, np.int64), np.zeros(rows, np.int64)  # such tokens at the end
        self._letters = np.zeros(rows, np.int64)  # letters at the end
        self._letter_opened = np.zeros(rows, np.bool_)
        self._left_wordless = np.zeros(rows, np.bool_)  # whether a loop without letters was left before
        for back in range(max(map(len, written), default=0), 0, -1):
            tokens = np.array([ids[-back] if back <= len(ids) else -1 for ids in written])
            if back > _REPLAYED:
                self._append(tokens)
                continue
            for row in self._may_loop().nonzero()[0].tolist():
                self._going_on(row)  # for what it remembers
            self.update(tokens)

    def apply(self, scores: Array) -> Array:
        """Return the scores (rows, vocabulary) with those of the tokens that would go on with a loop lowered."""
        endless = self._letters > _LONGEST_WORD
        kept, convert = None, converter(scores)
        for row in (self._may_loop() | endless).nonzero()[0].tolist():
            tokens = self._going_on(row)
            if endless[row]:
                tokens = np.concatenate([tokens, self.tables.joins.nonzero()[0]])
            if len(tokens):
                kept = scores + 0 if kept is None else kept
                kept[row, convert(tokens)] -= _LOWERED
        return scores if kept is None else kept

    def _may_loop(self) -> Booleans:
        """Return the rows in which enough tokens are copies, whatever the period."""
        may_loop: Booleans = self._longest >= np.where(self._copies < _COPIES, _LEAST, _STRETCH)
        return may_loop

    def _going_on(self, row: int) -> Integers:
        """Return the tokens with which the loops of this row would go on: at the next word that begins.

        Remembers whether it leaves a loop without letters.
        """
        tables, recent, run = self.tables, self._past[row, self._first :], self._run[row]
        most = _NEEDED_FAR if self._copies[row] < _COPIES else _STRETCH
        places = (run >= min(_LEAST, most)).nonzero()[0]  # few of the periods
        lettered = self._unlettered[row] <= places
        needed = np.where(places < _NEAR, np.minimum(_NEEDED[np.minimum(places, _NEAR - 1)], most), most)
        overdue = run[places] > needed + places  # no word began in a whole period
        begins = tables.begins_word[recent[places]] | (not tables.ends_in_word[recent[0]]) | overdue
        wordless = _NEEDED_AGAIN if self._left_wordless[row] else _NEEDED_WITHOUT_LETTERS
        noticed = run[places] >= np.where(lettered, needed, wordless)
        between = ~tables.in_character[recent[places]]  # the next token begins a character
        noticed &= np.where(lettered, self._lettered[row, self._first + places] & begins, between)
        tokens, left = set[int](), False
        for at, is_lettered in zip(places[noticed].tolist(), lettered[noticed].tolist(), strict=True):
            if int(recent[at]) not in tokens and not self._may_be_data(row, at, is_lettered):
                tokens.add(int(recent[at]))
                left |= not is_lettered
        self._left_wordless[row] |= left
        found = tables.alike(tokens)
        return np.concatenate([found, tables.wordless]) if left else found

    def _may_be_data(self, row: int, at: int, lettered: bool) -> bool:
        """Return whether the numbers differ from those a period before, other than the one that counts items."""
        period, run = at + 1, int(self._run[row, at])
        if run >= _NEEDED_WITH_NUMBERS:
            return False
        recent = self._past[row, self._first :]
        new, old = (recent[start : start + min(run, period)] for start in (0, period))
        differs = self.tables.digit[new] & (new != old)
        numbers = int(differs.sum() - (differs[1:] & differs[:-1]).sum())  # adjacent digits are one number
        return numbers > (lettered and run >= period)

    def update(self, tokens: NDArray[np.int64]) -> None:
        """Append the chosen tokens, one for each row; -1: the row has not begun, or has ended."""
        self._compare(tokens)
        self._append(tokens)
        last = self._past[:, self._first : self._first + _STRETCH]
        copied = (self._longest >= _STRETCH) & (self.tables.starts[last].sum(1) >= _STRETCH_WORDS)
        self._copies += (copied - self._copies) / _WINDOW

    def _append(self, tokens: NDArray[np.int64]) -> None:
        """Append the tokens, without comparing them with those before."""
        tables = self.tables
        if not self._first:
            self._make_room()
        self._first -= 1
        lettered = tables.lettered[tokens] | (tables.in_character[tokens] & self._letter_opened)
        self._letter_opened = np.where(tables.in_character[tokens], self._letter_opened, tables.opens_letter[tokens])
        for past, new in ((self._past, tokens), (self._kinds, tables.kind[tokens]), (self._lettered, lettered)):
            past[:, self._first] = new
        self._unlettered = (self._unlettered + 1) * ~lettered
        self._letters = tables.letters[tokens] + self._letters * tables.all_letters[tokens]

    def _compare(self, tokens: NDArray[np.int64]) -> None:
        """Update how many of the last tokens, with these, are like those a period before."""
        tables, past = self.tables, self._past[:, self._first :]
        alike = self._kinds[:, self._first :] == tables.kind[tokens][:, None]
        alike &= (tokens >= 0)[:, None]
        self._digits = (self._digits + 1) * tables.digit[tokens]
        if self._digits.any():  # inside one number, digits are alike only if they are equal
            inside = np.arange(1, min(int(self._digits.max()), past.shape[1]) + 1)
            equal = past[:, : len(inside)] == tokens[:, None]
            alike[:, : len(inside)] &= (self._digits[:, None] < inside) | equal
        run = self._run[:, : past.shape[1]]
        run += 1
        run *= alike
        self._longest = run.max(1, initial=0).astype(np.int64)

    def _make_room(self) -> None:
        """Double the room for tokens."""
        self._first = self._past.shape[1]
        for name in ("_past", "_kinds", "_lettered"):
            past = getattr(self, name)
            setattr(self, name, np.concatenate([np.full_like(past, -1), past], 1))
        self._run = np.concatenate([self._run, np.zeros_like(self._run)], 1)

    def select(self, rows: NDArray[np.int64]) -> None:
        """Keep these rows in this order. A row that is given twice is forked; one that is not given is dropped."""
        for name in self._ARRAYS:
            setattr(self, name, getattr(self, name)[rows])
