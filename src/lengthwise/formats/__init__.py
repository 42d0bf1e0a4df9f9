"""String files: entries, limits and places in subtitle and string files. Imports no torch and no transformers.

Only texts change: `splice` puts new texts into the bytes of the file, and leaves all other bytes as they are.
"""

from collections.abc import Iterator
from pathlib import Path

from . import (
    android,
    apple_strings,
    arb,
    ass,
    chrome,
    json_strings,
    po,
    properties,
    qt_ts,
    srt,
    store_listing,
    stringsdict,
    vtt,
    xliff,
    yaml_strings,
)
from .base import Entry, Format, FormatError, Limit, Place
from .file import StringFile, decode, find_entries, splice

__all__ = ["FORMATS", "Entry", "Format", "FormatError", "Limit", "Place", "StringFile", "files_in", "read", "splice"]

# The first format that claims a file's name and recognises its content reads it.
FORMATS: dict[str, Format] = {
    "srt": srt.FORMAT,
    "vtt": vtt.FORMAT,
    "ass": ass.FORMAT,
    "po": po.FORMAT,
    "xliff": xliff.FORMAT,
    "chrome": chrome.FORMAT,
    "json": json_strings.FORMAT,
    "arb": arb.FORMAT,
    "android": android.FORMAT,
    "stringsdict": stringsdict.FORMAT,
    "strings": apple_strings.FORMAT,
    "properties": properties.FORMAT,
    "yaml": yaml_strings.FORMAT,
    "qt": qt_ts.FORMAT,
    "store": store_listing.FORMAT,
    "text": store_listing.TEXT,
}


def read(path: Path | str, *, data: bytes | None = None, encoding: str | None = None) -> StringFile:
    """Return the entries of a file. `data`: its bytes, if they are not to be read from `path`.

    `encoding` is for files that neither have a byte order mark nor are UTF-8.
    """
    name = Path(path).as_posix()
    claiming = [format for format in FORMATS.values() if format.claims(name)]
    if not claiming:
        suffixes = sorted({suffix for format in FORMATS.values() for suffix in format.suffixes})
        raise FormatError(name, 0, f"no format has this name; the formats are {', '.join(suffixes)}")
    document = decode(name, Path(path).read_bytes() if data is None else data, claiming, encoding)
    for format in claiming:
        if format.recognises(document):
            return find_entries(document, format)
    raise FormatError(name, 0, f"its content is not that of {' or '.join(format.name for format in claiming)} files")


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder whose format is certain from their names and contents, in order.

    JSON, YAML and properties files have many uses, so they are read only where they are named.
    """
    for path in sorted(folder.rglob("*")):
        claiming = [format for format in FORMATS.values() if format.in_folders and format.claims(path.name)]
        if claiming and path.is_file():
            try:
                document = decode(path.as_posix(), path.read_bytes(), claiming)
            except FormatError:
                yield path  # `read` gives the same error, with its line
                continue
            if any(format.recognises(document) for format in claiming):
                yield path
