"""Placeholders: format strings, markup, addresses and symbols that a translation must keep, and stand-ins for them."""

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape

import regex

from ..length.addresses import DOMAIN, EMAIL, UNIX_PATH, URL, WINDOWS_PATH
from .tags import TAG, misplaced_tags

# `\n`, but `\name` is probably a command; <br>, and tags around paragraphs, items and cells.
_BREAK = (
    r"\\[nrt](?![a-z]{3})|</?(?:br|p|div|h[1-6]|[uod]l|li|d[td]|t[rdh]|table|blockquote|hr|html|head|body)"
    r"(?:\s[^<>]*)?/?>"
)
# Shapes, dingbats and emoji: a small vocabulary lacks most of them, and a model writes other characters in their place.
_SYMBOLS = r"(?:[\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff][\ufe0f\u200d\U000e0020-\U000e007f]*)+"
_OPTION = r"(?<![\w-])--[A-Za-z][\w-]*\w"  # of a command
# A digest, a key, base64: letters and digits without a space that a model writes with errors.
_KEY = (
    r"(?<![\w+/=-])(?=[A-Za-z_]*+\d[\d_]*+[A-Za-z])[A-Za-z0-9_+/]{20,}+=*"
    r"|(?<![\w-])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![\w-])"
)
# Must occur in the output as often as in the source. Balanced braces are one placeholder, also nested (ICU messages).
_PLACEHOLDER = regex.compile(
    rf"{URL}|{EMAIL}|{DOMAIN}|{WINDOWS_PATH}|{UNIX_PATH}"
    r"|[$#%]?(?P<brace>\{(?:[^{}]|(?&brace))*\})"
    r"|\$t\([^()]*\)|@(?:\.\w+)?:(?:\([\w.]+\)|\w+(?:\.\w+)*)|%<\w+>[-+0-9.]*[a-zA-Z]"  # i18next, Vue, Ruby
    r"|\$\([\w.]+\)|\$\[[\w.]+\]|\$[A-Za-z_]\w*\$?|\$\d+\$|\$\d(?!\d|[.,]\d|\s*(?:million|billion|m\b|bn\b))"
    r"|%(?:\d+\$)?#@\w+@|(?<!\d)%@|%\d+\$@|%\d+\$[-+#0]*\d*(?:\.\d+)?(?:hh?|ll?|[Lzjt])?[diouxXeEfFgGcsSp]"
    r"|(?<!\d)%[-+#0]*\d*\.\d+[fFeEgG]|(?<!\d)%L?n\b|%L\d+"
    r"|%\([\w.]+\)[-+#0-9.]*[a-zA-Z]|%[A-Z][A-Z_]+%?|(?<!\d)%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh?|ll?|[Lzjt])?"
    r"[diouxXeEfFgGcsSp@](?![a-z])|(?<!\d)%(?:[a-z]\w+%?|\d+)|%[XY]\b|%%"
    rf"|{TAG}|&(?:\#\w+|[A-Za-z]\w+);|{_BREAK}|{_SYMBOLS}|{_OPTION}|{_KEY}"
)
_SIGN = re.compile(r"[{<%$@&/\\\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]|--|\w\.[a-z]{2}")
_SHORTEST_KEY = 20  # characters
_HARD_BREAK = regex.compile(rf"\s*(?:\n|{_BREAK})(?:\s|{_BREAK})*")
_LETTER = regex.compile(r"\p{L}")
# A number with the marks that group digits. In translations also with spaces ("1 000") or after a letter ("9h05").
_NUMBER = regex.compile(r"(?<![\p{L}\d])\d+(?:[.,'’\u00a0\u202f]\d+)*(?!\d|(?:st|nd|rd|th)\b)")
_LOOSE_NUMBER = regex.compile(r"\d+(?:[.,'’\s]\d+)*")
_VERSION = regex.compile(r"(?!\d{1,3}(?:\.\d{3})+\Z)\d+(?:\.\d+){2,}")
_DECIMAL = regex.compile(r"(.*)[.,](?!\d{3}\Z)(\d+)", regex.DOTALL)
# Pieces of a stand-in for a tag ("<7stopped<"), and the character that stands for bytes which are no text.
_TORN = regex.compile(r"<\d+(?=[\p{L}<])|\ufffd")
_FULL_STOPS = re.compile(r"(?<!\.)\.{3}(?!\.)")
_TORN_REFERENCE = regex.compile(r" ?& ?(\#\d+|[a-z]+) ?;")
# Of nineteen forms tried on opus-mt, these were always kept, and the text around them was translated best: braces for
# words, angle brackets for tags around words. Rare characters (⟦1⟧) were always lost.
STAND_INS = ("{%d}", "<%d>", "X%d")


def count_placeholders(text: str) -> Counter[str]:
    """Return how often each placeholder occurs in the text. Numbers are not counted.

    >>> count_placeholders("Hello {name}, <b>%d</b> of 5") == Counter({"{name}": 1, "<b>": 1, "%d": 1, "</b>": 1})
    True
    """
    return Counter(found[0] for found in _found_in(text))


def _found_in(text: str) -> "Iterator[regex.Match[str]]":
    """Yield the placeholders. Most texts have no character that any of them has, and need no search."""
    if _may_have_one(text):
        yield from _PLACEHOLDER.finditer(text)


