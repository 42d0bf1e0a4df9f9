"""Qt Linguist (.ts): messages of contexts, with plural forms (numerus) and length variants."""

import re
from collections.abc import Iterator

from . import xml
from .base import Document, Edit, Entry, Format, Limit, Place
from .limits import limits_in
from .xml import Element

_NOTES = ("extracomment", "comment", "translatorcomment")


def entries(document: Document) -> Iterator[Entry]:
    """Yield the translations that are in use. Plural forms are called context|source[0]."""
    root = xml.parse(document)
    if root.name != "TS":
        raise document.error(root.start, f"the root element of a Qt file is <TS>; got <{root.name}>")
    for message in root.find_all("message"):
        translation, source = message.child("translation"), message.child("source")
        kind = translation.attributes.get("type") if translation else None
        if translation is None or kind in ("vanished", "obsolete"):
            continue
        context = message.parent.child("name") if message.parent else None
        comment = message.child("comment")
        names = [xml.decode(part.raw(document))[0] if part else None for part in (context, source, comment)]
        name = message.attributes.get("id") or "|".join(part for part in names if part is not None)
        flags = frozenset({"unfinished"}) if kind == "unfinished" else frozenset()
        limits = _limits(document, message)
        forms = [child for child in translation.children if child.name in ("numerusform", "lengthvariant")]
        for number, element in enumerate(forms or [translation]):
            key = f"{name}[{number}]" if forms else name
            found = _entry(document, element, key, names[1], limits, flags)
            found.form = str(number) if element.name == "numerusform" else ""
            found.source_markup = source is not None and xml.has_markup(source.raw(document))
            yield found


def _entry(
    document: Document,
    element: Element,
    name: str,
    source: str | None,
    limits: tuple[Limit, ...],
    flags: frozenset[str],
) -> Entry:
    around = ("", "")
    if element.inner is None:  # <translation type="unfinished"/>
        around = (f"<{element.tag}{element.attributes_text.rstrip('/').rstrip()}>", f"</{element.tag}>")
    place = element.inner or (element.start, element.end)
    text, markup = xml.decode(element.raw(document))
    where = Place(*place, document.line(element.start))
    return Entry(name, text, where, xml.shown(text, markup), source, limits, flags, markup, around=around)


def _limits(document: Document, message: Element) -> tuple[Limit, ...]:
    found: list[Limit] = []
    for note in message.children:
        if note.name in _NOTES:
            found += limits_in(xml.shown(note.raw(document), True), document.path, document.line(note.start))
    return tuple(found)


def mark(document: Document, entry: Entry, note: str | None) -> list[Edit]:
    """Return the edit that sets or removes type="unfinished"."""
    kind = None if note is None else "unfinished"
    if entry.around[0].startswith("<translation"):
        entry.around = (xml.with_attribute(entry.around[0], "type", kind), entry.around[1])
        return []
    start, end = xml.opening_tag(document, "translation", entry.place.start)
    old = document.text[start:end]
    new = xml.with_attribute(old, "type", kind)
    return [Edit(start, end, new)] if new != old else []


def label(document: Document, source: str, target: str) -> list[Edit]:
    """Return the edit of the language, if there is none, or if it is the source language."""
    root = re.search(r"<TS\b[^<>]*>", document.text)
    assert root is not None
    tag, (start, end) = root[0], root.span()
    found = re.search(r"\slanguage\s*=\s*[\"']([^\"']*)[\"']", tag)
    if found and found[1].partition("_")[0] not in ("", source):
        return []
    return [Edit(start, end, xml.with_attribute(tag, "language", target))]


def add_form(document: Document, entry: Entry, form: str, text: str) -> list[Edit]:
    """Return the edit that adds a numerusform after this one."""
    start, tag_end = xml.opening_tag(document, "numerusform", entry.place.start + 1)
    end = tag_end if document.text[tag_end - 2] == "/" else document.text.index(">", entry.place.end) + 1
    space = xml.space_before(document, start)
    return [Edit(end, end, f"{space}<numerusform>{xml.encode(text, entry, document)}</numerusform>")]


def recognises(document: Document) -> bool:
    return "<TS" in document.text  # .ts is also the suffix of TypeScript


FORMAT = Format(
    "qt",
    entries,
    xml.encode,
    recognises,
    declared=xml.declared,
    mark=mark,
    label=label,
    add_form=add_form,
    has_icu=False,
    numbers_plurals=True,
    mnemonics="&",
)
