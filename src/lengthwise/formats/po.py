r"""Gettext catalogues (.po, .pot): msgid, msgid_plural and msgstr, with comments and flags before them.

Obsolete entries (#~) are comments here. The header, whose msgid is empty, is no entry.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .base import Document, Edit, Entry, Format, Limit, Place
from .limits import limits_in
from .po_edits import label, mark

_LINE = re.compile(r"[^\r\n]*")
_KEYWORD = re.compile(r"[ \t]*(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d+)\])?\s*(?=\")")
_STRING = re.compile(r'[ \t]*"((?:[^"\\\r\n]|\\.)*)"[ \t]*')
_ESCAPE = re.compile(r"((?:\\(?:[0-7]{1,3}|x[0-9a-fA-F]{1,2}))+)|\\(.)")
_BYTE = re.compile(r"\\(?:x([0-9a-fA-F]+)|([0-7]+))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_CHARSET = re.compile(rb'charset=[ ]*([\w.:-]+)\\n"')
_WIDTH = 77  # of a line in the file, when a long text is written


@dataclass
class _String:
    """A keyword's text, and its place: from the first quote to the last."""

    text: str
    start: int
    end: int


@dataclass
class _Message:
    comments: list[tuple[str, int]] = field(default_factory=list)  # the line's text, its number
    context: _String | None = None
    id: _String | None = None
    plural: _String | None = None
    strings: dict[int | None, _String] = field(default_factory=dict)  # by plural form; None: no plural


def entries(document: Document) -> Iterator[Entry]:
    """Yield one entry for each msgstr, also for each plural form."""
    for message in _messages(document):
        if message.id is None:
            continue
        if not message.strings:
            raise document.error(message.id.start, "a msgid has no msgstr")
        if message.id.text or message.context:
            yield from _message_entries(message, document)


def _message_entries(message: _Message, document: Document) -> Iterator[Entry]:
    assert message.id is not None
    flags, limits = _comments(message, document)
    name = f"{message.context.text}|{message.id.text}" if message.context else message.id.text
    for form, string in message.strings.items():
        source = message.plural if message.plural and form else message.id
        yield Entry(
            name if form is None else f"{name}[{form}]",
            string.text,
            Place(string.start, string.end, document.line(string.start)),
            string.text,
            source.text,
            limits,
            flags,
            form="" if form is None else str(form),
            plural=message.plural.text if message.plural else None,
        )


def _comments(message: _Message, document: Document) -> tuple[frozenset[str], tuple[Limit, ...]]:
    """Return the flags, and the limits in flags and comments, except references (#:), old and obsolete texts (#|, #~).

    Limits are read from the lines just before the message. A comment before a blank line belongs to no message.
    """
    flags: set[str] = set()
    lines: dict[int, str] = {}
    for comment, line in message.comments:
        if comment.startswith("#,"):
            flags |= {flag.strip() for flag in comment[2:].split(",")} & {"fuzzy"}
        lines[line] = "" if comment.startswith(("#:", "#|", "#~")) else comment[1:].lstrip(".,")
    if not lines:
        return frozenset(flags), ()
    first = last = max(lines)
    while first - 1 in lines:
        first -= 1
    told = "\n".join(lines[line] for line in range(first, last + 1))  # a sentence may go on in the next line
    return frozenset(flags), limits_in(told, document.path, first)


