"""Messages of browser extensions (_locales/*/messages.json): a message and a description for each key.

The manifest beside _locales names the messages that are the extension's name and description, which have limits.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from . import json_strings
from .base import Document, Entry, Format, Limit
from .json_strings import JsonString
from .limits import limits_in

# developer.chrome.com/docs/extensions/reference/manifest
_MANIFEST = {"name": 75, "short_name": 12, "description": 132}
_SHAPE = re.compile(r"\"message\"\s*:\s*\"")


def entries(document: Document) -> Iterator[Entry]:
    """Yield the messages, with the limits that their descriptions and the manifest name."""
    manifest = _manifest_limits(document.path)
    for key, group in groupby(json_strings.strings(document), lambda string: string.path[0] if string.path else ""):
        fields = {string.path[1:]: string for string in group}
        message, description = fields.get(("message",)), fields.get(("description",))
        if message is not None:
            found = json_strings.entry(document, message, key)
            found.limits = (*manifest.get(key.lower(), ()), *_described(document, description))
            yield found


def _described(document: Document, description: JsonString | None) -> tuple[Limit, ...]:
    if description is None:
        return ()
    return limits_in(description.text, document.path, document.line(description.start))


def _manifest_limits(path: str) -> dict[str, tuple[Limit, ...]]:
    """Return the limits of the messages that the manifest uses as __MSG_key__; keys are not case-sensitive."""
    file = Path(path).parent.parent.parent / "manifest.json"
    found: dict[str, tuple[Limit, ...]] = {}
    with suppress(OSError, ValueError):  # without a manifest there are no such limits
        manifest = json.loads(file.read_text("utf-8-sig"))
        for field, number in _MANIFEST.items():
            used = re.fullmatch(r"__MSG_(\w+)__", str(manifest.get(field, "")))
            if used:
                limit = Limit(number, "chars", f"manifest {field}: at most {number} characters", file.as_posix())
                found[used[1].lower()] = (*found.get(used[1].lower(), ()), limit)
    return found


def recognises(document: Document) -> bool:
    return _SHAPE.search(document.text) is not None


FORMAT = Format("chrome", entries, json_strings.encode, recognises)
