"""Seconds of speech: a rate for each language, and budgets in seconds as budgets in characters."""

import pytest

from lengthwise import Budget
from lengthwise.length.speech import CHARS_PER_SECOND, chars_per_second, spoken_seconds, with_language


@pytest.mark.parametrize(
    ("asked", "means"),
    [
        ("at most 3.5 seconds of it", "at most 59 chars"),
        ("at most 2 s of en", "at most 30 chars"),
        ("at least 1.9 sec of en", "at least 29 chars"),  # limits round inwards
        ("1.5-2.5 seconds of pt-BR", "26-42 chars"),
        ("~2 seconds of ja", "~14 chars"),
        ("at most 4 seconds of it, ideally 3", "at most 68 chars, ideally 51"),
    ],
)
def test_budgets(asked, means):
    assert str(Budget.parse(asked)) == means


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("at most 3 seconds", "write for example 'at most 3.5 seconds of it'"),
        ("at most 3 seconds of klingon", "no rate of speech is known for the language 'klingon'"),
        ("3 seconds of it", "a bare number"),
        ("at most 1.1x seconds of it", "relative to the source"),
        ("at most 0 seconds of it", "above 0 seconds"),
    ],
)
def test_errors(asked, says):
    with pytest.raises(ValueError, match=says):
        Budget.parse(asked)


def test_a_text_within_a_budget_is_said_in_time():
    for language in CHARS_PER_SECOND:
        budget = Budget.parse(f"at most 3.5 seconds of {language}")
        assert spoken_seconds("x" * budget.high, language) <= 3.5 < spoken_seconds("x" * (budget.high + 1), language)


def test_languages():
    assert chars_per_second("pt_BR") == chars_per_second("PT")
    assert with_language("at most 3.5 seconds", "it") == "at most 3.5 seconds of it"
    assert with_language("at most 3 s of fr", "it") == "at most 3 s of fr"
    assert with_language("at most 42 chars", "it") == "at most 42 chars"
    assert with_language("", "it") == ""
