"""Package descriptions: from the stanzas of a Debian Translation index to aligned segments.

    Package: hello
    Description-md5: 9d5c...
    Description-it: saluto            the short description
     Un programma che saluta:         wrapped text: one segment, lines joined
      * in inglese                    a list item: one segment, with its bullet
      * nelle altre lingue            (two spaces or more: kept as it stands)
     .                                the end of a paragraph
     Per tutti.

Knows the format and when two descriptions say the same thing part by part. Does not know where indices come from, nor
what is done with the documents.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["short", "text", "item", "line"]
Reason = Literal["untranslated", "unaligned", "encoding", "placeholder", "empty"]


class Segment(NamedTuple):
    """A part of a description that stands alone: the short one, a paragraph, a list item, or a line kept as it is."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Description:
    """One stanza. `md5` is that of the English description, whatever the language: what translations are joined on."""

    package: str
    md5: str
    segments: tuple[Segment, ...]

    @property
    def id(self) -> str:
        return f"{self.package}-{self.md5[:6]}"

    @property
    def short(self) -> str:
        return self.segments[0].text

    @property
    def long(self) -> tuple[str, ...]:
        return tuple(segment.text for segment in self.segments[1:])


_FIELD = re.compile(r"([A-Za-z0-9-]+(?:_[A-Za-z]+)?): ?(.*)")
_MD5 = re.compile(r"[0-9a-f]{32}")


def descriptions(lines: Iterable[bytes], language: str) -> Iterator[Description | None]:
    """The stanzas of an index, one by one; None for one that is not whole (a field missing, not a md5)."""
    stanza: list[str] = []
    for raw in lines:
        # Bytes in another encoding are kept as lone surrogates, so that `fault` can tell. (Not as U+FFFD: some packages
        # write of that very character.)
        line = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
        if line:
            stanza.append(line)
        elif stanza:
            yield _description(stanza, language)
            stanza = []
    if stanza:
        yield _description(stanza, language)


def _description(stanza: list[str], language: str) -> Description | None:
    fields: dict[str, str] = {}
    body: list[str] = []
    name = ""
    for line in stanza:
        if line[0] in " \t":
            if name == f"description-{language}".lower():
                body.append(line[1:])
        elif found := _FIELD.fullmatch(line):
            name = found[1].lower()
            fields[name] = found[2].strip()
    package, md5 = fields.get("package", ""), fields.get("description-md5", "")
    short = fields.get(f"description-{language}".lower())
    if not package or short is None or not _MD5.fullmatch(md5):
        return None
    return Description(package, md5, (Segment("short", _joined([short])), *segments(body)))


# A bullet is part of its item's text. "o" and numbers only where the line is indented: in wrapped text a line may well
# begin with "o" (Italian for "or") or "2."
_BULLET = re.compile(r"(?:[*+•·◦‣]|--?) \S")
_INDENTED_BULLET = re.compile(r"(?:[*+•·◦‣o]|--?|[0-9]{1,2}[.)]) \S")


_SPACE = " \t"  # no more than these: French has no-break spaces that should stay
_SPACES = re.compile(r"[ \t]+")


def segments(body: Iterable[str]) -> list[Segment]:
    """The parts of a long description; its lines come without the one space that every one of them begins with."""
    found: list[tuple[Kind, int, list[str]]] = []
    open_ = False  # may the next line continue the last part?
    for line in body:
        words = line.strip(_SPACE)
        if words in ("", "."):
            open_ = False
            continue
        indent = len(line) - len(line.lstrip(_SPACE))
        kind, since, lines = found[-1] if open_ else ("line", 0, [])
        if (_INDENTED_BULLET if indent else _BULLET).match(words):
            found.append(("item", indent, [words]))
        elif (kind == "item" and indent >= since) or (kind == "text" and indent == 0):
            lines.append(words)
        else:
            found.append(("line" if indent else "text", indent, [words]))
        open_ = True
    return [Segment(kind, _joined(lines)) for kind, _, lines in found]


def _joined(lines: list[str]) -> str:
    text = ""
    for line in lines:
        # Chinese and Japanese put no space where a line was wrapped.
        glue = "" if not text or (_unspaced(text[-1]) and _unspaced(line[0])) else " "
        text += glue + _SPACES.sub(" ", line.strip(_SPACE))
    return text


def _unspaced(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF" and "HANGUL" not in unicodedata.name(character, "")


_PLACEHOLDER = re.compile(r"</?trans\b|<!--", re.IGNORECASE)  # DDTP's mark for a part that nobody has translated
_WRONG_BYTES = re.compile("[\udc80-\udcff]")
_MOJIBAKE = re.compile("\ufffd|[\u00c2\u00c3][\u0080-\u00bf]|\u00e2\u20ac|[\u0080-\u009f]")  # é read as Latin-1: Ã©


def fault(source: Description, target: Description) -> Reason | None:
    """Why these two do not make a parallel document; None if they do."""
    sources = [segment.text for segment in source.segments]
    targets = [segment.text for segment in target.segments]
    if len(sources) < 2 or len(targets) < 2 or not all(sources + targets):
        return "empty"
    if any(map(_PLACEHOLDER.search, targets)) and not any(map(_PLACEHOLDER.search, sources)):
        return "placeholder"
    if any(map(_WRONG_BYTES.search, sources + targets)):
        return "encoding"
    if any(map(_MOJIBAKE.search, targets)) and not any(map(_MOJIBAKE.search, sources)):
        return "encoding"
    # Translators unindent a line now and then, but an item that stands against a paragraph is another item.
    if [segment.kind == "item" for segment in source.segments] != [s.kind == "item" for s in target.segments]:
        return "unaligned"
    return "untranslated" if sources == targets else None


def readable(description: Description) -> bool:
    """Has it a long part, and are all its bytes UTF-8?"""
    return len(description.segments) > 1 and not any(
        _WRONG_BYTES.search(s.text) or not s.text for s in description.segments
    )
