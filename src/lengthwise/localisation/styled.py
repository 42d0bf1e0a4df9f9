"""Styled text: the text of a cue as a viewer reads it, with the tags of its file as spans over it.

SRT and WebVTT have pairs (<i>…</i>, <c.yellow>…</c>), ASS switches ({\\i1}…{\\i0}). Tags without a partner ({\\an8},
<v Mary>) are points.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import unescape

from ..formats.subtitles import MARKUP

_NAME = re.compile(r"</?([A-Za-z]+)")
_SWITCH = re.compile(r"\{\\([ibus])(\d*)\}")
# Times of single words, for karaoke: a translation has other words.
_WORD_TIME = re.compile(r"<\d[\d:.]*>|\{\\[kK][fot]?\d+\}")


@dataclass(frozen=True)
class Span:
    """A tag from `start` to `end` of a text: what is written before and after it. A point has only `before`."""

    start: int
    end: int
    before: str
    after: str = ""

    @property
    def is_point(self) -> bool:
        return not self.after


@dataclass(frozen=True)
class Styled:
    """A text and its tags, in the order of the file."""

    text: str
    spans: tuple[Span, ...] = ()

    def cut(self, start: int, end: int) -> "Styled":
        """Return a part of the text. A span that continues beyond it is closed there."""
        kept = []
        for span in self.spans:
            first, last = max(span.start, start), min(span.end, end)
            inside = start <= span.start < end or span.start == end == len(self.text)
            if first < last or (span.is_point and inside):
                kept.append(replace(span, start=first - start, end=last - start))
        return Styled(self.text[start:end], tuple(kept))

    def written(self, escape: Callable[[str], str] = str) -> str:
        """Return the text with its tags. `escape` turns text into what the file writes for it."""
        events: list[tuple[int, int, int, str]] = []  # at one place: closing tags, the last opened first; then others
        for n, span in enumerate(self.spans):
            if span.is_point or span.start == span.end:
                events.append((span.start, 1, n, span.before + span.after))
            else:
                events += [(span.start, 1, n, span.before), (span.end, 0, -n, span.after)]
        parts, at = [], 0
        for place, _, _, tag in sorted(events):
            parts += [escape(self.text[at:place]), tag]
            at = place
        return "".join([*parts, escape(self.text[at:])])


def read_tags(text: str, form: str, entities: bool) -> tuple[Styled, list[str]]:
    """Return a cue's text as styled text, and notes on tags that are left out.

    `form`: the name of the format. `entities`: &amp; and the like stand for characters.
    """
    parts, tags, at, length = [], [], 0, 0
    for found in [*MARKUP[form].finditer(text), None]:
        piece = text[at : found.start() if found else len(text)]
        piece = unescape(piece) if entities else piece
        if form == "ass":
            piece = piece.replace("\\n", " ")  # a line break only if the style asks for it
        parts.append(piece)
        length += len(piece)
        if found:
            tags.append((length, found[0]))
            at = found.end()
    timed = any(_WORD_TIME.fullmatch(tag) for _, tag in tags)
    kept = [(place, tag) for place, tag in tags if not _WORD_TIME.fullmatch(tag)]
    spans = _paired(kept, length)
    if timed:  # captions with word times have a tag <c> around each word
        spans = [span for span in spans if span.before != "<c>"]
    visible = "".join(parts)
    return Styled(visible, tuple(_merged(spans, visible))), ["the times of single words are left out"] if timed else []


def _paired(tags: Sequence[tuple[int, str]], length: int) -> list[Span]:
    """Return pairs of tags as spans, and tags without a partner as points, in the order of their first tag."""
    spans: dict[int, Span] = {}
    opened: dict[str, list[int]] = {}
    for n, (place, tag) in enumerate(tags):
        name, closes = _kind(tag)
        spans[n] = Span(place, place, tag)
        if closes and opened.get(name):
            first = opened[name].pop()
            spans[first] = Span(spans[first].start, place, spans[first].before, tag)
            del spans[n]
        elif name and not closes:
            opened.setdefault(name, []).append(n)
    return [spans[n] for n in sorted(spans)]


def _kind(tag: str) -> tuple[str, bool]:
    """Return the name of what a tag opens or closes, "" if neither, and whether it closes it."""
    if found := _SWITCH.fullmatch(tag):
        return found[1], found[2] in ("", "0")
    found = _NAME.match(tag)
    return (found[1].lower(), tag.startswith("</")) if found else ("", False)


def _merged(spans: Sequence[Span], text: str) -> list[Span]:
    """Return the spans, with those that end in one line and begin again in the next joined."""
    found: list[Span] = []
    for span in spans:
        for n, earlier in enumerate(found):
            same = (earlier.before, earlier.after) == (span.before, span.after) and not span.is_point
            if same and earlier.end <= span.start and not text[earlier.end : span.start].strip():
                found[n] = replace(earlier, end=span.end)
                break
        else:
            found.append(span)
    return found
