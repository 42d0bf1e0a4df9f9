"""The parts of a cue: speech to translate, and what stays: dashes of speakers, labels, brackets, notes of music.

- [sighs] Hello.        "- [" stays, "sighs" is a text of its own, "] " stays, "Hello." is a text of its own
- MARY: Hi.             "- MARY: " stays, "Hi." is a text of its own
♪ Happy birthday ♪      the notes stay
"""

from collections.abc import Iterator
from typing import NamedTuple

import regex

from ..translation.styled import Styled

_LABEL = r"(?:(?=\P{Ll}{2,40}:)\p{Lu}[\p{Lu}\p{N} .,'’#&/()-]*:(?:[^\S\n]+|(?=\n)))"
# What opens a new speaker's text at the start of a line.
_OPENER = regex.compile(rf"[^\S\n]*(?:>>+[^\S\n]*|[-‐–—](?![-‐–—\d])[^\S\n]*)?{_LABEL}?")
_NEXT_SPEAKER = regex.compile(r"(?<=[.!?…\"”’)\]])[^\S\n]+(?=[-‐–—][^\S\n]*[\p{L}\"“¿¡\[(])")
_FIXED = regex.compile(r"[♪♫]+|(?m:^)#(?=[ \n])|(?<=[ \n])#(?m:$)")
_BRACKETS = regex.compile(r"\[[^\[\]]*\]|\([^()]*\)|（[^（）]*）|【[^【】]*】")
_LETTER = regex.compile(r"\p{L}")
_LOWER = regex.compile(r"\p{Ll}")


class Part(NamedTuple):
    """A part of a cue's text, from `start` to `end`. `is_speech`: it is translated."""

    start: int
    end: int
    is_speech: bool


def split_parts(text: str, voices: frozenset[int] = frozenset()) -> list[Part]:
    """Return the parts of a cue, in order and without gaps. `voices`: where a tag says that another person speaks."""
    fixed = sorted(_fixed(text, voices))
    parts: list[Part] = []
    at = 0
    for start, end in [*fixed, (len(text), len(text))]:
        if start > at:
            parts += _speech(text, at, start)
        if end > max(at, start):
            parts.append(Part(max(at, start), end, False))
        at = max(at, end)
    return _joined(parts)


def _fixed(text: str, voices: frozenset[int]) -> Iterator[tuple[int, int]]:
    """Yield the spans that stay as they are."""
    starts = [0, *(found.end() for found in regex.finditer(r"\n", text))]
    dashed = [start for start in starts if regex.match(r"[^\S\n]*[-‐–—](?![-‐–—\d])", text, pos=start)]
    if dashed:  # "- Hello. - Hi." in one line
        starts += [found.end() for found in _NEXT_SPEAKER.finditer(text, dashed[0])]
    for start in sorted(set(starts)):
        opener = _OPENER.match(text, start)
        end = opener.end() if opener else start
        if end > start and text[start:end].strip():
            yield _with_line_end(text, start), end
        elif start in voices and start:
            yield _with_line_end(text, start), start
    for found in _FIXED.finditer(text):
        yield found.span()
    for found in _BRACKETS.finditer(text):
        if _stands_alone(text, found):
            yield found.start(), found.start() + 1
            yield found.end() - 1, found.end()


def _with_line_end(text: str, start: int) -> int:
    """Return where the white space before a place begins."""
    while start and text[start - 1].isspace():
        start -= 1
    return start


def _stands_alone(text: str, found: "regex.Match[str]") -> bool:
    """Return whether a bracket is not a part of the sentence around it: a sound, or a remark before or after it."""
    inside = found[0][1:-1]
    before, after = text[: found.start()].rstrip(" "), text[found.end() :].lstrip(" ")
    at_start = not before or before[-1] in "\n-–—♪>:"
    at_end = (not after or after[0] in "\n♪") and (not before or before[-1] in ".!?…\n")
    return found[0][0] in "[【" or at_start or at_end or not _LOWER.search(inside)


def _speech(text: str, start: int, end: int) -> list[Part]:
    """Return the speech between two places, without the white space around it; or a fixed part if it has no letter."""
    if not _LETTER.search(text, start, end):
        return [Part(start, end, False)]
    inner = text[start:end]
    first, last = end - len(inner.lstrip()), start + len(inner.rstrip())
    parts = [Part(start, first, False), Part(first, last, True), Part(last, end, False)]
    return [part for part in parts if part.end > part.start]


def _joined(parts: list[Part]) -> list[Part]:
    """Return the parts with neighbouring fixed parts joined."""
    found: list[Part] = []
    for part in parts:
        if found and not part.is_speech and not found[-1].is_speech:
            found[-1] = found[-1]._replace(end=part.end)
        else:
            found.append(part)
    return found


def voices(cue: Styled) -> frozenset[int]:
    """Return where a tag of WebVTT names the person who speaks."""
    return frozenset(span.start for span in cue.spans if span.before.startswith("<v"))
