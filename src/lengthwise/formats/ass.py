"""Advanced SubStation Alpha (.ass, .ssa): the Dialogue lines of the section [Events]."""

import re
from collections.abc import Iterator

from .base import Document, Entry, Format, Place
from .subtitles import MARKUP, has_tags, seconds

_LINE = re.compile(r"[^\r\n]+")
_CLOCK = re.compile(r"\d+:\d\d:\d\d[.:]\d+")
# Of a file without a Format line in [Events], as libass reads it.
_FIELDS = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"]
_DRAWING = re.compile(r"\\p[1-9]")


def entries(document: Document) -> Iterator[Entry]:
    """Yield the dialogue lines, in the order of the file. Lines that draw a shape are fixed."""
    section, fields, number = "", _FIELDS, 0
    for line in _LINE.finditer(document.text):
        if line[0].startswith("["):
            section = line[0].strip().lower()
        if section != "[events]":
            continue
        kind, _, rest = line[0].partition(":")
        if kind.strip().lower() == "format":
            fields = [field.strip().lower() for field in rest.split(",")]
            if not {"start", "end"} <= set(fields) or fields[-1] != "text":
                raise document.error(
                    line.start(), f"Format needs Start, End and, as the last field, Text; got {rest!r}"
                )
        elif kind.strip().lower() == "dialogue":
            number += 1
            yield _dialogue(document, line, rest, fields, number)
    if not section and document.text.strip():
        raise document.error(0, "there is no section such as [Events]")


def _dialogue(document: Document, line: re.Match[str], rest: str, fields: list[str], number: int) -> Entry:
    values = rest.split(",", len(fields) - 1)
    if len(values) < len(fields):
        raise document.error(line.start(), f"expected {len(fields)} fields, as Format says; got {len(values)}")
    row = dict(zip(fields, (value.strip() for value in values), strict=True))
    for name in ("start", "end"):
        if not _CLOCK.fullmatch(row[name]):
            raise document.error(line.start(), f"expected a time such as 0:00:01.00 for {name}; got {row[name]!r}")
    text = values[-1].replace("\\N", "\n").replace("\\h", "\u00a0")
    drawing = _DRAWING.search(text) is not None
    return Entry(
        str(number),
        text,
        Place(line.end() - len(values[-1]), line.end(), document.line(line.start())),
        "" if drawing else MARKUP["ass"].sub("", text).replace("\\n", " "),
        flags=frozenset({"fixed"}) if drawing else frozenset(),
        markup=has_tags(text),
        seconds=max(0.0, _seconds(row["end"]) - _seconds(row["start"])),
        start=_seconds(row["start"]),
        track=f"{row.get('style', '')},{row.get('name', row.get('actor', ''))}",
    )


def _seconds(clock: str) -> float:
    hours, minutes, rest = clock.split(":", 2)
    return seconds(f"{hours}:{minutes}:{rest.replace(':', '.')}")


def encode(text: str, entry: Entry, document: Document) -> str:
    return re.sub(r"\r\n?|\n", r"\\N", text).replace("\u00a0", "\\h")


FORMAT = Format("ass", entries, encode, is_subtitles=True)
