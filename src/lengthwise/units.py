"""Units: how long is a text?

A unit measures a text and says by which rule (its signature). `measure` is the truth and every verdict uses it.
This file knows nothing of models or tokenizers; counting while a model writes is `meter.py`'s job.
"""

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import regex
from wcwidth import wcwidth


@dataclass(frozen=True)
class Unit:
    """One way of counting. `count` sees the text without leading and trailing white space."""

    name: str
    signature: str
    count: Callable[[str], int]
    aliases: tuple[str, ...] = ()

    def measure(self, text: str) -> int:
        """The length of `text` in this unit, white space at both ends aside."""
        return self.count(text.strip())


def _chars(text: str) -> int:
    return len(unicodedata.normalize("NFC", text))


def _chars_nospace(text: str) -> int:
    return sum(not c.isspace() for c in unicodedata.normalize("NFC", text))


def _graphemes(text: str) -> int:
    return len(regex.findall(r"\X", text))


def _words(text: str) -> int:
    return len(text.split())


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _cells(text: str) -> int:
    """Terminal columns: wide characters take 2, combining and control characters 0."""
    return sum(max(wcwidth(c), 0) for c in text)


# X's rule (twitter-text v3): NFC; code points in these ranges weigh 1, all others 2; a URL weighs 23; an emoji sequence 2.
_LIGHT = ((0, 4351), (8192, 8205), (8208, 8223), (8242, 8247))
_URL = regex.compile(
    r"(?<![@#$\w.])(?:https?://)?(?:[a-z0-9](?:[\w-]*[a-z0-9])?\.)+"
    r"(?:com|org|net|edu|gov|int|mil|info|biz|app|dev|io|ai|co|me|tv|ly|be|eu|uk|us|de|fr|it|es|nl|pt|ru|pl|se|no|dk|fi"
    r"|ch|at|cz|gr|ie|jp|cn|kr|in|br|mx|ca|au|nz|za|tr|ua|gl|xyz|site|online|blog|news|shop|store|tech|cloud|page)\b"
    r"(?::\d+)?(?:/[^\s]*[\w/=&#-]|/)?(?:\?[^\s]*[\w/=&#-])?",
    regex.IGNORECASE,
)
_EMOJI = regex.compile(r"\p{Extended_Pictographic}|\p{Regional_Indicator}|[0-9#*]\uFE0F?\u20E3")


def _tweet(text: str) -> int:
    text = unicodedata.normalize("NFC", text)
    total, last = 0, 0
    for match in _URL.finditer(text):
        total += _tweet_plain(text[last : match.start()]) + 23
        last = match.end()
    return total + _tweet_plain(text[last:])


def _tweet_plain(text: str) -> int:
    return sum(_tweet_cluster(cluster) for cluster in regex.findall(r"\X", text))


def _tweet_cluster(cluster: str) -> int:
    if len(cluster) > 1 and _EMOJI.match(cluster):
        return 2
    return sum(1 if any(a <= ord(c) <= b for a, b in _LIGHT) else 2 for c in cluster)


def _tokens(text: str) -> int:
    raise ValueError("a bare text has no length in tokens; name the tokenizer: measure(text, 'tokens', tokenizer=...)")


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
        Unit("tweet", "unit:tweet|norm:nfc|url:23|rule:twitter-text-3|v1", _tweet, ("tweets",)),
    )
}
_BY_ALIAS = {alias: unit for unit in UNITS.values() for alias in (unit.name, *unit.aliases)}


def unit_named(name: str) -> Unit:
    """The unit called `name` (singular and long forms are understood), or an error that lists the units there are."""
    try:
        return _BY_ALIAS[name.strip().lower()]
    except KeyError:
        raise ValueError(f"unknown unit {name!r}; the units are {', '.join(UNITS)}") from None


def measure(text: str, unit: str = "chars", *, tokenizer: Any = None) -> int:
    """How long is `text`? Leading and trailing white space is not counted.

    >>> measure("Où est-il ?", "chars"), measure("Où est-il ?", "words"), measure("Où est-il ?", "bytes")
    (11, 3, 12)
    """
    found = unit_named(unit)
    if found.name == "tokens" and tokenizer is not None:
        return len(tokenizer(text.strip(), add_special_tokens=False)["input_ids"])
    return found.measure(text)


def signatures() -> Iterator[str]:
    """The signature of every unit: two lengths may be compared when their signatures are equal."""
    return (unit.signature for unit in UNITS.values())
