"""Budgets: `Budget`, the minimum, maximum and target length of a text in a unit.

A budget is a value that reads as English: `at_most(75, "chars")`, or the same as a string, "at most 75 chars".
"""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal, overload

from ..protocols import Tokenizer
from .speech import seconds_rate
from .units import UNITS, measure, unit_named


@dataclass(frozen=True)
class Budget:
    """How long a text may be: at least `low`, at most `high` (None: no limit), ideally `target`, counted in `unit`.

    The default `target` is the maximum if there is no minimum, the minimum if there is no maximum, else the middle.
    With `of_source` the three numbers are multiples of the source's length; `resolve` turns them into counts.

    >>> Budget.parse("40-60 words").fits(45), str(at_most(75, "chars")), str(ratio(1.0).resolve("How are you?"))
    (True, 'at most 75 chars', '~12 chars')
    """

    low: int | float = 0
    high: int | float | None = None
    target: int | float = None  # type: ignore[assignment]  # never None after __post_init__
    unit: str = "chars"
    of_source: bool = False

    def __post_init__(self) -> None:
        set_ = object.__setattr__  # the dataclass is frozen
        set_(self, "unit", unit_named(self.unit).name)
        number = _ratio if self.of_source else _count
        set_(self, "low", number("low", self.low, self.unit) if self.low != 0 else 0)
        if self.high is not None:
            set_(self, "high", number("high", self.high, self.unit))
        elif self.low == 0:
            raise ValueError("a budget needs a limit; got neither low nor high")
        if self.high is not None and self.low > self.high:
            turned = f"{self._show(self.high).rstrip('x')}-{self._show(self.low)} {self.unit}"
            got = f"low {self.low} and high {self.high} ({self.unit})"
            raise ValueError(f"low must not exceed high; got {got}; did you mean '{turned}'?")
        aim = _middle(self.low, self.high, self.of_source) if self.target is None else self.target
        set_(self, "target", number("target", aim, self.unit))
        if self.target < self.low or (self.high is not None and self.target > self.high):
            limits = f"{self.low} to {'any length' if self.high is None else self.high}"
            raise ValueError(f"target must lie within the limits, {limits} ({self.unit}); got {self.target}")

    @classmethod
    def parse(cls, text: str) -> "Budget":
        """Return the budget that `text` describes: 'at most 75 chars', '40–60 words', '~100 tokens', '1.0x', ..."""
        if not isinstance(text, str):
            raise TypeError(f"a budget is read from a str; got {text!r}; {_FORMS}")
        found = _PHRASE.fullmatch(" ".join(text.split()).lower())
        if found is None or found["word"] not in (_WORDS if found["high"] is None else _WINDOW_WORDS):
            if text.strip().lower() in _NO_LIMIT:
                advice = "it sets no limit; only a translation can do without one: give it no length"
                raise ValueError(f"cannot read {text!r} as a budget; {advice}")
            meant = _meant(text)
            raise ValueError(f"cannot read {text!r} as a budget; " + (f"did you mean {meant!r}?" if meant else _FORMS))
        try:
            return _from_phrase(**found.groupdict())
        except ValueError as error:
            raise ValueError(f"cannot read {text!r} as a budget: {error}") from None

    def resolve(self, source: str, tokenizer: Tokenizer | None = None) -> "Budget":
        """Return the same budget in counts, for this `source`; a budget in counts is returned unchanged.

        Limits round inwards, the target to the nearest. If no whole number above 0 lies between the limits, only the
        nearest length fits. "About" allows at least ± 1: `1.0x` of five characters is four to six.
        """
        if not self.of_source:
            return self
        length = measure(source, self.unit, tokenizer=tokenizer)
        if length == 0:
            raise ValueError(f"{str(self)!r} is relative to the source, but the source is empty: {source!r}")
        return self.scaled(length)

    def scaled(self, length: int) -> "Budget":
        """Return a budget relative to the source in counts, for a source of this length."""
        aim = max(1, math.floor(_decimal(self.target) * length + Decimal("0.5")))
        low = math.ceil(_decimal(self.low) * length)
        if self.high is None:
            return Budget(low, None, max(low, aim), self.unit)
        high = max(1, math.floor(_decimal(self.high) * length))
        if (self.low, self.high) == _around(self.target, of_source=True):
            low, high = max(1, min(low, aim - 1)), max(high, aim + 1)
        if low > high:
            low = high = aim
        return Budget(low, high, min(max(low, aim), high), self.unit)

    def widened(self, least: int) -> "Budget":
        """Return a budget in counts whose maximum is not below `least`: where it is, at most `least`."""
        self._need_counts()
        return self if self.high is None or self.high >= least else Budget(high=least, unit=self.unit)

    def fits(self, length: int) -> bool:
        """Return whether a text of this length is within the limits."""
        return self.miss(length) == 0

    @property
    def is_limit(self) -> bool:
        """Whether the budget is only a maximum, which a text need not reach."""
        return self.low == 0 and self.target == self.high

    def miss(self, length: int) -> int:
        """Return how far `length` lies outside the limits; 0 inside."""
        self._need_counts()
        return int(max(self.low - length, 0 if self.high is None else length - self.high, 0))

    def distance(self, length: int) -> int:
        """Return how far `length` is from the target. Of several texts that fit, the nearest is the best."""
        self._need_counts()
        return int(abs(length - self.target))

    def _need_counts(self) -> None:
        if self.of_source:
            raise ValueError(f"{str(self)!r} is relative to a source; resolve it with a source first")

    def __str__(self) -> str:
        """Return the short form, which `parse` reads back as the same budget."""
        aim, usual = self._show(self.target), _middle(self.low, self.high, self.of_source)
        if self.low == self.high:
            return f"exactly {aim} {self.unit}"
        if (self.low, self.high) == _around(self.target, self.of_source):
            return f"{aim} {self.unit}" if self.of_source else f"~{aim} {self.unit}"
        ideally = "" if self.target == usual else f", ideally {aim}"
        if self.high is None:
            return f"at least {self._show(self.low)} {self.unit}{ideally}"
        if self.low == 0:
            return f"at most {self._show(self.high)} {self.unit}{ideally}"
        return f"{self._show(self.low).rstrip('x')}-{self._show(self.high)} {self.unit}{ideally}"

    def _show(self, number: float) -> str:
        return f"{_decimal(number):f}x" if self.of_source else str(number)


