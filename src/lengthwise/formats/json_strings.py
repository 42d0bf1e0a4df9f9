"""JSON strings (.json): flat or nested keys, with i18next plurals as keys of their own (file_one, file_other).

`strings` finds every string of a JSON document with its path and its place; chrome.py and arb.py use it as well.
"""

import json
import re
from collections.abc import Generator, Iterator
from json import decoder
from typing import NamedTuple

from ..length.speech import primary
from .base import CATEGORIES, LOCALE, Document, Edit, Entry, Format, Place

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
    """Yield the strings, called by their keys with dots between them, without the locale if it is the only root key.

    Keys that begin with @ describe others.
    """
    every = list(strings(document))
    roots = {string.path[0] if len(string.path) > 1 else "" for string in every}
    skipped = int(len(roots) == 1 and LOCALE.fullmatch(min(roots)) is not None)
    for string in every:
        if not any(key.startswith("@") for key in string.path):
            found = entry(document, string, ".".join(string.path[skipped:]))
            last = re.split(r"[._]", found.id)[-1]
            found.form = last if last in CATEGORIES and last != found.id else ""
            yield found


def entry(document: Document, string: JsonString, name: str) -> Entry:
    place = Place(string.start, string.end, document.line(string.start))
    return Entry(name, string.text, place, string.text)


def encode(text: str, entry: Entry, document: Document) -> str:
    """Return the text with JSON's escapes; characters outside ASCII are escaped if the whole file does so."""
    ascii_only = document.escapes_all or _SURROGATE.search(text) is not None
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def add_form(document: Document, entry: Entry, form: str, text: str) -> list[Edit]:
    """Return the edit that adds a key with another plural form before this one: file_few before file_other."""
    start = max(0, entry.place.start - 1000)
    found = re.search(
        r"(?P<space>\s*)(?P<key>\"(?:[^\"\\]|\\.)*\")(?P<colon>\s*:\s*)\Z", document.text[start : entry.place.start - 1]
    )
    if found is None:
        return []
    at = start + found.start("key")
    key = found["key"][: -len(entry.form) - 1] + form + '"'
    return [Edit(at, at, f'{key}{found["colon"]}"{encode(text, entry, document)}",{found["space"] or " "}')]


def label(document: Document, source: str, target: str) -> list[Edit]:
    """Return the edit that changes the language of the only root key, if it is the source language."""
    found = re.match(rf"\s*\{{\s*\"(?P<locale>{LOCALE.pattern})\"\s*:\s*\{{", document.text)
    if found is None or primary(found["locale"]) != source or len(json.loads(document.text)) > 1:
        return []
    return [Edit(*found.span("locale"), target)]


FORMAT = Format("json", entries, encode, in_folders=False, label=label, add_form=add_form, plurals_are_keys=True)
