"""Application resource bundles (.arb) of Flutter: strings, and @key with a description, x-max-length and the like."""

import re
from collections.abc import Iterator

from . import json_strings
from .base import Document, Edit, Entry, Format, Limit
from .limits import limits_in

_METADATA = re.compile(r"\"@((?:[^\"\\]|\\.)+)\"\s*:\s*\{")
_MAX_LENGTH = re.compile(r"\"(?:x-)?max-?_?length\"\s*:\s*\"?(\d+)\"?", re.IGNORECASE)
_LOCALE = re.compile(r"\"@@locale\"\s*:\s*\"([^\"]*)\"")


def entries(document: Document) -> Iterator[Entry]:
    """Yield the strings, with the limits in the description and the attributes of their @key."""
    found = list(json_strings.strings(document))
    limits: dict[str, list[Limit]] = {}
    for string in found:
        if len(string.path) == 2 and string.path[0].startswith("@") and string.path[1] == "description":
            told = limits_in(string.text, document.path, document.line(string.start))
            limits.setdefault(string.path[0][1:], []).extend(told)
    for key, limit in _attributes(document):
        limits.setdefault(key, []).append(limit)
    for string in found:
        if len(string.path) == 1 and not string.path[0].startswith("@"):
            one = json_strings.entry(document, string, string.path[0])
            one.limits = tuple(limits.get(string.path[0], ()))
            yield one


def _attributes(document: Document) -> Iterator[tuple[str, Limit]]:
    """Yield the keys with a max length, which is a number or a string of the key's metadata."""
    for metadata in _METADATA.finditer(document.text):
        end = document.text.find("}", metadata.end())
        if found := _MAX_LENGTH.search(document.text, metadata.end(), end):
            line = document.line(found.start())
            yield metadata[1], Limit(int(found[1]), "chars", found[0], document.path, line)


def label(document: Document, source: str, target: str) -> list[Edit]:
    """Return the edit of @@locale, if it is empty or the source language."""
    found = _LOCALE.search(document.text)
    named = found is not None and found[1].replace("-", "_").partition("_")[0] in ("", source)
    return [Edit(*found.span(1), target)] if found and named else []


FORMAT = Format("arb", entries, json_strings.encode, label=label)
