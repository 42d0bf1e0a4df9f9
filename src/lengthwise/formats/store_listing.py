"""Store listings in fastlane's folders: one text a file, whose name says what it is and how long it may be."""

from collections.abc import Iterator
from pathlib import PurePath

from .base import Document, Entry, Format, Limit, Place

# support.google.com/googleplay/android-developer and developer.apple.com/app-store/product-page
_PLAY = {"title.txt": 30, "short_description.txt": 80, "full_description.txt": 4000}
_APP_STORE = {
    "name.txt": 30,
    "subtitle.txt": 30,
    "promotional_text.txt": 170,
    "description.txt": 4000,
    "keywords.txt": 100,
    "release_notes.txt": 4000,
}
_CHANGELOG = 500


def _limit(path: str) -> tuple[int, str] | None:
    """Return the number of characters and the store, or None if the file is no part of a listing."""
    file = PurePath(path.replace("\\", "/"))
    if "metadata" not in file.parts[:-1]:
        return None
    if file.parent.name == "changelogs":
        return _CHANGELOG, "Google Play: changelog"
    for store, names in (("Google Play", _PLAY), ("App Store", _APP_STORE)):
        if file.name in names:
            return names[file.name], f"{store}: {file.stem}"
    return None


def entries(document: Document) -> Iterator[Entry]:
    """Yield the file's text as one entry, without the white space around it."""
    text = document.text.strip()
    start = len(document.text) - len(document.text.lstrip())
    limits = ()
    if found := _limit(document.path):
        limits = (Limit(found[0], "chars", f"{found[1]}: at most {found[0]} characters"),)
    words = text.replace("\r\n", "\n")
    place = Place(start, start + len(text), document.line(start))
    yield Entry(PurePath(document.path).stem, words, place, words, None, limits)


def encode(text: str, entry: Entry, document: Document) -> str:
    return text.replace("\n", document.line_end)


def recognises(document: Document) -> bool:
    return _limit(document.path) is not None


FORMAT = Format("store", (".txt",), entries, encode, recognises)
TEXT = Format("text", (".txt",), entries, encode, in_folders=False)  # any other text file, with a limit from elsewhere
