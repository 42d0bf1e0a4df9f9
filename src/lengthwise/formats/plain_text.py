"""Text files (.txt) as one text each. Their limits come from elsewhere: from the name of the file, or from the user."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from .base import Document, Entry, Format, Place


def entries(document: Document) -> Iterator[Entry]:
    """Yield the file's text as one entry, without the white space around it."""
    raw = document.text.strip()
    start = len(document.text) - len(document.text.lstrip())
    text = re.sub(r"\r\n?", "\n", raw)
    yield Entry(PurePath(document.path).stem, text, Place(start, start + len(raw), document.line(start)), text)


def encode(text: str, entry: Entry, document: Document) -> str:
    return text.replace("\n", document.line_end)


FORMAT = Format("text", entries, encode, in_folders=False, has_icu=False)
