r"""Apple's strings (.strings): "key" = "value"; with comments before them, in UTF-8 or UTF-16."""

import re
from collections.abc import Iterator

from .base import Document, Entry, Format, Limit, Place, joined_surrogates
from .limits import limits_in

_QUOTED = r"\"(?:[^\"\\]|\\.)*\""
_WORD = rf"{_QUOTED}|'(?:[^'\\]|\\.)*'|[\w.$:/-]+"
_COMMENT = r"(?>/\*.*?\*/|//[^\r\n]*)"  # atomic, as is a gap, so that a missing semicolon is found at once
_GAP = rf"(?:\s|{_COMMENT})*+"  # a comment may also be inside an entry
_TOKEN = re.compile(
    rf"(?P<space>\s+)|(?P<comment>{_COMMENT})"
    rf"|(?P<key>{_WORD}){_GAP}(?P<assign>={_GAP}(?P<value>{_WORD}))?{_GAP};",
    re.DOTALL,
)
_AFTER = re.compile(rf"[ \t]*({_COMMENT})[ \t]*(?=[\r\n]|\Z)", re.DOTALL)  # a comment at the end of an entry's line
_ESCAPE = re.compile(r"\\(?:U([0-9a-fA-F]{4})|([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def entries(document: Document) -> Iterator[Entry]:
    """Yield the values, with the limits in the comments just before each, or after it in its line."""
    text, at = document.text, 0
    limits: tuple[Limit, ...] = ()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise document.error(at, f'expected "key" = "value"; or a comment; got {text[at : at + 40].strip()!r}')
        if token["comment"]:
            limits = (*limits, *limits_in(token["comment"], document.path, document.line(at)))
        at = token.end()
        if token["key"]:
            if after := _AFTER.match(text, at):
                limits = (*limits, *limits_in(after[1], document.path, document.line(at)))
                at = after.end()
            yield _entry(document, token, limits)
            limits = ()


def _entry(document: Document, token: re.Match[str], limits: tuple[Limit, ...]) -> Entry:
    key = _decode(_unquoted(token["key"]))
    if token["value"] is None:  # "key"; stands for "key" = "key";
        where = Place(token.end("key"), token.end("key"), document.line(token.start()))
        return Entry(key, key, where, key, None, limits, around=(' = "', '"'))
    quoted = token["value"][0] in "\"'"
    start, end = token.start("value") + quoted, token.end("value") - quoted
    text = _decode(document.text[start:end])
    around = ("", "") if quoted else ('"', '"')
    return Entry(key, text, Place(start, end, document.line(start)), text, None, limits, around=around)


def _unquoted(raw: str) -> str:
    return raw[1:-1] if raw[0] in "\"'" else raw


def _decode(raw: str) -> str:
    def replace(found: re.Match[str]) -> str:
        if found[1] or found[2]:
            return chr(int(found[1], 16) if found[1] else int(found[2], 8))
        return _LETTERS.get(found[3], found[3])

    raw = re.sub(r"\r\n?", "\n", raw)
    return raw if "\\" not in raw else joined_surrogates(_ESCAPE.sub(replace, raw))


def encode(text: str, entry: Entry, document: Document) -> str:
    raw = text.replace("\\", "\\\\")
    raw = raw.replace("'", "\\'") if document.text[entry.place.start - 1] == "'" else raw.replace('"', '\\"')
    for letter, char in _LETTERS.items():
        raw = raw.replace(char, f"\\{letter}")
    return raw


FORMAT = Format("strings", entries, encode)