def _messages(document: Document) -> Iterator[_Message]:
    text, at = document.text, 0
    message, last = _Message(), None
    while at < len(text):
        if keyword := _KEYWORD.match(text, at):
            name, form = keyword[1], keyword[2]
            begins = name == "msgctxt" or (name == "msgid" and (message.context is None or message.id is not None))
            if begins and (message.id is not None or message.context is not None):
                yield message
                message = _Message()
            string = last = _string(document, keyword.end())
            match name:
                case "msgctxt":
                    message.context = string
                case "msgid":
                    message.id = string
                case "msgid_plural":
                    message.plural = string
                case _:
                    message.strings[None if form is None else int(form)] = string
            at = string.end
        elif last is not None and _STRING.match(text, at):
            string = _string(document, at)
            last.text += string.text
            last.end = at = string.end
        else:
            found = _LINE.match(text, at)
            assert found is not None
            content = found[0].strip()
            if content.startswith("#"):
                if message.strings:  # the comment belongs to the next message
                    yield message
                    message, last = _Message(), None
                message.comments.append((content, document.line(at)))
            elif content:
                raise document.error(at, f"expected msgid, msgstr, a quoted string or a comment; got {content[:60]!r}")
            at = found.end()
        at = _next_line(document, at)
    if message.id is not None:
        yield message


def _string(document: Document, at: int) -> _String:
    found = _STRING.match(document.text, at)
    if found is None:
        raise document.error(at, "a quoted string is not closed in its line")
    string = _String("", found.start(1) - 1, 0)
    while found:  # there may be several in a line
        string.text += _decode(found[1], document.encoding)
        string.end = found.end(1) + 1
        found = _STRING.match(document.text, found.end())
    return string


def _next_line(document: Document, at: int) -> int:
    text = document.text
    while at < len(text) and text[at] in " \t":
        at += 1
    if at < len(text) and text[at] not in "\r\n":
        raise document.error(at, f"unexpected text after a quoted string: {text[at : at + 40]!r}")
    return at + (2 if text.startswith("\r\n", at) else 1)


def _decode(raw: str, encoding: str) -> str:
    def replace(found: re.Match[str]) -> str:
        if found[2] is not None:
            return _ESCAPES.get(found[2], found[2])
        # Numbers are bytes of the file's charset: \303\251 is é in UTF-8.
        values = (int(byte[1], 16) if byte[1] else int(byte[2], 8) for byte in _BYTE.finditer(found[1]))
        return bytes(value & 0xFF for value in values).decode(encoding, "replace")

    return raw if "\\" not in raw else _ESCAPE.sub(replace, raw)


def encode(text: str, entry: Entry, document: Document) -> str:
    """Return the text as quoted strings: one, or an empty one and the text's lines below it."""
    raw = text.replace("\\", "\\\\").replace('"', '\\"')
    for letter, char in _ESCAPES.items():
        raw = raw.replace(char, f"\\{letter}")
    before = document.text[entry.place.start : entry.place.end]
    if "\\n" not in raw.removesuffix("\\n") and (len(raw) <= _WIDTH or not re.search(r"[\r\n]", before)):
        return f'"{raw}"'
    lines = [part for line in re.split(r"(?<=[^\\]\\n)(?=.)", raw) for part in _wrapped(line)]
    return document.line_end.join(['""', *(f'"{line}"' for line in lines)])


def _wrapped(line: str) -> list[str]:
    """Return the line in pieces of at most `_WIDTH` characters, broken after spaces, as gettext writes them."""
    pieces = [""]
    for word in re.findall(r"\S*\s*", line):
        if pieces[-1] and len(pieces[-1] + word) > _WIDTH:
            pieces.append("")
        pieces[-1] += word
    return pieces


def declared(data: bytes) -> str | None:
    """Return the charset of the header, unless it is the template's word CHARSET."""
    found = _CHARSET.search(data[:10_000])
    return found[1].decode("ascii") if found and found[1] != b"CHARSET" else None


def add_form(document: Document, entry: Entry, form: str, text: str) -> list[Edit]:
    """Return the edit that adds a msgstr of another plural form after this one."""
    end = entry.place.end
    return [Edit(end, end, f"{document.line_end}msgstr[{form}] {encode(text, entry, document)}")]


FORMAT = Format(
    "po",
    entries,
    encode,
    declared=declared,
    mark=mark,
    label=label,
    add_form=add_form,
    numbers_plurals=True,
    mnemonics="&_",
)
