"""Package descriptions: from the stanzas of a Debian Translation index to aligned segments.

    Package: hello
    Description-md5: 9d5c...
    Description-it: saluto            the short description
     Un programma che saluta:         wrapped text: one segment, lines joined
      * in inglese                    a list item: one segment, with its bullet
      * nelle altre lingue            (two spaces or more: kept as it stands)
     .                                the end of a paragraph
     Per tutti.

Two descriptions are parallel if their segments correspond one by one.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple

Kind = Literal["short", "text", "item", "line"]
Reason = Literal["untranslated", "unaligned", "encoding", "placeholder", "empty"]


class Segment(NamedTuple):
    """A part of a description: the short description, a paragraph, a list item, or an indented line kept as it is."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Description:
    """One stanza. `md5` is the hash of the English description in every language, which joins the translations."""

    package: str
    md5: str
    segments: tuple[Segment, ...]

    @property
    def id(self) -> str:
        return f"{self.package}-{self.md5[:6]}"


_FIELD = re.compile(r"([A-Za-z0-9-]+(?:_[A-Za-z]+)?): ?(.*)")
_MD5 = re.compile(r"[0-9a-f]{32}")


def descriptions(lines: Iterable[bytes], language: str) -> Iterator[Description | None]:
    """Yield the stanzas of an index; None for a stanza with a missing field or an invalid md5."""
    # Bytes in another encoding become lone surrogates, which `reject_reason` finds. Not U+FFFD: some descriptions
    # contain that character on purpose.
    decoded = (raw.decode("utf-8", "surrogateescape").rstrip("\r\n") for raw in lines)
    return (_description(stanza, language) for is_stanza, stanza in groupby(decoded, key=bool) if is_stanza)


def _description(stanza: Iterable[str], language: str) -> Description | None:
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


# A bullet is part of its item's text. "o" and numbers are bullets only in indented lines: a line of wrapped text may
# begin with "o" (Italian for "or") or "2."
_BULLET = re.compile(r"(?:[*+•·◦‣]|--?) \S")
_INDENTED_BULLET = re.compile(r"(?:[*+•·◦‣o]|--?|[0-9]{1,2}[.)]) \S")
_SPACE = " \t"  # only these: the no-break spaces of French are kept
_SPACES = re.compile(r"[ \t]+")


def segments(body: Iterable[str]) -> list[Segment]:
    """Return the segments of a long description, whose lines come without the one space that each begins with."""
    found: list[tuple[Kind, int, list[str]]] = []
    open_ = False  # whether the next line may continue the last segment
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
        # Chinese and Japanese have no space where a line was wrapped.
        glue = "" if not text or (_unspaced(text[-1]) and _unspaced(line[0])) else " "
        text += glue + _SPACES.sub(" ", line.strip(_SPACE))
    return text


def _unspaced(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF" and "HANGUL" not in unicodedata.name(character, "")


_PLACEHOLDER = re.compile(r"</?trans\b|<!--", re.IGNORECASE)  # DDTP's mark for an untranslated part
_WRONG_BYTES = re.compile("[\udc80-\udcff]")
_MOJIBAKE = re.compile("\ufffd|[\u00c2\u00c3][\u0080-\u00bf]|\u00e2\u20ac|[\u0080-\u009f]")  # é read as Latin-1: Ã©


def reject_reason(source: Description, target: Description) -> Reason | None:
    """Return why these two do not make a parallel document; None if they do."""
    sources = [segment.text for segment in source.segments]
    targets = [segment.text for segment in target.segments]
    if len(sources) < 2 or len(targets) < 2 or not all(sources + targets):
        return "empty"
    if any(map(_PLACEHOLDER.search, targets)) and not any(map(_PLACEHOLDER.search, sources)):
        return "placeholder"
    mojibake = any(map(_MOJIBAKE.search, targets)) and not any(map(_MOJIBAKE.search, sources))
    if mojibake or any(map(_WRONG_BYTES.search, sources + targets)):
        return "encoding"
    # Translators sometimes unindent a line, but an item opposite a paragraph is a translation of something else.
    if [segment.kind == "item" for segment in source.segments] != [s.kind == "item" for s in target.segments]:
        return "unaligned"
    return "untranslated" if sources == targets else None


def readable(description: Description) -> bool:
    """Return whether the description has a long part and all its bytes are UTF-8."""
    texts = [segment.text for segment in description.segments]
    return len(texts) > 1 and all(texts) and not any(map(_WRONG_BYTES.search, texts))
