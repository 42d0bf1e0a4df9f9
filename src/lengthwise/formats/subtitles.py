"""Subtitles: what SRT, WebVTT and ASS share, and the limits of a cue: its time × reading speed, its lines."""

import re
from dataclasses import dataclass
from math import floor

from .base import Document, Entry, Limit

# The tags of each format. Players also read {\an8}, of ASS, in SRT. In ASS, {…} without a backslash is a comment.
MARKUP = {
    "srt": re.compile(
        r"</?(?:i|b|u|s|font|c|v|lang|ruby|rt)\b[^<>]*>|<\d\d[\d:.]*>|\{\\[^{}]*\}", re.IGNORECASE
    ),
    "vtt": re.compile(r"<[^<>]*>"),
    "ass": re.compile(r"\{[^{}]*\}"),
}


@dataclass(frozen=True)
class Style:
    """How much a cue may hold: characters per second, characters in a line, lines. None: no limit."""

    cps: float | None = None
    line: int | None = None
    lines: int | None = None
    name: str = ""


# https://partnerhelp.netflixstudios.com (English template; most languages are the same), https://translations.ted.com
PRESETS = {
    "netflix": Style(17, 42, 2, "netflix"),
    "netflix-children": Style(13, 42, 2, "netflix-children"),
    "ted": Style(21, 42, 2, "ted"),
}


def shown(text: str) -> str:
    """Return the text of a cue without tags: '{\\an8}<i>Go!</i>' → 'Go!'."""
    return MARKUP["srt"].sub("", text)


def has_tags(text: str) -> bool:
    return MARKUP["srt"].search(text) is not None


def seconds(clock: str) -> float:
    """Return the seconds of a time such as 01:02:03,456, 02:03.456 or 1:02:03.45."""
    total = 0.0
    for part in clock.replace(",", ".").split(":"):
        total = total * 60 + float(part)
    return total


def new_line(document: Document, start: int, raw: str) -> tuple[str, str]:
    """Return the line ends around a new text of a cue; a cue without a text may have no line for it."""
    if raw:
        return "", ""
    return "" if document.text[start - 1] in "\r\n" else document.line_end, document.line_end


def cue_limits(cue: Entry, style: Style) -> list[Limit]:
    """Return the limits of a cue in this style. A line break is not counted as a character that is read."""
    given = f" of {style.name}" if style.name else ""
    limits = []
    if style.cps is not None and cue.seconds is not None:
        # 1/1000 s is what a file can say; without it 17 × 2.0 s could round down to 33
        high = floor(style.cps * cue.seconds + 1e-6)
        limits.append(Limit(high, "chars", f"{style.cps:g} characters/s{given} × {cue.seconds:.2f} s"))
    if style.line is not None or style.lines is not None:
        words = [f"{style.line} characters a line"] if style.line is not None else []
        words += [f"{style.lines} lines"] if style.lines is not None else []
        limits.append(Limit(style.line, "chars", ", ".join(words) + given, lines=style.lines, each_line=True))
    return limits
