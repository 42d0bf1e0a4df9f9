"""SubRip (.srt): numbered cues, each with a line of times and its text up to the next cue."""

import re
from collections.abc import Iterator

from .base import Document, Entry, Format, Place
from .subtitles import has_tags, new_line, seconds, shown

_CLOCK = r"(?:\d+:)?\d{1,2}:\d{1,2}[,.]\d{1,3}"  # some programs leave out the hours
_TIMES = re.compile(
    rf"(?:^|(?<=\r))[ \t]*(?P<start>{_CLOCK})[ \t]*-->[ \t]*(?P<end>{_CLOCK})[^\r\n]*(?:\r\n?|\n|\Z)", re.MULTILINE
)
_NUMBER = re.compile(r"(?:\A|(?<=[\r\n]))[ \t]*(?P<number>\d+)[ \t]*(?:\r\n?|\n)\Z")
_CLOCK_LIKE = re.compile(r"\d:\d")
_BLANK_LINES = re.compile(r"\n\s*\n")


def entries(document: Document) -> Iterator[Entry]:
    """Yield the cues. A blank line inside a cue belongs to it if no new cue begins after it."""
    text, times = document.text, list(_TIMES.finditer(document.text))
    _check(document, times)
    # A number line just before the times, with a window of 40 characters so that long texts are not searched again.
    numbers = [_NUMBER.search(text, max(0, found.start() - 40), found.start()) for found in times]
    heads = [n.start() if n else found.start() for n, found in zip(numbers, times, strict=True)]
    for i, found in enumerate(times):
        start, limit = found.end(), heads[i + 1] if i + 1 < len(times) else len(text)
        raw = text[start:limit].rstrip(" \t\r\n")
        number = numbers[i]
        words = re.sub(r"\r\n?", "\n", raw)
        if number and (lost := _lost_times(words, int(number["number"]), numbers[i + 1 : i + 2])) is not None:
            line = document.line_start(document.line(start) + words.count("\n", 0, lost))
            raise document.error(line, f"the cue {int(number['number']) + 1} has no line of times")
        yield Entry(
            number["number"] if number else str(i + 1),
            words,
            Place(start, start + len(raw), document.line(start)),
            shown(words),
            markup=has_tags(words),
            seconds=max(0.0, seconds(found["end"]) - seconds(found["start"])),
            start=seconds(found["start"]),
            around=new_line(document, start, raw),
        )


def _lost_times(words: str, number: int, following: list[re.Match[str] | None]) -> int | None:
    """Return where the next number is in the text of a cue, which means that the times of the next cue are broken."""
    if any(one and int(one["number"]) == number + 1 for one in following):
        return None
    found = re.search(rf"\n[ \t]*\n[ \t]*(?={number + 1}[ \t]*(?:\n|\Z))", words)
    return found.end() if found else None


def _check(document: Document, times: list[re.Match[str]]) -> None:
    starts = {document.line(found.start()) for found in times}
    for found in re.finditer("-->", document.text):
        line = document.line(found.start())
        got = document.line_text(line)
        if line not in starts and _CLOCK_LIKE.search(got):  # an arrow in a text is no line of times
            raise document.error(found.start(), f"expected times such as 00:00:01,000 --> 00:00:02,500; got {got!r}")
    if not times and document.text.strip():
        raise document.error(0, "there is no line of times such as 00:00:01,000 --> 00:00:02,500")


def encode(text: str, entry: Entry, document: Document) -> str:
    """Return the text of a cue with the file's line ends, without blank lines, which would end the cue."""
    return _BLANK_LINES.sub("\n", text.strip()).replace("\n", document.line_end)


FORMAT = Format("srt", entries, encode, is_subtitles=True)
