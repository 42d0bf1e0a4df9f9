"""Plural forms of languages, and of the headers of gettext catalogues."""

import sys

import pytest

from lengthwise.formats.plurals import categories, exact_forms, gettext_forms, integer_forms, numbered_forms

try:
    import babel  # noqa: F401
except ImportError:
    pytest.skip("plural forms need Babel", allow_module_level=True)


@pytest.mark.parametrize(
    ("language", "forms", "of_integers"),
    [
        ("it", {"one": 1, "other": 5}, "one other"),
        ("ja", {"other": 5}, "other"),
        ("pl", {"one": 1, "few": 2, "many": 5, "other": 5}, "one few many"),
        ("ar", {"zero": 0, "one": 1, "two": 2, "few": 5, "many": 11, "other": 100}, "zero one two few many other"),
        ("pt-BR", {"one": 1, "other": 5}, "one other"),
    ],
)
def test_categories(language, forms, of_integers):
    assert categories(language) == forms
    assert list(integer_forms(language)) == of_integers.split()


def test_exact_forms():
    assert [exact_forms(language) for language in ("it", "ru", "fr")] == [{"one"}, set(), set()]


def test_an_unknown_language_is_told():
    with pytest.raises(ValueError, match="no plural rules for the language 'xx'"):
        categories("xx")


@pytest.mark.parametrize(
    ("formula", "forms"),
    [
        ("nplurals=2; plural=(n != 1);", {"0": 1, "1": 5}),
        ("nplurals = 2; plural = n > 1", {"0": 1, "1": 5}),
        ("nplurals=1; plural=0;", {"0": 5}),
        ("nplurals=2; plural=n==1 ? 1 : 0;", {"0": 5, "1": 1}),
        ("nplurals=3; plural=n==1 ? 0 : n != 0 && n % 1000000 == 0 ? 1 : 2;", {"0": 1, "1": 5, "2": 5}),
    ],
)
def test_numbered_forms(formula, forms):
    assert numbered_forms(formula) == forms


@pytest.mark.parametrize("formula", ["nplurals=INTEGER; plural=EXPRESSION;", "", "nplurals=2; plural=exit(1);"])
def test_other_formulas_are_refused(formula):
    with pytest.raises(ValueError, match="Plural-Forms"):
        numbered_forms(formula)


def test_gettext_forms():
    assert gettext_forms("it") == "nplurals=2; plural=(n != 1);"


def test_without_babel_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(ValueError, match=r"pip install '\.\[files\]'"):
        gettext_forms("sv")
