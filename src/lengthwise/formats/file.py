"""String files: decode a file, find its entries, and put new texts into its bytes. All other bytes stay as they are."""

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..gc_paused import gc_paused
from .base import Document, Edit, Entry, Format, FormatError

# UTF-32 first, because its mark begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


@dataclass(eq=False)
class StringFile:
    """A file, its format and its entries in the order of the file."""

    document: Document
    format: Format
    entries: Sequence[Entry]

    @property
    def path(self) -> str:
        return self.document.path


def decode(path: str, data: bytes, formats: Sequence[Format], encoding: str | None = None) -> Document:
    """Return the text of a file, in the given encoding or in the one that it declares; else it must be UTF-8."""
    if data.startswith(b"bplist"):
        raise FormatError(path, 0, "it is a binary property list; convert it with `plutil -convert xml1`")
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    body = data[len(mark) :]
    declared = next(filter(None, (format.declared(body) for format in formats)), None) if not mark else None
    names = [_MARKS[mark]] if mark else [encoding] if encoding else [declared] if declared else ["utf-8"]
    if not mark and not encoding:
        names += filter(None, (format.fallback for format in formats))
    for name in names:
        try:
            text = body.decode(name)
            if text.encode(name) != body:
                raise FormatError(
                    path, 0, f"its bytes are not the only form of its text in {name}; convert it to UTF-8"
                )
            if "\0" in text and not mark and not encoding:
                reason = "it has NUL characters, as UTF-16 has; give the encoding, such as --encoding utf-16-le"
                raise FormatError(path, text.count("\n", 0, text.index("\0")) + 1, reason)
            return Document(path, text, name, mark)
        except LookupError:
            raise FormatError(path, 0, f"unknown encoding {name!r}; give another with --encoding") from None
        except UnicodeDecodeError as error:
            line = body[: error.start].count(b"\n") + 1
            reason = (
                f"not {name}: byte {body[error.start]:#04x}; give the encoding with --encoding, or convert the file"
            )
    raise FormatError(path, line, reason)


def find_entries(document: Document, format: Format) -> StringFile:
    """Return the document with its entries."""
    try:
        with gc_paused():  # all objects stay alive, so collections would only cost time
            return StringFile(document, format, list(format.entries(document)))
    except RecursionError:
        raise FormatError(document.path, 0, "it is nested too deeply") from None


def splice(file: StringFile, texts: Mapping[Entry, str], edits: Sequence[Edit] = ()) -> bytes:
    """Return the bytes of the file with new texts for some entries. An entry whose text is the same is not touched.

    `edits`: other changes, such as a flag of an entry. They must not overlap with each other or with the texts; those
    at the same place are made in their order.
    """
    document = file.document
    changes = [written(file, entry, text) for entry, text in texts.items() if text != entry.text]
    parts, at = [], 0
    for start, end, new in sorted([*changes, *edits], key=lambda edit: edit[:2]):
        if start < at:
            raise ValueError(f"{file.path}: two texts for the same place, line {document.line(start)}")
        parts += [document.text[at:start], new]
        at = end
    return document.bom + "".join([*parts, document.text[at:]]).encode(document.encoding)


def written(file: StringFile, entry: Entry, text: str) -> Edit:
    """Return the change that puts a text into the place of an entry, or raise if the file cannot hold it."""
    new = file.format.encode(text, entry, file.document).join(entry.around)
    try:
        new.encode(file.document.encoding)
    except UnicodeEncodeError as error:
        lost, encoding = new[error.start], file.document.encoding
        reason = f"{lost!r} in the text of {entry.id!r} cannot be written in {encoding}; convert the file"
        raise FormatError(file.path, entry.place.line, reason) from None
    return Edit(entry.place.start, entry.place.end, new)
