"""YAML strings (.yml, .yaml) as Rails has them: nested keys whose values are texts. PyYAML finds the places."""

import json
import re
from collections.abc import Iterator
from typing import Any

from ..length.speech import primary
from .base import CATEGORIES, LOCALE, Document, Edit, Entry, Format, Limit, Place
from .limits import limits_in

_STRING = "tag:yaml.org,2002:str"
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")  # an anchor or a tag before the value
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_BLOCK = re.compile(r"(?P<style>[|>])[^\r\n]*(?:\r\n?|\n)(?:[ \t]*(?:\r\n?|\n))*(?P<indent> +)")


def entries(document: Document) -> Iterator[Entry]:
    """Yield the strings, called by their keys with dots between them, without the locale if it is the only root key.

    An alias is no entry; its anchor is one.
    """
    seen: set[int] = set()
    for root in _roots(document):
        skipped = 0
        if root is not None and root.id == "mapping" and len(root.value) == 1:
            skipped = int(LOCALE.fullmatch(str(root.value[0][0].value)) is not None)
        for path, node in _scalars(root, (), seen):
            found = _entry(document, node, ".".join(path[skipped:] or path))
            found.form = path[-1] if len(path[skipped:]) > 1 and path[-1] in CATEGORIES else ""
            yield found


def _roots(document: Document) -> list[Any]:
    """Return the root node of each document of a stream."""
    import yaml  # type: ignore[import-untyped]  # here, because it takes time and most files are not YAML

    try:
        return list(yaml.compose_all(document.text, _loader()))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise document.error(mark.index if mark else 0, f"not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise document.error(0, f"not YAML: {error}") from None


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _scalars(node: Any, path: tuple[str, ...], seen: set[int]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if node.id == "mapping":
        for key, value in node.value:
            yield from _scalars(value, (*path, str(key.value)), seen)
    elif node.id == "sequence":
        for number, value in enumerate(node.value):
            yield from _scalars(value, (*path, str(number)), seen)
    elif node.tag == _STRING and path:
        yield path, node


def _entry(document: Document, node: Any, name: str) -> Entry:
    properties = _PROPERTIES.match(document.text, node.start_mark.index, node.end_mark.index)
    start = properties.end() if properties else node.start_mark.index
    end = start + len(document.text[start : node.end_mark.index].rstrip(" \t\r\n"))
    line = document.line(start)
    return Entry(name, node.value, Place(start, end, line), node.value, None, _limits(document, line))


def _limits(document: Document, line: int) -> tuple[Limit, ...]:
    """Return the limits in the comment lines just before this line, and in a comment at its end."""
    found: list[Limit] = []
    _, mark, comment = document.line_text(line).rpartition(" #")
    if mark:
        found += limits_in(comment, document.path, line)
    while line > 1 and (comment := document.line_text(line - 1).strip()).startswith("#"):
        line -= 1
        found += limits_in(comment, document.path, line)
    return tuple(found)


def encode(text: str, entry: Entry, document: Document) -> str:
    """Return the text in the style of the value that it replaces, or in double quotes if that style cannot hold it."""
    raw = document.text[entry.place.start : entry.place.end]
    if block := _BLOCK.match(raw):
        written = _block(text, block["style"], block["indent"])
    elif raw.startswith("'"):
        written = "'" + text.replace("'", "''") + "'"
    elif raw.startswith('"'):
        written = _double_quoted(text)
    else:
        written = text
    # A value that could not be between braces is not; its new text need not fit there, and needs no quotes for it.
    in_flow = block is None and _reads_back(raw, entry.text, in_flow=True)
    if not _reads_back(written, text, in_flow):
        written = _double_quoted(text)
    return written.replace("\n", document.line_end)


def _block(text: str, style: str, indent: str) -> str:
    """Return a block scalar; a folded one (>) stays folded if the text is one paragraph."""
    body = text.removesuffix("\n")
    style = "|" if "\n" in body else style
    head = style if text.endswith("\n") else f"{style}-"
    return "\n".join([head, *(indent + line if line else "" for line in body.split("\n"))])


def _double_quoted(text: str) -> str:
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def _reads_back(written: str, text: str, in_flow: bool) -> bool:
    """Return whether YAML reads the value as this text: after a key and, unless it is a block, between braces."""
    import yaml

    try:
        values = [yaml.load(f"k: {written}\n", _loader())]
        values += [yaml.load(f"{{k: {written}}}\n", _loader())] if in_flow else []
    except (yaml.YAMLError, ValueError):  # ValueError: a date that does not exist
        return False
    return all(value == {"k": text} and ("\n" not in written or written[0] in "|>") for value in values)


def add_form(document: Document, entry: Entry, form: str, text: str) -> list[Edit]:
    """Return the edit that adds a line with another plural form before this one, or none between braces."""
    start = document.text.rfind("\n", 0, entry.place.start) + 1
    head = document.text[start : entry.place.start]
    if not re.fullmatch(rf"[ \t]*[\"']?{entry.form}[\"']?:[ \t]+(?:!\S*[ \t]+)?", head):  # a tag, but no anchor
        return []
    new = head.replace(entry.form, form) + encode(text, entry, document) + document.line_end
    return [Edit(start, start, new)]


def label(document: Document, source: str, target: str) -> list[Edit]:
    """Return the edit of the root key, if it is the only one and the source language: en, en-GB."""
    keys = [key for root in _roots(document) if root is not None and root.id == "mapping" for key, _ in root.value]
    if len(keys) != 1 or not LOCALE.fullmatch(str(keys[0].value)) or primary(keys[0].value) != source:
        return []
    start = document.text.index(keys[0].value, keys[0].start_mark.index)
    return [Edit(start, start + len(keys[0].value), target)]


FORMAT = Format("yaml", entries, encode, in_folders=False, label=label, add_form=add_form, plurals_are_keys=True)
