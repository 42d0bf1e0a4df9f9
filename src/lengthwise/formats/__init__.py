"""String files: entries, limits and places in subtitle and string files. Imports no torch and no transformers.

Only texts change: `splice` puts new texts into the bytes of the file, and leaves all other bytes as they are.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from .base import Edit, Entry, Format, FormatError, Limit, Place
from .file import StringFile, decode, find_entries, splice

__all__ = [
    "FORMATS",
    "Edit",
    "Entry",
    "Format",
    "FormatError",
    "Limit",
    "Place",
    "StringFile",
    "files_in",
    "read",
    "splice",
]

# The suffixes of a format, and the module with its FORMAT, which is imported when a file has such a suffix.
# The first format that recognises a file's content reads it.
FORMATS: dict[str, tuple[tuple[str, ...], str]] = {
    "srt": ((".srt",), "srt"),
    "vtt": ((".vtt",), "vtt"),
    "ass": ((".ass", ".ssa"), "ass"),
    "po": ((".po", ".pot"), "po"),
    "xliff": ((".xlf", ".xliff"), "xliff"),
    "chrome": (("messages.json",), "chrome"),
    "json": ((".json",), "json_strings"),
    "arb": ((".arb",), "arb"),
    "android": ((".xml",), "android"),
    "stringsdict": ((".stringsdict", ".strings"), "stringsdict"),
    "strings": ((".strings",), "apple_strings"),
    "properties": ((".properties",), "properties"),
    "yaml": ((".yml", ".yaml"), "yaml_strings"),
    "qt": ((".ts",), "qt_ts"),
    "store": ((".txt",), "store_listing"),
    "text": ((".txt",), "plain_text"),
}


def formats_of(path: Path | str) -> list[Format]:
    """Return the formats that have the suffix of this file."""
    name = Path(path).name.lower()
    modules = [module for suffixes, module in FORMATS.values() if name.endswith(suffixes)]
    return [import_module(f".{module}", __name__).FORMAT for module in modules]


def read(path: Path | str, *, data: bytes | None = None, encoding: str | None = None) -> StringFile:
    """Return the entries of a file. `data`: its bytes, if they are not to be read from `path`.

    `encoding` is for files that neither have a byte order mark nor are UTF-8.
    """
    name = Path(path).as_posix()
    claiming = formats_of(path)
    if not claiming:
        suffixes = sorted({suffix for suffixes, _ in FORMATS.values() for suffix in suffixes})
        raise FormatError(name, 0, f"no format has this suffix; known are {', '.join(suffixes)}")
    document = decode(name, Path(path).read_bytes() if data is None else data, claiming, encoding)
    for format in claiming:
        if format.recognises(document):
            return find_entries(document, format)
    named = f"its content is not that of {' or '.join(format.name for format in claiming)} files"
    try:
        find_entries(document, claiming[-1])
    except FormatError as error:
        raise FormatError(name, error.line, f"{named}: {error.reason}") from None
    raise FormatError(name, 0, named)


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder whose format is certain from their names and contents, in order.

    JSON, YAML and properties files have many uses, so they are read only where they are named.
    """
    for path in sorted(folder.rglob("*")):
        claiming = [format for format in formats_of(path) if format.in_folders]
        if claiming and path.is_file():
            try:
                document = decode(path.as_posix(), path.read_bytes(), claiming)
            except FormatError:
                yield path  # `read` gives the same error, with its line
                continue
            if any(format.recognises(document) for format in claiming):
                yield path