def exactly(n: float, unit: str, *, of_source: bool = False) -> Budget:
    """Return the budget of exactly this length."""
    return Budget(_given(n, "exactly"), n, n, unit, of_source)


def at_most(n: float, unit: str, *, of_source: bool = False) -> Budget:
    """Return the budget of at most this length, preferably close to it."""
    return Budget(high=_given(n, "at most"), unit=unit, of_source=of_source)


def at_least(n: float, unit: str, *, of_source: bool = False) -> Budget:
    """Return the budget of at least this length, preferably close to it."""
    return Budget(low=_given(n, "at least"), unit=unit, of_source=of_source)


def between(low: float, high: float, unit: str, *, of_source: bool = False) -> Budget:
    """Return the budget from `low` to `high`, ideally in the middle."""
    return Budget(low=_given(low, "between"), high=_given(high, "between"), unit=unit, of_source=of_source)


def about(n: float, unit: str, *, of_source: bool = False) -> Budget:
    """Return the budget of this length ± a tenth, at least ± 1: about 100 → 90 to 110, about 5 → 4 to 6."""
    n = (_ratio if of_source else _count)("about", n, unit_named(unit).name)
    return Budget(*_around(n, of_source), n, unit, of_source)


def ratio(low: float, high: float | None = None, unit: str = "chars") -> Budget:
    """Return a budget relative to the source: `ratio(1.0)` is its length ± 10 %, `ratio(0.9, 1.2)` a window."""
    return about(low, unit, of_source=True) if high is None else between(low, high, unit, of_source=True)


def as_budget(value: str | Budget) -> Budget:
    """Return the budget itself, or the one that the string describes."""
    if isinstance(value, Budget):
        return value
    if isinstance(value, str):
        return Budget.parse(value)
    raise TypeError(f"a budget is a Budget or a string; got {value!r}; {_FORMS}")


def check_text(text: Any) -> None:
    """Raise if this is not a text, or one that has half a surrogate pair."""
    if not isinstance(text, str):
        raise TypeError(f"a text is a str; got {text!r}")
    text.encode()  # raises a ValueError for half a surrogate pair


