"""Plural forms of languages, from CLDR (by Babel) and from the formula in the header of a gettext catalogue."""

import gettext
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

from ..errors import how_to_install
from .base import CATEGORIES

# A form that only large numbers have, such as `many` of Italian for 1,000,000, is not asked for: few files have it, and
# programs use `other` in its place. All other rules depend on the last two digits.
# 5 comes first, because translators write small numbers as words.
_NUMBERS = (*range(5, 20), 2, 3, 4, *range(20, 202), 0)
USUAL = {"zero": 0, "one": 1, "two": 2, "few": 3}  # examples of forms that the target does not have; of others 5
_FORMULA = re.compile(r"nplurals\s*=\s*(\d+)\s*;\s*plural\s*=([^;]*)")


def _locale(language: str) -> Any:
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError:
        raise ValueError(f"plural forms need Babel, which is not installed; {how_to_install('files')}") from None
    try:
        return Locale.parse(language.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        raise ValueError(
            f"CLDR has no plural rules for the language {language!r}; give a code such as it or pt_BR"
        ) from None


def category_of(language: str, ordinal: bool = False) -> Callable[[int], str]:
    """Return the function that gives the category of a number: 1 → one."""
    locale = _locale(language)
    return locale.ordinal_form if ordinal else locale.plural_form


@cache
def categories(language: str, ordinal: bool = False) -> dict[str, int]:
    """Return the categories that a language uses, each with a number that has it; 1 for a singular.

    >>> categories("pl")
    {'one': 1, 'few': 2, 'many': 5, 'other': 5}
    """
    rule = category_of(language, ordinal)
    found = _examples(rule)
    found.setdefault("other", 5)  # of fractions
    return {name: found[name] for name in CATEGORIES if name in found}


def _examples(rule: Callable[[int], Any]) -> dict[Any, int]:
    """Return each form with a number that has it. 1 stands for a singular: a form that 2 does not have."""
    found: dict[Any, int] = {rule(1): 1} if rule(1) != rule(2) else {}
    for number in _NUMBERS:
        found.setdefault(rule(number), number)
    return found


@cache
def exact_forms(language: str, ordinal: bool = False) -> frozenset[str]:
    """Return the categories that a single number has, such as `one` of Italian, but not of Russian (1, 21, 31 ...)."""
    rule = category_of(language, ordinal)
    numbers = Counter(map(rule, {1, *_NUMBERS}))
    return frozenset(form for form, count in numbers.items() if count == 1)


@cache
def integer_forms(language: str) -> dict[str, int]:
    """Return the categories that whole numbers have, in the order in which Qt numbers its forms."""
    rule = category_of(language)
    return {form: example for form, example in categories(language).items() if rule(example) == form}


def gettext_forms(language: str) -> str:
    """Return the value of Plural-Forms: 'nplurals=2; plural=(n != 1);'."""
    locale = _locale(language)
    from babel.messages.plurals import get_plural

    return str(get_plural(locale).plural_forms)


@cache
def numbered_forms(formula: str) -> dict[str, int]:
    """Return the forms of a value of Plural-Forms, each with a number that has it; 1 for a singular.

    >>> numbered_forms("nplurals=2; plural=(n != 1);")
    {'0': 1, '1': 5}
    """
    found = _FORMULA.search(formula)
    if found is None:
        raise ValueError(f"Plural-Forms is 'nplurals=2; plural=(n != 1);' or the like; got {formula!r}")
    try:
        examples = _examples(gettext.c2py(found[2].strip()))
    except ValueError as error:
        raise ValueError(f"Plural-Forms cannot be read: {error}; got {formula!r}") from None
    return {str(form): examples.get(form, 5) for form in range(int(found[1]))}