def _may_have_one(text: str) -> bool:
    """Return whether the text has a character that placeholders have, or a word as long as a key."""
    return _SIGN.search(text) is not None or max(map(len, text.split()), default=0) >= _SHORTEST_KEY


def split_placeholders(text: str) -> Iterator[tuple[str, bool]]:
    """Yield (piece, is_placeholder) for the pieces of the text.

    >>> list(split_placeholders("Hi {name}!"))
    [('Hi ', False), ('{name}', True), ('!', False)]
    """
    at = 0
    for found in _found_in(text):
        yield text[at : found.start()], False
        yield found[0], True
        at = found.end()
    yield text[at:], False


def translatable(text: str) -> bool:
    """Return whether the text has a letter outside its placeholders."""
    return any(_LETTER.search(piece) for piece, is_placeholder in split_placeholders(text) if not is_placeholder)


def changed_placeholders(source: str, output: str) -> list[str]:
    """Return the placeholders that the output has more or less often than the source, and pieces of torn ones.

    If the output has the same placeholders: the tags that are a pair in only one of the two texts.
    """
    wanted, there = count_placeholders(source), count_placeholders(output)
    torn = dict.fromkeys(found for found in _TORN.findall(output) if found not in source)
    changed = [*(mark for mark in wanted | there if wanted[mark] != there[mark]), *torn]
    return changed or misplaced_tags(source, output)


def lost(source: str, output: str) -> list[str]:
    """Return the placeholders that the output has more or less often than the source, and the numbers that it lacks.

    Numbers are compared by their values, since languages group digits differently ("1,000.5" is "1 000,5"); version
    numbers ("2.13.4") by their text. Ordinals ("20th") are not compared, and the output may have more numbers ("three"
    → "3").
    """
    missing = []
    if digits := _numbers(_bare(source), _NUMBER):
        strict, loose = (_numbers(_bare(output), form) for form in (_NUMBER, _LOOSE_NUMBER))
        missing = [number for number in digits if digits[number] > max(strict[number], loose[number])]
    return changed_placeholders(source, output) + missing


def _bare(text: str) -> str:
    """Return the text with semicolons in place of its placeholders."""
    return _PLACEHOLDER.sub(" ; ", text) if _may_have_one(text) else text


def _numbers(text: str, form: regex.Pattern[str]) -> Counter[str]:
    return Counter(_value(found[0]) for found in form.finditer(text))


def _value(number: str) -> str:
    """Return the digits of a number, with a point where it has a decimal mark; a version number as it is.

    A mark before three digits groups them: it is one of thousands, or it cannot be told.

    >>> [_value(number) for number in ("1,234.50", "1 234,50", "1.234", "2.13.4")]
    ['1234.50', '1234.50', '1234', '2.13.4']
    """
    if _VERSION.fullmatch(number):
        return number
    found = _DECIMAL.fullmatch(number)
    whole, fraction = (found[1], f".{found[2]}") if found else (number, "")
    return (regex.sub(r"\D", "", whole).lstrip("0") or "0") + fraction


def mend_references(source: str, output: str) -> str:
    """Return the output with repaired character references: opus-mt writes "Nom & #160;:"."""
    return output if "&" in source else _TORN_REFERENCE.sub(lambda found: unescape(f"&{found[1]};"), output)


def restore_ellipsis(source: str, output: str) -> str:
    """Return the output with "…" in place of three full stops, if only the source has it: most vocabularies lack it.

    >>> restore_ellipsis("Loading…", "Chargement..."), restore_ellipsis("Loading...", "Chargement...")
    ('Chargement…', 'Chargement...')
    """
    wanted = "…" in source and "..." not in source and "…" not in output
    return _FULL_STOPS.sub("…", output) if wanted else output


def mask(text: str, form: str) -> tuple[str, dict[str, str]]:
    """Return the text with a stand-in for each placeholder, and the placeholder of each; `form` "" changes nothing.

    >>> mask("Hello {name}!", "<%d>")
    ('Hello <1>!', {'<1>': '{name}'})
    """
    if not form:
        return text, {}
    stand_ins = {form % number: found[0] for number, found in enumerate(_PLACEHOLDER.finditer(text), 1)}
    names = iter(stand_ins)
    return _PLACEHOLDER.sub(lambda _: next(names), text), stand_ins


def unmask(text: str, stand_ins: dict[str, str]) -> str:
    """Return the text with its placeholders. Longer stand-ins are found first: X12 is not X1 and 2."""
    if not stand_ins:
        return text
    names = "|".join(regex.escape(name) for name in sorted(stand_ins, key=len, reverse=True))
    return regex.sub(names, lambda found: stand_ins[found[0]], text)


def hard_breaks(text: str) -> list[tuple[int, int]]:
    """Return the spans of line breaks (also `\\n` and <br>) outside paths, with the white space around them."""
    others = [found.span() for found in _PLACEHOLDER.finditer(text) if not _HARD_BREAK.fullmatch(found[0])]
    breaks = [found.span() for found in _HARD_BREAK.finditer(text)]
    return [(start, end) for start, end in breaks if not any(a < end and start < b for a, b in others)]
