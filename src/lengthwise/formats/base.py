"""The values of this folder: a document, its entries with their places and limits, and a format that finds them."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

_LINE_END = re.compile(r"\r\n?|\n")


class FormatError(ValueError):
    """A file cannot be read as its format says. `line` is counted from 1; 0 means the file as a whole."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")
        self.path, self.line, self.reason = path, line, reason


@dataclass(eq=False)
class Document:
    """The text of a file: `bom` and the text in `encoding` are the file's bytes."""

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bytes = b""

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in _LINE_END.finditer(self.text))]

    @cached_property
    def line_end(self) -> str:
        """The first line end of the text."""
        found = _LINE_END.search(self.text)
        return found[0] if found else "\n"

    @cached_property
    def escapes_all(self) -> bool:
        r"""Whether characters outside ASCII are written as \u00e9 throughout the text."""
        return self.text.isascii() and "\\u" in self.text

    def line(self, offset: int) -> int:
        """Return the number of the line, from 1, that the character at `offset` is in."""
        return bisect_right(self._line_starts, offset)

    def line_start(self, number: int) -> int:
        """Return where a line begins; after the last line, where the text ends."""
        return self._line_starts[number - 1] if number <= len(self._line_starts) else len(self.text)

    def line_text(self, number: int) -> str:
        """Return a line, without its end."""
        start = self._line_starts[number - 1]
        end = self._line_starts[number] if number < len(self._line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def error(self, offset: int, reason: str) -> FormatError:
        return FormatError(self.path, self.line(offset), reason)


class Place(NamedTuple):
    """Where an entry's text is: from character `start` up to `end` of the document, beginning in `line`."""

    start: int
    end: int
    line: int


class Edit(NamedTuple):
    """Characters `start` to `end` of the document are replaced by `text`, which is written as it is."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Limit:
    """How long a text may be: `low` to `high` (None: no maximum) of `unit`, in at most `lines` lines.

    `each_line`: the numbers are for each line. `wraps`: the program that shows the text breaks its lines itself.
    `unit` is one of `UNITS`, or another one, such as pixels, that cannot be counted here.
    `said`: the words that set the limit; `file` and `line`: where they are (line 0: not in a line of a file).
    `shared_by`: the name of the unit whose texts have this limit together; "": the text has it alone.
    """

    high: int | None
    unit: str = "chars"
    said: str = ""
    file: str = ""
    line: int = 0
    low: int = 0
    lines: int | None = None
    each_line: bool = False
    wraps: bool = False
    shared_by: str = ""

    @property
    def origin(self) -> str:
        """The words that set the limit, and where they are."""
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return f"{self.said} ({place})" if place else self.said


@dataclass(eq=False, slots=True)
class Entry:
    """One text of a file.

    `text`: what the file says, with the format's escapes decoded; "" if it is not translated.
    `shown`: the text as a reader sees it, without markup. `source`: the source text, if the file has it.
    `flags`: fuzzy, approved, unfinished, final, or fixed, which means that the text must not be translated.
    `markup`: the text is a fragment of the format's markup, with tags and entities as they are written.
    `seconds`: how long a subtitle is on the screen; `start`: from when on. `track`: its style and speaker (ASS).
    `around`: what to write before and after a new text, if the element that holds it is not in the file yet.
    `form`: the plural form that the text is for: a category of CLDR, such as few, or the number of a form in gettext.
    `source_markup`: as `markup`, of the source. `plural`: the source of the other plural forms (gettext).
    `gap`: what is shown between the text before it in its unit and this one (XLIFF 2).
    """

    id: str
    text: str
    place: Place
    shown: str
    source: str | None = None
    limits: tuple[Limit, ...] = ()
    flags: frozenset[str] = frozenset()
    markup: bool = False
    seconds: float | None = None
    start: float | None = None
    track: str = ""
    around: tuple[str, str] = ("", "")
    form: str = ""
    source_markup: bool = False
    plural: str | None = None
    gap: str = ""

    @property
    def message(self) -> str:
        """The id without the plural form: files[one] → files."""
        return self.id[: -len(self.form) - 1 - self.id.endswith("]")] if self.form else self.id


LOCALE = re.compile(r"[a-z]{2,3}(?:[-_]\w+)*+")  # the only root key of a file with one language
CATEGORIES = ("zero", "one", "two", "few", "many", "other")  # of plurals, by CLDR


def joined_surrogates(text: str) -> str:
    r"""Return the text with pairs of UTF-16 units, as escapes such as \ud83d\ude00 name them, as one character each.

    A unit alone is no character and becomes U+FFFD.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _any_content(_: Document) -> bool:
    return True


def _no_edits(*_: object) -> list[Edit]:
    return []


@dataclass(frozen=True)
class Format:
    """How one kind of file is read and written.

    `entries` finds the texts of a document. `encode` returns a new text of an entry as the file writes it, in the style
    of what is there now. `recognises` tells files of this format from others with the same suffix.
    `in_folders`: whether the suffix says enough to read such a file without being asked for it by name.

    What a translated file also needs, if the format has a way to say it:
    `mark` sets the state of an entry that gets a new text: translated, or, with a note, in need of a review. It returns
    edits, or changes the entry's `around`. `label` changes the language of the file from the source to the target.
    `add_form` adds a plural form with this text beside an entry of the same message.

    What a translator of such files must know:
    `is_subtitles`: its entries are cues. `has_icu`: programs that read it may use ICU messages. `numbers_plurals`: its
    plural forms have numbers, not the names of CLDR. `plurals_are_keys`: a plural form is a key like others.
    `mnemonics`: the marks before the letter of a menu item, & (Qt, KDE, Windows, Java) or _ (GTK).
    """

    name: str
    entries: Callable[[Document], Iterable[Entry]]
    encode: Callable[[str, Entry, Document], str]
    recognises: Callable[[Document], bool] = _any_content
    in_folders: bool = True
    fallback: str | None = None  # the encoding of files that are not UTF-8 and do not name one
    declared: Callable[[bytes], str | None] = field(default=lambda data: None)  # the encoding that a file names
    mark: Callable[[Document, Entry, str | None], list[Edit]] | None = None
    label: Callable[[Document, str, str], list[Edit]] = _no_edits
    add_form: Callable[[Document, Entry, str, str], list[Edit]] = _no_edits  # none: it cannot be added here
    is_subtitles: bool = False
    has_icu: bool = True
    numbers_plurals: bool = False
    plurals_are_keys: bool = False
    mnemonics: str = ""
