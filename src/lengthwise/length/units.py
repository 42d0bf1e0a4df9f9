"""Units: the counting rules (characters, words, tokens, …) and `measure`, which applies them to a text.

A unit measures a text; its signature names the counting rule. Whether a text fits is always decided by `measure`.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from ..protocols import Tokenizer


@dataclass(frozen=True)
class Unit:
    """One way of counting. `count` receives the text without leading and trailing white space.

    `count_open`: counts a text that goes on, if that differs.
    """

    name: str
    signature: str
    count: Callable[[str], int]
    aliases: tuple[str, ...] = ()
    count_open: Callable[[str], int] | None = None

    def measure(self, text: str) -> int:
        """Return the length of `text` in this unit, without white space at both ends."""
        return self.count(text.strip())

    def running(self, text: str) -> int:
        """Return the length of the beginning of a text, without white space at its start."""
        return (self.count_open or self.count)(text)


def _chars(text: str) -> int:
    return len(unicodedata.normalize("NFC", text))


def _chars_nospace(text: str) -> int:
    return sum(not c.isspace() for c in unicodedata.normalize("NFC", text))


def _graphemes(text: str) -> int:
    import regex  # here, as below: most runs of `check` need neither, and the imports take a tenth of a second

    return len(regex.findall(r"\X", text))


def _words(text: str) -> int:
    return len(text.split())


# LIFEBench's rule: each Chinese character, and each word of ASCII letters, digits, apostrophes and hyphens. A word that
# touches another letter or a Chinese character is not counted: "café" is 0, "2024年" is 1. In "我-我" the hyphen is a
# word, in "我-" it is none. In a text that goes on, a final hyphen counts, so that a letter after it adds 1 at most.
_WORD_CJK = re.compile(r"[\u4e00-\u9fff]|\b[A-Za-z0-9'-]+\b")
_WORD_CJK_OPEN = re.compile(rf"{_WORD_CJK.pattern}['-]*|(?<=\w)['-]+\Z")


def _words_cjk(text: str) -> int:
    return len(_WORD_CJK.findall(text))


def _words_cjk_open(text: str) -> int:
    return len(_WORD_CJK_OPEN.findall(text))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _cells(text: str) -> int:
    """Return the terminal columns: wide characters take 2, combining and control characters 0."""
    from wcwidth import wcwidth

    return sum(max(wcwidth(c), 0) for c in text)


def _tweet(text: str) -> int:
    from .tweet import weight

    return weight(text)


def _tokens(text: str) -> int:
    raise ValueError("lengths in tokens need a tokenizer: measure(text, 'tokens', tokenizer=...)")


UNITS: dict[str, Unit] = {
    unit.name: unit
    for unit in (
        Unit("tokens", "unit:tokens|eos:no|v1", _tokens, ("token",)),
        Unit("chars", "unit:chars|norm:nfc|ws:keep|v1", _chars, ("char", "character", "characters")),
        Unit("graphemes", "unit:graphemes|uax:29|ws:keep|v1", _graphemes, ("grapheme",)),
        Unit("words", "unit:words|split:ws|v1", _words, ("word",)),
        Unit("bytes", "unit:bytes|enc:utf8|norm:none|ws:keep|v1", _bytes, ("byte",)),
        Unit("cells", "unit:cells|width:wcwidth|ws:keep|v1", _cells, ("cell", "column", "columns")),
        Unit("chars-nospace", "unit:chars|norm:nfc|ws:drop|v1", _chars_nospace, ("char-nospace",)),
        Unit("words-cjk", "unit:words|split:ascii+han|rule:lifebench|v1", _words_cjk, ("word-cjk",), _words_cjk_open),
        Unit("tweet", "unit:tweet|norm:nfc|url:23|rule:twitter-text-3|v1", _tweet, ("tweets",)),
    )
}
_BY_ALIAS = {alias: unit for unit in UNITS.values() for alias in (unit.name, *unit.aliases)}


def unit_named(name: str) -> Unit:
    """Return the unit called `name`, also in its singular or long form; the error lists all units."""
    try:
        return _BY_ALIAS[str(name).strip().lower()]
    except KeyError:
        raise ValueError(f"unknown unit {name!r}; the units are {', '.join(UNITS)}") from None


def measure(text: str, unit: str = "chars", *, tokenizer: Tokenizer | None = None) -> int:
    """Return the length of `text`. Leading and trailing white space is not counted.

    >>> measure("Où est-il ?", "chars"), measure("Où est-il ?", "words"), measure("Où est-il ?", "bytes")
    (11, 3, 12)
    """
    found = unit_named(unit)
    if found.name == "tokens" and tokenizer is not None:
        return len(tokenizer(text.strip(), add_special_tokens=False)["input_ids"])
    return found.measure(text)