@overload
def with_budgets(
    texts: str | Sequence[str], budgets: str | Budget | Sequence[str | Budget]
) -> tuple[list[str], list[str | Budget]]: ...
@overload
def with_budgets(
    texts: str | Sequence[str], budgets: str | Budget | Sequence[str | Budget | None] | None, *, optional: Literal[True]
) -> tuple[list[str], list[str | Budget | None]]: ...
def with_budgets(texts: str | Sequence[str], budgets: Any, *, optional: bool = False) -> tuple[list[str], list[Any]]:
    """Return the texts and a budget for each; a caller may give one text, and one budget for all.

    `optional`: None is the budget of a text that may have any length.
    """
    if isinstance(texts, bytes | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"give one text as a str, or several as a list of them; got {texts!r}")
    texts = [texts] if isinstance(texts, str) else list(texts)
    for_all = isinstance(budgets, str | Budget) or (optional and budgets is None)
    if not for_all and (isinstance(budgets, bytes | Mapping) or not isinstance(budgets, Iterable)):
        raise TypeError(f"a budget is a text such as 'at most 75 chars', or a Budget; got {budgets!r}")
    asked = [budgets] * len(texts) if for_all else list(budgets)
    if len(asked) != len(texts):
        raise ValueError(f"one budget for all texts or one for each; got {len(asked)} for {len(texts)} texts")
    return texts, asked


def _given(n: Any, form: str) -> Any:
    # The dataclass reads low = 0 as "no minimum" and high = None as "no maximum", which is an error in these forms.
    if n is None or n == 0:
        raise ValueError(f"{form!r} needs a length of at least 1 (or a ratio above 0); got {n!r}")
    return n


def _count(what: str, value: Any, unit: str) -> int:
    whole = isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer())
    if not whole or isinstance(value, bool) or value < 1:
        raise ValueError(f"{what} must be a whole number of {unit}, at least 1; got {value!r}")
    return int(value)


def _ratio(what: str, value: Any, unit: str) -> float:
    try:
        times = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:  # an int too large for a float
        times = math.inf
    if not 0 < times < math.inf:
        raise ValueError(f"{what} must be a ratio above 0 (times the source's {unit}); got {value!r}")
    return times


def _decimal(number: float) -> Decimal:
    # As a decimal, so that 0.7 × 10 is 7. In floats it is slightly more and would round up to 8.
    return Decimal(repr(number))


def _middle(low: float, high: float | None, of_source: bool) -> float:
    """Return the default target of a budget with these limits."""
    if high is None or low == 0:
        return low if high is None else high
    return float((_decimal(low) + _decimal(high)) / 2) if of_source else (low + high) // 2


