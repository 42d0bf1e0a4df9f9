r"""Android resources (strings.xml): string, string-array and plurals, with Android's own escapes (\', \n, "…")."""

import re
from collections.abc import Iterator

from . import xml
from .base import Document, Edit, Entry, Format, Limit, Place, joined_surrogates
from .limits import limits_in
from .xml import Element

_PARTS = re.compile(rf"({xml.TAG.pattern})", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))|(\")|([ \t\r\n\f]+)|([^\\\" \t\r\n\f]+)", re.DOTALL)
_WHITE = " \t\r\n\f"
_LETTERS = {"n": "\n", "t": "\t"}


def entries(document: Document) -> Iterator[Entry]:
    """Yield the strings; items of arrays and plurals are called name[0] and name[one]."""
    root = xml.parse(document)
    if root.name != "resources":
        raise document.error(root.start, f"the root element of Android strings is <resources>; got <{root.name}>")
    for element in root.children:
        name = element.attributes.get("name", "")
        limits, fixed = _limits(document, element), element.attributes.get("translatable") == "false"
        if element.name == "string" or (element.name == "item" and element.attributes.get("type") == "string"):
            yield _entry(document, element, name, limits, fixed)
        elif element.name in ("string-array", "plurals"):
            for number, item in enumerate(element.children):
                key = item.attributes.get("quantity", str(number))
                own = limits + _limits(document, item)
                found = _entry(document, item, f"{name}[{key}]", own, fixed)
                found.form = key if element.name == "plurals" else ""
                yield found


def _limits(document: Document, element: Element) -> tuple[Limit, ...]:
    found: list[Limit] = []
    for comment, at in element.comments:
        found += limits_in(comment, document.path, document.line(at))
    if length := re.search(r"\bmaxLength\s*=\s*[\"'](\d+)[\"']", element.attributes_text):
        found.append(Limit(int(length[1]), "chars", length[0], document.path, document.line(element.start)))
    return tuple(found)


def _entry(document: Document, element: Element, name: str, limits: tuple[Limit, ...], fixed: bool) -> Entry:
    if element.inner is None:  # <string name="x"/>
        opening = f"<{element.tag}{element.attributes_text.rstrip('/').rstrip()}>"
        place, around = (element.start, element.end), (opening, f"</{element.tag}>")
    else:
        raw = element.raw(document)
        start = element.inner[0] + len(raw) - len(raw.lstrip(_WHITE))
        place, around = (start, start + len(raw.strip(_WHITE))), ("", "")
    content, markup = xml.decode(element.raw(document).strip(_WHITE))
    if markup:
        text = "".join(part if i % 2 else _decode(part) for i, part in enumerate(_PARTS.split(content)))
    else:
        text = _decode(content)
    flags = frozenset({"fixed"}) if fixed or _is_reference(content) else frozenset()
    where = Place(*place, document.line(element.start))
    return Entry(name, text, where, xml.shown(text, markup), None, limits, flags, markup, around=around)


def _is_reference(content: str) -> bool:
    """Return whether the content names another resource: @string/app_name, ?attr/title."""
    return re.fullmatch(r"\s*[@?][\w:.+]+/[\w.]+\s*", content) is not None


def _decode(raw: str) -> str:
    """Return the text that Android shows: escapes replaced, white space outside quotes reduced to one space."""
    quoted, parts = False, []
    for code, letter, quote, space, other in _ESCAPE.findall(raw):
        if quote:
            quoted = not quoted
        elif space:
            parts.append(space if quoted else " ")
        else:
            parts.append(chr(int(code, 16)) if code else _LETTERS.get(letter, letter) if letter else other)
    return joined_surrogates("".join(parts))


def _escape(text: str) -> str:
    text = re.sub(r"([\\'\"])", r"\\\1", text).replace("\n", "\\n").replace("\t", "\\t")
    return re.sub(r"  +", lambda spaces: " " + "\\u0020" * (len(spaces[0]) - 1), text)


def encode(text: str, entry: Entry, document: Document) -> str:
    r"""Return the text with Android's escapes. Spaces that Android would drop become \u0020."""
    if entry.markup:
        escaped = "".join(part if i % 2 else _escape(part) for i, part in enumerate(_PARTS.split(text)))
    else:
        escaped = re.sub(r"^([@?])", r"\\\1", _escape(text))
        escaped = re.sub(r"^ | $", r"\\u0020", escaped)
    return xml.encode(escaped, entry, document)


def add_form(document: Document, entry: Entry, form: str, text: str) -> list[Edit]:
    """Return the edit that adds an item of plurals before this one."""
    start, end = xml.opening_tag(document, "item", entry.place.start + 1)
    tag = xml.with_attribute(document.text[start:end].replace("/>", ">"), "quantity", form)
    space = xml.space_before(document, start)
    return [Edit(start, start, f"{tag}{encode(text, entry, document)}</item>{space}")]


def recognises(document: Document) -> bool:
    return "<resources" in document.text


FORMAT = Format("android", entries, encode, recognises, declared=xml.declared, add_form=add_form)
