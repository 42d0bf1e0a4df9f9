"""Limits in words: find the length limits that people write into comments and descriptions of strings.

Each pattern has a number, and some have a unit. A phrase must be explicit: "80 characters" alone is no limit. A phrase
about something else than the text, such as what a user may enter, is none either.
"""

import re
from collections.abc import Iterator

from ..length.units import UNITS
from .base import Limit
from .limit_context import is_about_the_text, is_for_each_line, unwrapped

_UNIT = r"(?P<unit>char(?:acter|s|acters)?|letters?|columns?|cols?|cells?|bytes?|words?|pixels?|px)\b"
# After a number without a unit, a word is what it counts ("3 hours"), unless the sentence goes on ("40 including")
_GOES_ON = (
    r"(?:\w+ing|with(?:out)?|for|in|on|at|as|by|(?:and|or)(?!\s+\d)|but|if|when|since|so|is|the|this|it|max(?:imum)?"
    r"|please)\b"
)
_NO_OTHER = rf"(?![ \t]*(?:%|[-–/][ \t]*\d)|(?:[ \t]+|-)?(?!{_GOES_ON})[^\W\d_])"
_UNIT_OR_NONE = rf"(?:[ \t-]{{0,2}}(?:(?:ascii|latin|unicode|utf-?8) )?{_UNIT}|{_NO_OTHER})"
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_DIGITS = r"\d+(?:,\d{3})*"
# Of "15-20" the second. A match takes all of a number: neither 1 nor 5 of "1.5", nor 2 of "2-3", nor 500 of "1 500".
# In "Windows 11 100 chars" and "Office 2019 100 chars" the first number is another one; not so after these words.
_NO_NAMES = ("to", "is", "be", "of", "in", "are", "max", "most", "than", "keep", "below", "under", "limit", "maximum")
_OTHER_BEFORE = "|".join(
    rf"(?<=[^\W\d_][ ]{digits}[ ])" + "".join(rf"(?<!\b{word}[ ]{digits}[ ])" for word in _NO_NAMES)
    for digits in (r"\d", r"\d\d", r"\d\d\d")
)
_NUMBER = (
    rf"(?<!\d[.,'’\u00a0\u202f])(?:(?<!\d[ ])|(?!\d{{3}}\b)|(?<=\d{{4}}[ ])|{_OTHER_BEFORE})"
    rf"(?>(?:{_DIGITS}[-–])?(?P<number>{_DIGITS}))(?![.,'’\u00a0\u202f]?\d|[ ]\d{{3}}\b)"
)
_NUMBER_OR_WORD = rf"(?:{_DIGITS}[-–])?(?P<number>{_DIGITS}|{'|'.join(_NUMBER_WORDS)})"
_UNIT_NAMES = {"char": "chars", "lett": "chars", "colu": "cells", "col": "cells", "cols": "cells", "cell": "cells"}
_UNIT_NAMES |= {"byte": "bytes", "word": "words", "pixe": "pixels", "px": "pixels"}
_UP_TO = (
    r"limit(?:ed)?(?: (?:is|of|it|this|the \w+))?(?: to)?|at most|(?:no|not) (?:more|longer|larger|wider) than"
    r"|(?:not|never|\w+n['’]t) (?:be )?(?:exceed(?:ing)?|longer than|more than)|cannot exceed|up to"
    r"|max(?:imum|\.)?(?: of| is)?|max(?:imum|\.)?(?: \w+)? (?:length|size|width)(?: (?:of|is))?|within"
    r"|fits? (?:in|into|on)(?: an?)?|restrict(?:ed)? to"
    r"|(?:truncated|cut(?: off)?) (?:at|after|to|if (?:it is |they are )?(?:longer|more) than)"
).replace(" ", r"\s+")
_BELOW = r"below|under|less than|fewer than|shorter than|smaller than|narrower than".replace(" ", r"\s+")
_UNIT_WORDS = ("char", "letter", "col", "cell", "byte", "word", "pixel", "px")
# Each with words of which one must be in the comment, in lower case; most comments have none, and need no search.
_PATTERNS: list[tuple[tuple[str, ...], re.Pattern[str]]] = [
    (needed, re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for needed, pattern in (
        # Weblate `max-length:100`, Pontoon `MAX_LENGTH: 100`, `maxLength="30"`, `x-max-length`
        (
            ("len",),
            rf"\bmax[-_ ]?len(?:gth)?[\"']?[ \t]*[:=][ \t]*[\"']?{_NUMBER}{_UNIT_OR_NONE}",
        ),
        # Android and Chromium `[CHAR LIMIT=30]`, `CHAR_LIMIT: 30`, `[CHARSIZE=30]`
        (("char",), rf"\bCHAR(?:ACTER)?S?[\s_-]*(?:LIMIT(?: is| of)?[\s]*[=:]?|SIZE\s*[=:])\s*{_NUMBER}\b"),
        # SAP `#XFLD,30:` and `#XBUT, 20: the button`
        ((",",), r"^\s*#?\s*(?-i:[XY][A-Z]{3}),\s*(?P<number>\d+)\s*(?::|$)"),
        # "Limit to 80 characters", "at most 12 words"
        (
            _UNIT_WORDS,
            rf"(?:\b(?:{_UP_TO})[:\s]+|(?:<=|≤)\s*)(?:about |approximately )?{_NUMBER_OR_WORD}[\s-]{{0,3}}{_UNIT}",
        ),
        # "below 55 columns", "< 20 characters"
        (_UNIT_WORDS, rf"(?P<below>\b(?:{_BELOW})\s+|<\s*){_NUMBER_OR_WORD}[\s-]{{0,3}}{_UNIT}"),
        # "132 characters or less", "20 chars max"
        (
            _UNIT_WORDS,
            rf"\b{_NUMBER}[\s-]{{0,3}}{_UNIT}(?:\s+long)?,?\s*"
            r"(?:or (?:less|fewer|shorter|below)|max(?:imum)?\b|at most|limit)",
        ),
        # "Byte limit: 22", "Max. characters: 22"
        (
            ("limit", "max"),
            rf"\b(?:max(?:imum|\.)?(?: number of)? {_UNIT}(?: is)?|"
            rf"{_UNIT.replace('unit', 'units')} (?:limit|maximum|max)(?: is| of)?)[:= ]+{_NUMBER}\b",
        ),
        # "Maximum length: 40", "Length limit: 40"
        (
            ("length",),
            rf"\b(?:max(?:imum)?\.? (?:string |text )?length|length limit)(?: is| of)?[:= ]+{_NUMBER}"
            rf"{_UNIT_OR_NONE}",
        ),
    )
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
    patterns = [one for one in _PATTERNS if any(word in lower for word in one[0])]
    text = unwrapped(comment) if patterns else ""
    for needed, pattern in patterns:
        for match in pattern.finditer(text):
            if needed is _UNIT_WORDS and not is_about_the_text(text, match):
                continue
            groups = match.groupdict()
            number = _value(groups["number"]) - bool(groups.get("below"))
            unit = unit_of(groups.get("unit") or groups.get("units") or "chars")
            if number > 0:
                at, said = line + comment.count("\n", 0, match.start()), " ".join(match[0].split())
                yield Limit(number, unit, said, file, at, each_line=unit == "cells" or is_for_each_line(text, match))


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
