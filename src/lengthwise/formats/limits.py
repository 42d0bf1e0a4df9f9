"""Limits in words: find the length limits that people write into comments and descriptions of strings.

Each pattern has a number, and some have a unit. A phrase must be explicit: "80 characters" alone is no limit.
"""

import re
from collections.abc import Iterator

from ..length.units import UNITS
from .base import Limit

_UNIT = r"(?P<unit>char(?:acter|s|acters)?|letters?|columns?|cols?|cells?|bytes?|words?|pixels?|px)\b"
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER = r"(?P<number>\d+(?:,\d{3})*)"
_NUMBER_OR_WORD = rf"(?P<number>\d+(?:,\d{{3}})*|{'|'.join(_NUMBER_WORDS)})"
_UNIT_NAMES = {"char": "chars", "lett": "chars", "colu": "cells", "col": "cells", "cols": "cells", "cell": "cells"}
_UNIT_NAMES |= {"byte": "bytes", "word": "words", "pixe": "pixels", "px": "pixels"}
_UP_TO = (
    r"limit(?:ed)?(?: (?:is|of|it|this|the \w+))?(?: to)?|at most|(?:no|not) (?:more|longer|larger|wider) than"
    r"|(?:not|never) (?:be )?(?:exceed(?:ing)?|longer than|more than)|cannot exceed|up to|max(?:imum|\.)?(?: of| is)?"
    r"|max(?:imum|\.)?(?: \w+)? (?:length|size|width)(?: (?:of|is))?|within|fits? (?:in|into)|restrict(?:ed)? to"
).replace(" ", r"\s+")
_BELOW = r"below|under|less than|fewer than|shorter than|smaller than|narrower than".replace(" ", r"\s+")
# A comment may tell when a text is shown ("if the name has less than 3 characters") or what is put into it ("%s is a
# name of up to 20 characters"). Such a number is no limit of the text. A mark, a dash or a new line ends the clause.
_CONDITION = re.compile(
    r"(?:\b(?:when(?:ever)?|whose|unless|if(?!\s+(?:possible|needed|necessary)\b))(?=[ \t])"
    r"|(?:%(?:\d+\$)?[a-z@]|%\(\w+\)[sd]|\{\w*\}|\$[a-z_]\w*)[\"'”’]?[ \t]+(?:is|are|has|have|of)\b)"
    r"(?:(?!\s[-–]\s)[^,.;:!?()\[\]—\r\n])*\Z",
    re.IGNORECASE,
)
_UNIT_WORDS = ("char", "letter", "col", "cell", "byte", "word", "pixel", "px")
# Each with words of which one must be in the comment, in lower case; most comments have none, and need no search.
_PATTERNS: list[tuple[tuple[str, ...], re.Pattern[str]]] = [
    # Weblate `max-length:100`, Pontoon `MAX_LENGTH: 100`, `maxLength="30"`, `x-max-length`
    (
        ("len",),
        re.compile(rf"\bmax[-_ ]?len(?:gth)?[\"']?\s*[:=]\s*[\"']?{_NUMBER}(?:[ ]?{_UNIT})?", re.IGNORECASE),
    ),
    # Android and Chromium `[CHAR LIMIT=30]`, `CHAR_LIMIT: 30`
    (("limit",), re.compile(rf"\bCHAR(?:ACTER)?S?[ _-]?LIMIT(?: is| of)?\s*[=:]?\s*{_NUMBER}\b", re.IGNORECASE)),
    # SAP `#XFLD,30:` and `#XBUT, 20: the button`
    ((",",), re.compile(r"^\s*#?\s*[XY][A-Z]{3},\s*(?P<number>\d+)\s*(?::|$)", re.MULTILINE)),
    # "Limit to 80 characters", "at most 12 words"
    (
        _UNIT_WORDS,
        re.compile(
            rf"(?:\b(?:{_UP_TO})[:\s]+|(?:<=|≤)\s*)(?:about |approximately )?{_NUMBER_OR_WORD}[\s-]{{0,3}}{_UNIT}",
            re.IGNORECASE,
        ),
    ),
    # "below 55 columns", "< 20 characters"
    (_UNIT_WORDS, re.compile(rf"(?P<below>\b(?:{_BELOW})\s+|<\s*){_NUMBER_OR_WORD}[\s-]{{0,3}}{_UNIT}", re.IGNORECASE)),
    # "132 characters or less", "20 chars max"
    (
        _UNIT_WORDS,
        re.compile(
            rf"\b{_NUMBER}[\s-]{{0,3}}{_UNIT}\s*(?:or (?:less|fewer|shorter|below)|max(?:imum)?\b|at most|limit)",
            re.IGNORECASE,
        ),
    ),
    # "Byte limit: 22"
    (
        ("limit", "max"),
        re.compile(
            rf"\b(?P<unit>byte|word|column|pixel)s? (?:limit|maximum|max)(?: is| of)?[:= ]+{_NUMBER}\b",
            re.IGNORECASE,
        ),
    ),
    # "Maximum length: 40", "Length limit: 40"
    (
        ("length",),
        re.compile(
            rf"\b(?:max(?:imum)?\.? (?:string |text )?length|length limit)(?: is| of)?[:= ]+{_NUMBER}\b(?![\s-]*[a-z])",
            re.IGNORECASE,
        ),
    ),
]
_SCREEN = re.compile(r"\bc=(?P<columns>\d+)(?:\s+r=(?P<rows>\d+))?\b")  # `c=20 r=3`: the display of a device
_HAS_NUMBER = re.compile(rf"\d|\b(?:{'|'.join(_NUMBER_WORDS)})[\s-]", re.IGNORECASE)


