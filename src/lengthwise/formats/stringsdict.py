"""Apple's property lists with strings: plural rules (.stringsdict), and .strings files that are written as XML."""

from collections.abc import Iterator

from . import xml
from .base import CATEGORIES, Document, Edit, Entry, Format, Limit, Place
from .limits import limits_in
from .xml import Element

_SETTINGS = {"NSStringFormatSpecTypeKey", "NSStringFormatValueTypeKey"}


def entries(document: Document) -> Iterator[Entry]:
    """Yield the strings of the dictionaries, called key/variable/one. The format with its variables is fixed."""
    root = xml.parse(document)
    top = root.child("dict")
    if root.name != "plist" or top is None:
        raise document.error(root.start, f"expected a <plist> with a <dict>; got <{root.name}>")
    yield from _texts(document, top, (), ())


def _texts(document: Document, holder: Element, path: tuple[str, ...], limits: tuple[Limit, ...]) -> Iterator[Entry]:
    key, own = "", limits
    for child in holder.children:
        if child.name == "key":
            key, own = xml.decode(child.raw(document))[0], limits
        for comment, at in child.comments:
            own += limits_in(comment, document.path, document.line(at))
        if child.name == "dict":
            yield from _texts(document, child, (*path, key), own)
        elif child.name == "string" and key not in _SETTINGS:
            text, markup = xml.decode(child.raw(document))
            fixed = frozenset({"fixed"}) if key == "NSStringLocalizedFormatKey" else frozenset()
            place = child.inner or (child.start, child.end)
            around = ("", "") if child.inner else (f"<{child.tag}>", f"</{child.tag}>")
            where = Place(*place, document.line(child.start))
            name = "/".join((*path, key))
            found = Entry(name, text, where, xml.shown(text, markup), None, own, fixed, markup, around=around)
            found.form = key if path and key in CATEGORIES else ""
            yield found


def add_form(document: Document, entry: Entry, form: str, text: str) -> list[Edit]:
    """Return the edit that adds a key and a string with another plural form before this one."""
    start, _ = xml.opening_tag(document, "key", entry.place.start + 1)
    string, _ = xml.opening_tag(document, "string", entry.place.start + 1)
    space = xml.space_before(document, start)
    key = document.text[start:string].replace(entry.form, form)
    return [Edit(start, start, f"{key}<string>{xml.encode(text, entry, document)}</string>{space}")]


def recognises(document: Document) -> bool:
    return "<plist" in document.text


FORMAT = Format("stringsdict", entries, xml.encode, recognises, declared=xml.declared, add_form=add_form, has_icu=False)
