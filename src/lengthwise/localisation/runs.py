"""Runs: find the sentences that go on from one cue to the next. A run is translated as one text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import regex

from ..length.sentences import finished
from ..length.weak_words import weak_words
from ..translation.styled import Styled
from .cue import Cue

MAX_GAP = 2.0  # seconds without a subtitle; after a longer pause, another sentence is likely
MAX_CUES, MAX_CHARS = 8, 400  # of a run; what continues beyond them is another run
# Beyond this length, a run ends where a clause does: translators lose parts of very long sentences.
LONG_CHARS = 200
PUNCTUATED = 0.3  # share of cues that end with final punctuation, above which a missing full stop means something
UNPUNCTUATED_CUES = 3  # in captions without punctuation, only as many cues are joined

_DOTS_LAST = regex.compile(r"\s*(?:\.\.\.+|…)$")
_DOTS_FIRST = regex.compile(r"^(?:\.\.\.+|…)\s*")
_DASH_LAST = regex.compile(r"(?:--|[-‐–—])$")
_SMALL_FIRST = regex.compile(r"^[\"'“‘«(]*\p{Ll}")
_QUOTES = regex.compile(r"[\"“”„«»‘’]")
_WORD = regex.compile(r"[\p{L}\p{N}][\w'’]*")
_NAME = regex.compile(r"(?<=[\p{Ll},][^\S\n])\p{Lu}[\w'’]*")  # a word with a capital that does not begin a sentence
_FINAL = regex.compile(r"[.!?…。！？]$")


@dataclass(frozen=True, eq=False)
class Piece:
    """A cue's part of a run. `before` and `after`: dots that show that the sentence goes on; they stay."""

    cue: Cue
    part: int
    speech: Styled
    before: str = ""
    after: str = ""


@dataclass(frozen=True, eq=False)
class Run:
    """The pieces of a text in consecutive cues; most runs have one."""

    pieces: tuple[Piece, ...]

    @property
    def styled(self) -> Styled:
        """The whole text in one line, with the tags inside its pieces."""
        text, spans = "", []
        for piece in self.pieces:
            text += " " if text else ""
            spans += [replace(s, start=s.start + len(text), end=s.end + len(text)) for s in piece.speech.spans]
            text += piece.speech.text.replace("\n", " ")
        return Styled(text, tuple(spans))

    def piece_at(self, place: int) -> int:
        """Return the number of the piece that a place of the text is in."""
        ends, at = [], 0
        for piece in self.pieces:
            at += len(piece.speech.text) + 1
            ends.append(at)
        return next((n for n, end in enumerate(ends) if place < end), len(self.pieces) - 1)


class _Habits:
    """How a file writes: whether its sentences end with punctuation, and which words it writes as names."""

    def __init__(self, cues: Sequence[Cue], language: str) -> None:
        spoken = [list(cue.speech.values())[-1].text for cue in cues if cue.speech]
        final = sum(_FINAL.search(_QUOTES.sub("", text)) is not None for text in spoken)
        self.punctuated = final >= PUNCTUATED * len(spoken)
        self.weak = weak_words(language)
        self.names = {word for cue in cues for speech in cue.speech.values() for word in _NAME.findall(speech.text)}
        self.nouns_are_capitals = language.startswith("de")

    def is_clause(self, first: str, then: str) -> bool:
        """Return whether another clause begins in the next cue."""
        start = _WORD.search(then)
        return first[-1] in ",;:" or (start is not None and start[0].lower() in self.weak.conjunctions)

    def goes_on(self, first: str, then: str) -> bool:
        """Return whether a text that has no final punctuation goes on in the next one."""
        start = _WORD.search(then)
        if start is None or not self.punctuated:
            return start is not None and start[0][0].islower()
        if not start[0][0].isupper() or self.nouns_are_capitals:
            return True
        last = _WORD.findall(first)[-1:]
        weak = any(word.lower() in some for word in last for some in self.weak)
        is_name = start[0] in self.names or start[0] == "I" or start[0].startswith(("I'", "I’"))
        return weak or is_name or first[-1] in ",;:"


def find_runs(cues: Sequence[Cue], language: str) -> list[Run]:
    """Return the runs of a file's cues, in order. Each speech of a cue is in one run."""
    habits = _Habits(cues, language)
    most = MAX_CUES if habits.punctuated else UNPUNCTUATED_CUES
    runs: list[list[Piece]] = []
    for n, cue in enumerate(cues):
        for part, speech in cue.speech.items():
            piece = Piece(cue, part, speech)
            last = runs[-1] if runs else None
            follows = last is not None and n > 0 and last[-1].cue is cues[n - 1] and part == next(iter(cue.speech))
            if last is not None and follows and len(last) < most and _goes_on(last, piece, habits):
                last[-1], piece = _without_dots(last[-1], piece)
                last.append(piece)
            else:
                runs.append([piece])
    return [Run(tuple(pieces)) for pieces in runs]


def _goes_on(run: Sequence[Piece], piece: Piece, habits: _Habits) -> bool:
    """Return whether the last sentence of a run goes on in the next cue."""
    last = run[-1]
    if not (_ends_cue(last) and _begins_cue(piece) and _same_speaker(last.cue, piece.cue)):
        return False
    first, then = last.speech.text, piece.speech.text
    length = sum(len(one.speech.text) for one in run) + len(then)
    if (
        length > MAX_CHARS
        or _gap(last.cue, piece.cue) > MAX_GAP
        or (length > LONG_CHARS and habits.is_clause(first, then))
    ):
        return False
    small = _SMALL_FIRST.search(_DOTS_FIRST.sub("", then)) is not None
    if _DOTS_LAST.search(first):
        return small or _DOTS_FIRST.search(then) is not None
    if _DASH_LAST.search(first):
        return small
    if finished(_QUOTES.sub("", first)) or _DOTS_FIRST.search(then) or first.isupper() != then.isupper():
        return False
    return habits.goes_on(first, then)


def _ends_cue(piece: Piece) -> bool:
    return all(not piece.cue.fixed(n).strip() for n in range(piece.part + 1, len(piece.cue.parts)))


def _begins_cue(piece: Piece) -> bool:
    return all(not piece.cue.fixed(n).strip() for n in range(piece.part))


def _same_speaker(one: Cue, other: Cue) -> bool:
    return one.entry.track == other.entry.track and other.first_voice in ("", one.last_voice)


def _gap(one: Cue, other: Cue) -> float:
    """Return the seconds between two cues; if they are not in order, or overlap, more than any gap."""
    a, b = one.entry, other.entry
    if a.start is None or b.start is None or a.seconds is None:
        return 0.0
    gap = b.start - (a.start + a.seconds)
    return gap if gap > -0.2 else float("inf")


def _without_dots(one: Piece, other: Piece) -> tuple[Piece, Piece]:
    """Return two pieces of a sentence without the dots between them, which are kept apart."""
    last, first = _DOTS_LAST.search(one.speech.text), _DOTS_FIRST.search(other.speech.text)
    if last:
        one = replace(one, speech=one.speech.cut(0, last.start()), after=last[0].strip())
    if first:
        rest = other.speech.cut(first.end(), len(other.speech.text))
        other = replace(other, speech=rest, before=first[0].strip())
    return one, other