def limits_in(comment: str, file: str, line: int) -> tuple[Limit, ...]:
    """Return the limits that a comment names; it begins in this line of the file."""
    if not _HAS_NUMBER.search(comment):
        return ()
    found: dict[tuple[int | None, str], Limit] = {}
    for limit in (*_screen(comment, file, line), *_words(comment, file, line)):
        found.setdefault((limit.high, limit.unit), limit)
    return tuple(found.values())


def _screen(comment: str, file: str, line: int) -> Iterator[Limit]:
    for match in _SCREEN.finditer(comment):
        rows = int(match["rows"] or 1)
        if int(match["columns"]) and rows:
            at = line + comment.count("\n", 0, match.start())
            yield Limit(int(match["columns"]), "cells", match[0], file, at, lines=rows, each_line=True, wraps=True)


def _words(comment: str, file: str, line: int) -> Iterator[Limit]:
    lower = comment.lower()
    for needed, pattern in _PATTERNS:
        if not any(word in lower for word in needed):
            continue
        for match in pattern.finditer(comment):
            groups = match.groupdict()
            if needed is _UNIT_WORDS and _CONDITION.search(comment, max(0, match.start() - 200), match.start()):
                continue
            number = _value(groups["number"]) - bool(groups.get("below"))
            at = line + comment.count("\n", 0, match.start())
            if number > 0:
                yield Limit(number, unit_of(groups.get("unit") or "chars"), " ".join(match[0].split()), file, at)


def _value(number: str) -> int:
    """Return the number that is written in digits or as a word."""
    word = number.lower()
    return _NUMBER_WORDS.index(word) + 2 if word in _NUMBER_WORDS else int(number.replace(",", ""))


def unit_of(word: str) -> str:
    """Return the name of a unit as people write it: 'characters' → 'chars', 'px' → 'pixels'."""
    return _UNIT_NAMES.get(word.lower()[:4], word.lower())


def countable(limit: Limit) -> bool:
    """Return whether the limit's unit can be counted without a font or a tokenizer."""
    return limit.unit in UNITS and limit.unit != "tokens"
