"""ICU messages: the branches of plural and select arguments, so that a text is measured as a reader sees it."""

import re
from collections.abc import Callable

_ARGUMENT = re.compile(r"\{\s*[\w.]+\s*,\s*(?:plural|select|selectordinal)\s*,(?:\s*offset:\s*\d+)?")
_BRANCH = re.compile(r"\s*(?:=\d+|[\w-]+)\s*\{")


def longest(text: str, length: Callable[[str], int] = len) -> str:
    """Return the message with the longest branch of each plural or select argument, and other texts as they are.

    >>> longest("{n, plural, one {# file} other {# files}} in {folder}")
    '# files in {folder}'
    """
    if not _ARGUMENT.search(text):
        return text
    found = _message(text, 0, length)
    return text if found is None or found[1] < len(text) else found[0]


def _message(text: str, at: int, length: Callable[[str], int]) -> tuple[str, int] | None:
    """Return the longest form of the message from `at` to the brace that closes it, and where that is."""
    parts = []
    while at < len(text) and text[at] != "}":
        if argument := _ARGUMENT.match(text, at):
            found = _branches(text, argument.end(), length)
            if found is None:
                return None
            part, at = found
        elif text[at] == "{":  # {name}, {date, date, short}
            end = text.find("}", at)
            if end < 0:
                return None
            part, at = text[at : end + 1], end + 1
        else:
            found_text = re.compile(r"''|'[{}][^']*(?:'|\Z)|[^{}]").match(text, at)
            assert found_text is not None
            part, at = found_text[0], found_text.end()
            part = "'" if part == "''" else part.strip("'") if part[0] == "'" and len(part) > 1 else part
        parts.append(part)
    return "".join(parts), at


def _branches(text: str, at: int, length: Callable[[str], int]) -> tuple[str, int] | None:
    forms = []
    while branch := _BRANCH.match(text, at):
        found = _message(text, branch.end(), length)
        if found is None or found[1] >= len(text):
            return None
        forms.append(found[0])
        at = found[1] + 1
    closing = re.compile(r"\s*\}").match(text, at)
    return (max(forms, key=length), closing.end()) if closing and forms else None
