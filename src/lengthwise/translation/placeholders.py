"""Placeholders: what a translation must carry over as it is, and how to get it through a model.

Knows the marks of format strings, markup, addresses and numbers; knows nothing of models, lengths or languages.
"""

from collections import Counter
from collections.abc import Iterator
from html import unescape

import regex

_TAG = r"</?[A-Za-z][^<>]*>"
_BREAK = r"\\[nrt](?![a-z]{3})|<br\s*/?>"  # `\n`; but `\name` is rather a command
# What must occur in the output exactly as often as in the source. Balanced braces are one piece, however deep: of an
# ICU message nothing is translated.
_KEPT = regex.compile(
    r"(?:https?|ftp|file)://[^\s<>\"“”«»]*[^\s<>\"“”«».,;:!?)\]}']"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|(?<![\w\\])[A-Za-z]:\\[^\s\"<>|]+"  # a Windows path
    r"|[$#%]?(?P<brace>\{(?:[^{}]|(?&brace))*\})"
    r"|\$\([\w.]+\)|\$\[[\w.]+\]|\$[A-Za-z_]\w*\$?|\$\d+\$|\$\d(?!\d|[.,]\d|\s*(?:million|billion|m\b|bn\b))"
    r"|%\([\w.]+\)[-+#0-9.]*[a-zA-Z]|%[A-Z][A-Z_]+%?|(?<!\d)%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh?|ll?|[Lzjt])?"
    r"[diouxXeEfFgGcsSp@](?![a-z])|(?<!\d)%(?:[a-z]\w+%?|\d+)|%[XY]\b|%%"
    rf"|{_TAG}|&(?:\#\w+|[A-Za-z]\w+);|{_BREAK}"
)
_PAIR = regex.compile(r"<(?P<name>[A-Za-z][\w-]*)[^<>]*>(?P<inside>.*)</(?P=name)>", regex.DOTALL)
_HARD_BREAK = regex.compile(rf"\s*(?:\n|{_BREAK})(?:\s|{_BREAK})*")
_LETTER = regex.compile(r"\p{L}")
# A number, with the marks that group its digits in one language or another. A looser reading for translations: a space
# groups too ("1 000"), and a letter may stand before ("9h05").
_NUMBER = regex.compile(r"(?<![\p{L}\d])\d+(?:[.,'’\u00a0\u202f]\d+)*(?!\d|(?:st|nd|rd|th)\b)")
_SPACED = regex.compile(r"\d+(?:[.,'’\s]\d+)*")
_TORN = regex.compile(r" ?& ?(\#\d+|[a-z]+) ?;")
# Stand-ins that translators carry over. Of nineteen tried on opus-mt, these came through every time with the text
# around them translated best: braces for words, angles for what encloses words. Rare signs (⟦1⟧) were lost every time.
STAND_INS = ("{%d}", "<%d>", "X%d")


def kept(text: str) -> Counter[str]:
    """What has to be in the translation, each as often as here; numbers aside.

    >>> kept("Hello {name}, <b>%d</b> of 5") == Counter({"{name}": 1, "<b>": 1, "%d": 1, "</b>": 1})
    True
    """
    return Counter(found[0] for found in _KEPT.finditer(text))


def apart(text: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with: is it a placeholder?

    >>> list(apart("Hi {name}!"))
    [('Hi ', False), ('{name}', True), ('!', False)]
    """
    at = 0
    for found in _KEPT.finditer(text):
        yield text[at : found.start()], False
        yield found[0], True
        at = found.end()
    yield text[at:], False


def translatable(text: str) -> bool:
    """Is there a letter that is not part of a placeholder?"""
    return _LETTER.search(_KEPT.sub(" ", text)) is not None


def lost(source: str, output: str) -> list[str]:
    """What of the source did not come through: placeholders in another number, numbers that are missing.

    Numbers are compared by their digits, since languages group them differently ("1,000.5" is "1 000,5"); an ordinal
    ("20th") may become a word or a Roman number, and a word may become a number ("three" → "3").
    """
    wanted, there = kept(source), kept(output)
    changed = [mark for mark in wanted | there if wanted[mark] != there[mark]]
    plain, spaced = (_numbers(_KEPT.sub(" ; ", output), form) for form in (_NUMBER, _SPACED))
    digits = _numbers(_KEPT.sub(" ; ", source), _NUMBER)
    return changed + [number for number in digits if digits[number] > max(plain[number], spaced[number])]


def _numbers(text: str, form: regex.Pattern[str]) -> Counter[str]:
    runs = (regex.sub(r"\D", "", found[0]) for found in form.finditer(text))
    return Counter(run.lstrip("0") or "0" for run in runs)


def tidied(source: str, output: str) -> str:
    """The output without torn character references, which opus-mt has learnt from torn examples: "Nom & #160;:"."""
    return output if "&" in source else _TORN.sub(lambda found: unescape(f"&{found[1]};"), output)


def masked(text: str, form: str) -> tuple[str, dict[str, str]]:
    """The text with a numbered stand-in for each placeholder, and what each stands for.

    >>> masked("Hello {name}!", "<%d>")
    ('Hello <1>!', {'<1>': '{name}'})
    """
    stands: dict[str, str] = {}

    def stand_in(found: regex.Match[str]) -> str:
        stands[form % (len(stands) + 1)] = found[0]
        return form % len(stands)

    return _KEPT.sub(stand_in, text), stands


def unmasked(text: str, stands: dict[str, str]) -> str:
    """The placeholders in their places again. Stand-ins with a longer number first: X12 is not X1 and a 2."""
    for stand_in in sorted(stands, key=len, reverse=True):
        text = text.replace(stand_in, stands[stand_in])
    return text


def enclosed(text: str) -> tuple[str, str, str]:
    """(before, inside, after): a pair of tags around the whole text stays out of the translation."""
    found = _PAIR.fullmatch(text)
    if found is None or f"<{found['name']}" in found["inside"] or f"</{found['name']}" in found["inside"]:
        return "", text, ""
    before, inside, after = enclosed(found["inside"])
    return text[: found.start("inside")] + before, inside, after + text[found.end("inside") :]


def hard_breaks(text: str) -> list[tuple[int, int]]:
    """Where line breaks stand, also written ones (`\\n`, <br>), with the white space around them; not in a path."""
    others = [found.span() for found in _KEPT.finditer(text) if not _HARD_BREAK.fullmatch(found[0])]
    breaks = [found.span() for found in _HARD_BREAK.finditer(text)]
    return [(start, end) for start, end in breaks if not any(a < end and start < b for a, b in others)]
