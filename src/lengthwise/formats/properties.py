r"""Java properties (.properties): key = value lines with \u escapes. SAP's comments name limits: #XFLD,30: …

Files are UTF-8 or, as Java has always read them, ISO 8859-1.
"""

import re
from collections.abc import Iterator

from .base import Document, Entry, Format, Limit, Place, joined_surrogates
from .limits import limits_in

_LINE = re.compile(r"[ \t\f]*(?P<content>[^\r\n]*)(?P<end>\r\n?|\n|\Z)")
_KEY = re.compile(r"(?:[^\\=: \t\f\r\n]|\\(?:\r\n|.))+", re.DOTALL)
_SEPARATOR = re.compile(r"(?:[ \t\f]|\\(?:\r\n?|\n)[ \t\f]*)*(?:[=:](?:[ \t\f]|\\(?:\r\n?|\n)[ \t\f]*)*)?")
_VALUE = re.compile(r"(?:[^\\\r\n]|\\(?:\r\n|.|\Z))*", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(?:\r\n?|\n)[ \t\f]*|(u)|(.)|\Z)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_OUTSIDE_ASCII = re.compile(r"[^\x00-\x7f]")


def entries(document: Document) -> Iterator[Entry]:
    """Yield the values, with the limits in the comment lines just before each."""
    text, at = document.text, 0
    limits: tuple[Limit, ...] = ()
    while at < len(text):
        line = _LINE.match(text, at)
        assert line is not None
        content = line["content"]
        if not content or content[0] in "#!":
            told = limits_in(f"#{content.lstrip('#!')}", document.path, document.line(at)) if content else ()
            limits, at = ((*limits, *told) if content else ()), line.end()
            continue
        start = line.start("content")
        key = _KEY.match(text, start)
        after = key.end() if key else start
        separator = _SEPARATOR.match(text, after)
        assert separator is not None
        value = _VALUE.match(text, separator.end())
        assert value is not None
        yield _entry(document, key[0] if key else "", value, limits)
        limits, at = (), _LINE.match(text, value.end()).end()  # type: ignore[union-attr]


def _entry(document: Document, key: str, value: re.Match[str], limits: tuple[Limit, ...]) -> Entry:
    text = _decode(document, value[0], value.start())
    place = Place(value.start(), value.end(), document.line(value.start()))
    bare = value.end() > 0 and value.start() == value.end() and document.text[value.start() - 1] not in "=: \t\f"
    around = ("=", "") if bare else ("", "")  # a key alone in its line
    return Entry(_decode(document, key, value.start()), text, place, text, None, limits, around=around)


def _decode(document: Document, raw: str, at: int) -> str:
    def replace(found: re.Match[str]) -> str:
        if found[2]:
            raise document.error(
                at + found.start(), rf"\u needs four hexadecimal digits; got {raw[found.start() :][:6]!r}"
            )
        return chr(int(found[1], 16)) if found[1] else _LETTERS.get(found[3], found[3]) if found[3] else ""

    if "\\" not in raw:
        return raw
    return joined_surrogates(_ESCAPE.sub(replace, raw))


def encode(text: str, entry: Entry, document: Document) -> str:
    r"""Return the value with escapes. Characters outside ASCII become \u00e9 unless the file is UTF-8 and has some."""
    raw = text.replace("\\", "\\\\")
    for letter, char in _LETTERS.items():
        raw = raw.replace(char, f"\\{letter}")
    if raw.startswith((" ", "=", ":")):  # else it would be read as a part of the separator
        raw = f"\\{raw}"
    if document.text.isascii() or document.encoding in ("iso-8859-1", "latin-1"):
        raw = _OUTSIDE_ASCII.sub(lambda found: _utf16(found[0]), raw)
    return raw


def _utf16(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{int.from_bytes(units[i : i + 2], 'big'):04x}" for i in range(0, len(units), 2))


FORMAT = Format("properties", entries, encode, in_folders=False, fallback="iso-8859-1", mnemonics="&")
