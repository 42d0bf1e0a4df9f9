"""The tags of a cue: read from its text, and put around the same words of a translation.

SRT and WebVTT have pairs (<i>…</i>, <c.yellow>…</c>), ASS switches ({\\i1}…{\\i0}). Tags without a partner ({\\an8},
<v Mary>) are points.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import unescape

from ..formats.subtitles import MARKUP
from ..translation.alignment import Place, align
from ..translation.styled import Span, Styled, paired

_NAME = re.compile(r"</?([A-Za-z]+)")
_SWITCH = re.compile(r"\{\\([ibus])(\d*)\}")
# Times of single words, for karaoke: a translation has other words.
_WORD_TIME = re.compile(r"<\d[\d:.]*>|\{\\[kK][fot]?\d+\}")


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
    spans = paired(kept, _kind)
    if timed:  # captions with word times have a tag <c> around each word
        spans = [span for span in spans if span.before != "<c>"]
    visible = "".join(parts)
    return Styled(visible, tuple(_merged(spans, visible))), ["the times of single words are left out"] if timed else []


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


def place_tags(
    source: Styled, text: str, own: Callable[[Span], Place], known: Callable[[str], Sequence[str]]
) -> tuple[Styled, list[tuple[Span, str]]]:
    """Return a translation with the tags of its source, and a note for each tag whose words were not found.

    `own`: the place of the text that the cue of a tag shows.
    """
    spans, notes = [], []
    for span, place in align(source, text, known):
        if place is None:
            place = own(span)
            words = " ".join(source.text[span.start : span.end].split())
            notes.append((span, f"{span.before} is around the whole cue: its words {words!r} were not found"))
        elif span.is_point:
            notes.append((span, f"the place of {span.before} is estimated"))
        spans.append(replace(span, start=place[0], end=place[1]))
    return Styled(text, tuple(_without_doubles(spans))), notes


def _without_doubles(spans: list[Span]) -> list[Span]:
    """Return the spans without those that are inside another one with the same tags."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start - span.end):
        same = (one for one in kept if (one.before, one.after) == (span.before, span.after) and not span.is_point)
        if not any(one.start <= span.start and span.end <= one.end for one in same):
            kept.append(span)
    return [span for span in spans if span in kept]