def _around(n: float, of_source: bool) -> tuple[float, float]:
    """Return the limits of "about n"."""
    if of_source:
        return float(_decimal(n) * 9 / 10), float(_decimal(n) * 11 / 10)
    slack = max(1, n // 10)
    return max(1, n - slack), n + slack


_FORMS = (
    "write for example 'at most 75 chars', 'at least 20 words', 'exactly 50 words', '40-60 words', '~100 tokens', or, "
    "relative to the source, '1.0x', '0.9-1.1x words', 'at most 1.1x'; or 'at most 3.5 seconds of it', for speech"
)
_NO_LIMIT = frozenset({"free", "any", "any length", "none", "no limit", "unlimited"})
_WINDOW_WORDS = (None, "between", "from")
_WORDS: dict[str | None, Callable[..., Budget]] = {
    None: about,  # "1.0x"; a bare count is refused
    **dict.fromkeys(("at most", "up to", "no more than", "not more than", "maximum", "max", "<=", "≤"), at_most),
    **dict.fromkeys(("at least", "no less than", "no fewer than", "minimum", "min", ">=", "≥"), at_least),
    **dict.fromkeys(("exactly", "precisely", "==", "="), exactly),
    **dict.fromkeys(("about", "around", "roughly", "approximately", "~", "≈"), about),
}
_PHRASE_WORDS = [word for word in (*_WINDOW_WORDS, *_WORDS) if word]
_NUMBER = r"-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
_TIMES = r" ?[x×](?![^\W\d_])"  # not the first letter of a unit
_PHRASE = re.compile(
    rf"(?:(?P<word>{'|'.join(map(re.escape, _PHRASE_WORDS))}) ?)?"
    rf"(?P<low>{_NUMBER})(?:(?:{_TIMES}(?=.*[0-9]{_TIMES}))? ?(?:-|–|—|to|and) ?(?P<high>{_NUMBER}))?"
    rf"(?P<times>{_TIMES})?"
    rf"(?: ?(?P<unit>[^\W\d_][^,\d]*?))?(?: ?, ?ideally (?P<aim>{_NUMBER})(?(times)(?:{_TIMES})?))?"
)
_ANY_PHRASE = re.compile(  # with any words around the numbers
    r"(?P<word>[^\d<>=~≈≤≥-]+?) ?(?P<numbers>\d(?:.*\d)?(?: ?[x×](?![^\W\d_]))?) ?(?P<unit>(?:[^\W\d_][^,\d]*)?)"
)


def _from_phrase(
    word: str | None, low: str, high: str | None, times: str | None, unit: str | None, aim: str | None
) -> Budget:
    of_source = times is not None
    if unit is None and not of_source:
        if "." in low:
            raise ValueError(f"the unit is missing; write '{low}x' for a multiple of the source's length")
        raise ValueError(f"the unit is missing; write for example 'at most 75 chars'; the units are {', '.join(UNITS)}")
    if (rate := seconds_rate(unit or "")) is not None:
        if of_source:
            raise ValueError("a length relative to the source is not in seconds; write for example '1.0x'")
        return _spoken(word, low, high, aim, rate)
    unit = _unit(unit or "chars")
    for number in filter(None, (low, high, aim)):
        # Checked here, so that the error says "a length" and not "low" or "target".
        (_ratio if of_source else _count)("a length", _number(number), unit)
    if high is not None:
        budget = between(_number(low), _number(high), unit, of_source=of_source)
    elif word is not None or of_source:
        budget = _WORDS[word](_number(low), unit, of_source=of_source)
    else:
        choices = (f"'{form}{low} {unit}'" for form in ("at most ", "exactly ", "~"))
        raise ValueError(f"a bare number may be a limit or a target; write {', '.join(choices)}")
    return replace(budget, target=_number(aim)) if aim else budget


def _spoken(word: str | None, low: str, high: str | None, aim: str | None, rate: float) -> Budget:
    """Return a budget in seconds of speech as characters, at `rate` characters per second. Limits round inwards."""
    first, last, ideal = (
        None if text is None else _decimal(_number(text)) * _decimal(rate) for text in (low, high, aim)
    )
    if first is None or first <= 0:
        raise ValueError(f"a length must be above 0 seconds; got {low}")
    if last is not None:
        budget = between(math.ceil(first), math.floor(last), "chars")
    elif word is not None:
        form = _WORDS[word]
        rounded = math.ceil(first) if form is at_least else math.floor(first) if form is at_most else round(first)
        budget = form(max(1, rounded), "chars")
    else:
        raise ValueError(f"a bare number may be a limit or a target; write 'at most {low} seconds of …'")
    return budget if ideal is None else replace(budget, target=min(max(1, round(ideal)), budget.high or round(ideal)))


def _unit(name: str) -> str:
    try:
        return unit_named(name).name
    except ValueError as error:
        near = _near_unit(name)
        raise ValueError(f"unknown unit {name!r}; did you mean {near!r}?" if near else str(error)) from None


def _meant(text: str) -> str | None:
    """Return the budget that a misspelt one probably means, if each of its words resembles a known one."""
    found = _ANY_PHRASE.fullmatch(" ".join(text.split()).lower())
    if found is None:
        return None
    # The first letter must agree, because "less than" resembles its opposite "no less than".
    # The cutoff is high, because "no shorter than" has a similarity of 0.81 to "no more than".
    word = _near(found["word"], [word for word in _PHRASE_WORDS if word[0] == found["word"][0]], 0.86)
    unit = _near_unit(found["unit"])
    if word is None or (unit is None and found["unit"]):
        return None
    meant = f"{word} {found['numbers']} {unit or ''}".rstrip()
    try:
        return meant if meant != found[0] and Budget.parse(meant) else None
    except ValueError:
        return None


def _near_unit(name: str) -> str | None:
    word = _near(name, [word for unit in UNITS.values() for word in (unit.name, *unit.aliases)])
    return None if word is None else unit_named(word).name


def _near(word: str, known: list[str], cutoff: float = 0.7) -> str | None:
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=cutoff)), None)


def _number(text: str) -> float:
    plain = text.replace(",", "")
    return float(plain) if "." in plain else int(plain)
