"""WebVTT (.vtt): blocks between blank lines; a block with a line of times is a cue. See w3.org/TR/webvtt1."""

import re
from collections.abc import Iterator
from html import unescape

from .base import Document, Entry, Format, Place
from .subtitles import MARKUP, new_line, seconds

# As players read them: the spaces around the arrow and the second digit of hours may be missing.
_CLOCK = r"(?:\d+:)?[0-5]\d:[0-5]\d\.\d{3}"
_TIMES = re.compile(rf"[ \t]*(?P<start>{_CLOCK})[ \t]*-->[ \t]*(?P<end>{_CLOCK})(?:[ \t][^\r\n]*)?")
_LINE = re.compile(r"([^\r\n]*)(\r\n?|\n|\Z)")


def entries(document: Document) -> Iterator[Entry]:
    """Yield the cues. A cue without an identifier is called by its number."""
    text = document.text
    if not re.match(r"WEBVTT(?![^\s])", text):
        raise document.error(0, f"the first line must be WEBVTT; got {text.partition(chr(10))[0][:40]!r}")
    number, name, at = 0, "", _LINE.match(text).end()  # type: ignore[union-attr]
    while at < len(text):
        line = _LINE.match(text, at)
        assert line is not None
        if "-->" not in line[1]:
            name, at = line[1].strip(), line.end()
            continue
        times = _TIMES.fullmatch(line[1])
        if times is None:
            raise document.error(at, f"expected times such as 00:01.000 --> 00:02.500; got {line[1]!r}")
        start = line.end()
        end = at = _cue_end(text, start)
        raw, number = text[start:end], number + 1
        words = re.sub(r"\r\n?", "\n", raw)
        tagged = "<" in words
        yield Entry(
            name or str(number),
            words if tagged else unescape(words),
            Place(start, end, document.line(start)),
            unescape(MARKUP["vtt"].sub("", words)),
            markup=tagged,
            seconds=max(0.0, seconds(times["end"]) - seconds(times["start"])),
            start=seconds(times["start"]),
            around=new_line(document, start, raw),
        )
        name = ""


def _cue_end(text: str, start: int) -> int:
    """Return where the cue's text ends: before a blank line, a line of times, or the end of the file."""
    at = end = start
    while at < len(text):
        line = _LINE.match(text, at)
        assert line is not None
        if not line[1] or "-->" in line[1]:
            break
        at, end = line.end(), line.end(1)
    return end


def encode(text: str, entry: Entry, document: Document) -> str:
    """Return the text of a cue with the file's line ends, without blank lines; outside markup, < and & are escaped."""
    if entry.markup:
        text = text.replace("-->", "--&gt;")
    else:
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return document.line_end.join(line for line in text.split("\n") if line.strip())


FORMAT = Format("vtt", entries, encode, is_subtitles=True)
