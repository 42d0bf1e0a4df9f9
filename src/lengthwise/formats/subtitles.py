"""Subtitles: what SRT, WebVTT and ASS share, and the limits of a cue: its time × reading speed, its lines."""

import re
from dataclasses import dataclass
from math import floor

from ..length.speech import chars_per_second, primary
from .base import Document, Entry, Limit

# The tags of each format. Players also read {\an8}, of ASS, in SRT. In ASS, {…} without a backslash is a comment.
MARKUP = {
    "srt": re.compile(r"</?(?:i|b|u|s|font|c|v|lang|ruby|rt)\b[^<>]*>|<\d\d[\d:.]*>|\{\\[^{}]*\}", re.IGNORECASE),
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


# docs/subtitles.md names the guide behind each number, and those that could not be verified in it.
PRESETS = {
    style.name: style
    for style in (
        Style(17, 42, 2, "netflix"),
        Style(13, 42, 2, "netflix-children"),
        Style(20, 42, 2, "netflix-en"),
        Style(17, 42, 2, "netflix-children-en"),
        Style(4, 13, 2, "netflix-ja"),
        Style(12, 16, 2, "netflix-ko"),
        Style(17, 35, 2, "netflix-th"),
        Style(9, 16, 2, "netflix-zh"),
        Style(21, 42, 2, "ted"),
        Style(15, 37, 2, "bbc"),
    )
}
_DENSE = ("ja", "ko", "zh")  # a character of these says more, so that limits for other languages are of no use
DUBBING = "dubbing"


def is_dense(language: str) -> bool:
    return primary(language) in _DENSE


def style_named(preset: str, language: str = "") -> Style:
    """Return the limits of a style guide for a language: netflix for ja is netflix-ja. 'dubbing' is the rate of speech.

    A name may end with a language: netflix-ja, dubbing-it.
    """
    code = primary(language)
    name, _, suffix = preset.partition("-")
    if name == DUBBING:
        if not (suffix or code):
            raise ValueError("the rate of speech depends on the language; write for example dubbing-it")
        return Style(chars_per_second(suffix or code), name=f"{DUBBING}-{suffix or code}")
    if preset not in PRESETS:
        raise ValueError(f"a preset is {', '.join(PRESETS)} or {DUBBING}-LANGUAGE; got {preset!r}")
    if is_dense(code) and f"{preset}-{code}" not in PRESETS and not preset.endswith(f"-{code}"):
        raise ValueError(f"the preset {preset} has no numbers for {code}; give --cps, --line and --lines")
    return PRESETS.get(f"{preset}-{code}", PRESETS[preset])


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
