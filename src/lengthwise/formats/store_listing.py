"""Store listings in fastlane's folders: one text a file, whose name says what it is and how long it may be."""

from collections.abc import Iterator
from pathlib import PurePath

from . import plain_text
from .base import Document, Entry, Format, Limit

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
    """Yield the file's text as one entry with the limit of its kind."""
    for entry in plain_text.entries(document):
        if found := _limit(document.path):
            entry.limits = (Limit(found[0], "chars", f"{found[1]}: at most {found[0]} characters"),)
        yield entry


def recognises(document: Document) -> bool:
    return _limit(document.path) is not None


FORMAT = Format("store", entries, plain_text.encode, recognises, has_icu=False)
