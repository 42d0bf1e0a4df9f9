"""JSON strings (.json): flat or nested keys, with i18next plurals as keys of their own (file_one, file_other).

`strings` finds every string of a JSON document with its path and its place; chrome.py and arb.py use it as well.
"""

import json
import re
from collections.abc import Generator, Iterator
from json import decoder
from typing import NamedTuple

from .base import Document, Entry, Format, Place

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonString(NamedTuple):
    """A string value: the keys and indexes that lead to it, its text, and its place between the quotes."""

    path: tuple[str, ...]
    text: str
    start: int
    end: int


def strings(document: Document) -> Iterator[JsonString]:
    """Yield the string values in order."""
    at = yield from _value(document, _skip(document.text, 0), ())
    at = _skip(document.text, at)
    if at < len(document.text):
        raise document.error(at, f"unexpected text after the JSON value: {document.text[at : at + 40]!r}")


def _value(document: Document, at: int, path: tuple[str, ...]) -> Generator[JsonString, None, int]:
    """Yield the strings of the value at `at`; return where it ends."""
    text, first = document.text, document.text[at : at + 1]
    if first == '"':
        value, end = _string(document, at)
        yield JsonString(path, value, at + 1, end - 1)
        return end
    if first in ("{", "["):
        return (yield from _members(document, at, path))
    if found := _SCALAR.match(text, at):
        return found.end()
    raise document.error(
        at, f"expected a JSON value; got {text[at : at + 20]!r}" if first else "the JSON value ends early"
    )


def _members(document: Document, at: int, path: tuple[str, ...]) -> Generator[JsonString, None, int]:
    text, close = document.text, "}" if document.text[at] == "{" else "]"
    at, number = _skip(text, at + 1), 0
    if text[at : at + 1] == close:
        return at + 1
    while True:
        key = str(number)
        if close == "}":
            if text[at : at + 1] != '"':
                raise document.error(at, f"expected a key in double quotes; got {text[at : at + 20]!r}")
            key, at = _string(document, at)
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                raise document.error(at, f"expected a colon after the key {key!r}; got {text[at : at + 20]!r}")
            at = _skip(text, at + 1)
        end = yield from _value(document, at, (*path, key))
        at, number = _skip(text, end), number + 1
        if text[at : at + 1] == close:
            return at + 1
        if text[at : at + 1] != ",":
            raise document.error(at, f"expected a comma or {close}; got {text[at : at + 20]!r}")
        at = _skip(text, at + 1)


def _string(document: Document, at: int) -> tuple[str, int]:
    try:
        # The scanner of json itself, in C; typeshed does not list it.
        return decoder.scanstring(document.text, at + 1, True)  # type: ignore[attr-defined]
    except json.JSONDecodeError as error:
        raise document.error(error.pos, error.msg) from None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def entries(document: Document) -> Iterator[Entry]:
    """Yield the strings, called by their keys with dots between them. Keys that begin with @ describe others."""
    for string in strings(document):
        if not any(key.startswith("@") for key in string.path):
            yield entry(document, string, ".".join(string.path))


def entry(document: Document, string: JsonString, name: str) -> Entry:
    place = Place(string.start, string.end, document.line(string.start))
    return Entry(name, string.text, place, string.text)


def encode(text: str, entry: Entry, document: Document) -> str:
    """Return the text with JSON's escapes; characters outside ASCII are escaped if the whole file does so."""
    ascii_only = document.escapes_all or _SURROGATE.search(text) is not None
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


FORMAT = Format("json", entries, encode, in_folders=False)
