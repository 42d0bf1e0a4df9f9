"""XML with places: the elements of a document and where their content is. Used by every XML format.

expat decides whether the document is well-formed. In well-formed XML the tags are found by one regular expression,
because < occurs only in tags, comments, CDATA sections and instructions.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from .base import Document, Entry

_TOKEN = re.compile(
    r"<!--(?P<comment>.*?)-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>"
    r"|</(?P<close>[^\s>]+)\s*>|<(?P<open>[^\s/>!?]+)(?P<attributes>(?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([^\s=]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_REFERENCE = re.compile(r"&(?:#(\d+)|#x([0-9a-fA-F]+)|(amp|lt|gt|quot|apos));")
_OTHER_REFERENCE = re.compile(r"&(?!(?:#\d+|#x[0-9a-fA-F]+|amp|lt|gt|quot|apos);)[^;\s]+;")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_ONE_CDATA = re.compile(r"<!\[CDATA\[(?:(?!\]\]>).)*\]\]>", re.DOTALL)
TAG = re.compile(r"<!--.*?-->|<\?.*?\?>|</?[^\s<>!?](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>", re.DOTALL)
_DECLARATION = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)[\"']")
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(eq=False, slots=True)
class Element:
    """An element: its local name, its place, that of its content, and the comments before it or at the end of its line.

    `inner` is None if the element is an empty tag.
    """

    name: str
    tag: str
    start: int
    attributes_text: str
    parent: "Element | None" = None
    inner: tuple[int, int] | None = None
    end: int = 0
    children: list["Element"] = field(default_factory=list)
    comments: list[tuple[str, int]] = field(default_factory=list)  # text and offset

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes by their local names."""
        found = _ATTRIBUTE.findall(self.attributes_text)
        return {name.rpartition(":")[2]: unescape(double or single) for name, double, single in found}

    def child(self, name: str) -> "Element | None":
        return next((child for child in self.children if child.name == name), None)

    def find_all(self, *names: str) -> Iterator["Element"]:
        """Yield the elements below this one with one of these names, in order."""
        stack = self.children[::-1]
        while stack:
            element = stack.pop()
            if element.name in names:
                yield element
            stack += element.children[::-1]

    def ancestors(self) -> Iterator["Element"]:
        """Yield this element and those that contain it."""
        element: Element | None = self
        while element is not None:
            yield element
            element = element.parent

    def raw(self, document: Document) -> str:
        return document.text[slice(*self.inner)] if self.inner else ""


def parse(document: Document) -> Element:
    """Return the root element."""
    parser = expat.ParserCreate(encoding="utf-8")  # the text is decoded; what the declaration names is no longer true
    try:
        parser.Parse(document.text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        at = document.line_start(error.lineno)
        raise document.error(at, f"not well-formed XML: {expat.ErrorString(error.code)}") from None
    root = top = Element("", "", 0, "")
    comments: list[tuple[str, int]] = []
    for token in _TOKEN.finditer(document.text):
        if tag := token["open"]:
            attributes = token["attributes"]
            name = tag.rpartition(":")[2]
            new = Element(name, tag, token.start(), attributes, top, None, token.end(), comments=comments)
            comments = []
            top.children.append(new)
            if not attributes.endswith("/"):
                new.inner, top = (token.end(), token.end()), new
        elif token["close"]:
            assert top.inner is not None
            assert top.parent is not None
            top.inner, top.end = (top.inner[0], token.start()), token.end()
            top, comments = top.parent, []
        elif token["comment"] is not None:
            own = top.children[-1].comments if _ends_line_of(top, token, document.text) else comments
            own.append((token["comment"], token.start("comment")))
    top = root.children[0]
    top.parent = None
    return top


def _ends_line_of(holder: Element, comment: re.Match[str], text: str) -> bool:
    """Return whether a comment is at the end of the line in which the last element of `holder` ends."""
    if not holder.children or not re.compile(r"[ \t]*(?:[\r\n]|\Z)").match(text, comment.end()):
        return False
    return not re.compile(r"[\r\n]").search(text, holder.children[-1].end, comment.start())


def opening_tag(document: Document, name: str, before: int) -> tuple[int, int]:
    """Return where the last opening tag with this local name before a place is."""
    text, at = document.text, before
    while (at := text.rfind("<", 0, at)) >= 0:
        if re.compile(rf"<(?:[\w.-]+:)?{name}[\s/>]").match(text, at) and (tag := TAG.match(text, at)):
            return tag.span()
    raise ValueError(f"{document.path}: no <{name}> before line {document.line(before)}")


def space_before(document: Document, at: int) -> str:
    """Return the white space that ends at a place."""
    before = document.text[max(0, at - 200) : at]
    return before[len(before.rstrip()) :]


def with_attribute(tag: str, name: str, value: str | None) -> str:
    """Return an opening tag with another value of an attribute, or without the attribute.

    >>> with_attribute("<target state='new'>", "state", "final"), with_attribute("<a/>", "b", "1")
    ('<target state="final">', '<a b="1"/>')
    """
    own = re.compile(rf"\s+(?:[\w.-]+:)?{name}\s*=\s*(?:\"[^\"]*\"|'[^']*')")
    new = "" if value is None else f' {name}="{value}"'
    if found := own.search(tag):
        space = re.match(r"\s+", found[0])
        assert space is not None
        return tag[: found.start()] + (new and space[0] + new[1:]) + tag[found.end() :]
    return re.sub(r"\s*(/?>)\Z", lambda end: new + end[1], tag) if new else tag


def unescape(raw: str) -> str:
    """Return the text with the references of XML replaced; entities of the document stay."""
    return raw if "&" not in raw else _REFERENCE.sub(_character, raw)


def _character(found: re.Match[str]) -> str:
    if found[3]:
        return _NAMED[found[3]]
    code = int(found[1]) if found[1] else int(found[2], 16)
    return chr(code) if code <= 0x10FFFF else found[0]


def has_markup(raw: str) -> bool:
    """Return whether the content has elements, comments or entities of the document."""
    rest = _CDATA.sub("", raw)
    return "<" in rest or _OTHER_REFERENCE.search(rest) is not None


def decode(raw: str) -> tuple[str, bool]:
    """Return the text of an element's content, and whether it is markup, which is returned as it is written."""
    raw = re.sub(r"\r\n?", "\n", raw)
    if has_markup(raw):
        return raw, True
    if "<" not in raw:
        return unescape(raw), False
    return "".join(part if i % 2 else unescape(part) for i, part in enumerate(_CDATA.split(raw))), False


def shown(text: str, markup: bool) -> str:
    """Return the text without tags and comments."""
    return unescape(TAG.sub("", _CDATA.sub(r"\1", text))) if markup else text


def encode(text: str, entry: Entry, document: Document) -> str:
    """Return a text as the content of an element: markup as it is, other texts escaped or, as before, in CDATA."""
    if illegal := _ILLEGAL.search(text):
        raise document.error(entry.place.start, f"XML cannot hold the character {illegal[0]!r} of {entry.id!r}")
    if entry.markup:
        _check_fragment(text, entry, document)
    elif _ONE_CDATA.fullmatch(document.text, entry.place.start, entry.place.end):
        text = "<![CDATA[" + text.replace("]]>", "]]]]><![CDATA[>") + "]]>"
    else:
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")
    return text.replace("\n", document.line_end)


def _check_fragment(text: str, entry: Entry, document: Document) -> None:
    try:
        parser = expat.ParserCreate(encoding="utf-8")
        parser.Parse(f"<text>{_OTHER_REFERENCE.sub('', text)}</text>".encode(), True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise document.error(
            entry.place.start, f"the new text of {entry.id!r} is not well-formed XML: {reason}"
        ) from None


def declared(data: bytes) -> str | None:
    """Return the encoding of the XML declaration."""
    found = _DECLARATION.match(data[:1000].lstrip())
    return found[1].decode("ascii") if found else None
