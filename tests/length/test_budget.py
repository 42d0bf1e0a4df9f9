"""Budgets: what people write, what it means, and that every budget can be written down and read back."""

import math
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lengthwise.length.budget import (
    Budget,
    about,
    as_budget,
    at_least,
    at_most,
    between,
    exactly,
    ratio,
    with_budgets,
)
from lengthwise.length.units import UNITS

READ = {  # text: (low, high, target, unit, of_source)
    "at most 75 chars": (0, 75, 75, "chars", False),
    "<=75 chars": (0, 75, 75, "chars", False),
    "≤ 75 chars": (0, 75, 75, "chars", False),
    "up to 75 characters": (0, 75, 75, "chars", False),
    "no more than 75 chars": (0, 75, 75, "chars", False),
    "max 75 chars": (0, 75, 75, "chars", False),
    "  AT  Most\t75Chars ": (0, 75, 75, "chars", False),
    "at most 1,000 chars": (0, 1000, 1000, "chars", False),
    "at most 12,345,678 bytes": (0, 12345678, 12345678, "bytes", False),
    "at most 280 tweet": (0, 280, 280, "tweet", False),
    "at most 60 chars-nospace": (0, 60, 60, "chars-nospace", False),
    "at most 75.0 chars": (0, 75, 75, "chars", False),
    "exactly 50 words": (50, 50, 50, "words", False),
    "=50 words": (50, 50, 50, "words", False),
    "exactly 1 word": (1, 1, 1, "words", False),
    "40-60 words": (40, 60, 50, "words", False),
    "40–60 words": (40, 60, 50, "words", False),
    "40 to 61 words": (40, 61, 50, "words", False),
    "between 40 and 60 words": (40, 60, 50, "words", False),
    "from 1,000 to 2,000 words": (1000, 2000, 1500, "words", False),
    "50-50 words": (50, 50, 50, "words", False),
    "~100 tokens": (90, 110, 100, "tokens", False),
    "about 100 tokens": (90, 110, 100, "tokens", False),
    "about 5 words": (4, 6, 5, "words", False),
    "about 1 word": (1, 2, 1, "words", False),
    "~19 cells": (18, 20, 19, "cells", False),
    "at least 20 words": (20, None, 20, "words", False),
    ">=20 words": (20, None, 20, "words", False),
    "1.0x": (0.9, 1.1, 1.0, "chars", True),
    "1x": (0.9, 1.1, 1.0, "chars", True),
    "~1.0 × words": (0.9, 1.1, 1.0, "words", True),
    "1.2x words": (1.08, 1.32, 1.2, "words", True),
    "0.9-1.1x": (0.9, 1.1, 1.0, "chars", True),
    "0.9x-1.2x words": (0.9, 1.2, 1.05, "words", True),
    "between 0.9x and 1.2x": (0.9, 1.2, 1.05, "chars", True),
    "at most 1.1x": (0, 1.1, 1.1, "chars", True),
    "at least 0.5x words": (0.5, None, 0.5, "words", True),
    "exactly 1.0x": (1.0, 1.0, 1.0, "chars", True),
    "40-60 words, ideally 45": (40, 60, 45, "words", False),
    "at most 60 words, ideally 30": (0, 60, 30, "words", False),
    "0.9-1.2x, ideally 1x": (0.9, 1.2, 1.0, "chars", True),
}


@pytest.mark.parametrize("text", READ)
def test_parse(text):
    assert Budget.parse(text) == Budget(*READ[text])


REFUSED = {  # text: what the error must say beside the text itself
    "": "write for example 'at most 75 chars'",
    "short": "write for example",
    "no shorter than 30 words": "write for example",  # and not "no more than"
    "at most chars": "write for example",
    "between 40 words": "write for example",
    "at most 40-60 words": "write for example",
    "0.9x-1.1 words": "write for example",
    "at most 1,5 words": "write for example",
    "at most inf chars": "write for example",
    "at most nan chars": "write for example",
    "40-60 words, ideally 45x": "write for example",
    "75 chars": "'at most 75 chars', 'exactly 75 chars', '~75 chars'",
    "at most 75": "the unit is missing; write for example 'at most 75 chars'; the units are tokens, chars",
    "40-60": "the unit is missing",
    "at most 75 parsecs": "unknown unit 'parsecs'; the units are tokens, chars",
    "at most 5 xylophones": "unknown unit 'xylophones'",
    "at most 5 charz": "unknown unit 'charz'; did you mean 'chars'?",
    "5 charz": "unknown unit 'charz'; did you mean 'chars'?",
    "at mos 5 words": "did you mean 'at most 5 words'?",
    "At Leats 1,000 wrds": "did you mean 'at least 1,000 words'?",
    "betwen 40 and 60 words": "did you mean 'between 40 and 60 words'?",
    "exatly 1.1x": "did you mean 'exactly 1.1x'?",
    "at mos 5 parsecs": "write for example",
    "less than 30 words": "write for example",  # not "no less than", which is near in letters only
    "0 chars": "a length must be a whole number of chars, at least 1; got 0",
    "at most 60 words, ideally 0": "a length must be a whole number of words, at least 1; got 0",
    "at most 0 chars": "at least 1",
    "0-60 words": "at least 1",
    "0x": "ratio above 0",
    "at most -5 chars": "at least 1; got -5",
    "-5 chars": "at least 1; got -5",
    "at most -1.5x": "ratio above 0 (times the source's chars); got -1.5",
    "60-40 words": "low 60 and high 40",
    "1.1-0.9x": "low 1.1 and high 0.9",
    "at most 7.5 words": "a whole number of words, at least 1; got 7.5",
    "40-60 words, ideally 70": "within the limits, 40 to 60 (words); got 70",
    "at most " + "9" * 400 + ".0x": "ratio above 0",
}


@pytest.mark.parametrize("text", REFUSED)
def test_parse_refuses(text):
    with pytest.raises(ValueError, match="cannot read") as error:
        Budget.parse(text)
    assert repr(text) in str(error.value)
    assert REFUSED[text] in str(error.value)


@pytest.mark.parametrize("bad", [0, -1, 7.5, math.nan, math.inf, -math.inf, "75", None, True, 0.0])
@pytest.mark.parametrize("make", [exactly, at_most, at_least, about, lambda n, unit: between(n, 60, unit)])
def test_constructors_refuse(make, bad):
    with pytest.raises(ValueError, match="at least 1"):
        make(bad, "words")


@pytest.mark.parametrize("bad", [0, -0.5, math.nan, math.inf, 10**400, 1.7e308, "1.0", True])
def test_ratio_refuses(bad):
    with pytest.raises(ValueError, match="ratio above 0"):
        ratio(bad)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "needs a limit"),
        ({"low": 5, "high": 4}, "low 5 and high 4"),
        ({"low": -5, "high": 4}, "at least 1; got -5"),
        ({"high": 0}, "at least 1; got 0"),
        ({"high": 5, "target": 6}, "got 6"),
        ({"low": 5, "target": 4}, "5 to any length"),
        ({"high": 5, "target": 0}, "at least 1; got 0"),
        ({"high": 5, "unit": "miles"}, "unknown unit 'miles'"),
        ({"high": math.inf, "of_source": True}, "ratio above 0"),
    ],
)
def test_the_dataclass_refuses(fields, says):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        Budget(**fields)
    assert says in str(error.value)


def test_a_budget_is_a_value():
    budget = at_most(75.0, "Characters")
    assert budget == Budget.parse("≤75 chars")
    assert hash(budget) == hash(at_most(75, "chars"))
    assert (type(budget.high), budget.unit) == (int, "chars")
    with pytest.raises(FrozenInstanceError):
        budget.high = 80


def test_as_budget():
    budget = at_most(75, "chars")
    assert as_budget(budget) is budget
    assert as_budget("at most 75 chars") == budget
    with pytest.raises(TypeError, match="got 75; write for example"):
        as_budget(75)


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (at_most(1000, "chars"), "at most 1000 chars"),
        (at_least(20, "words"), "at least 20 words"),
        (exactly(50, "words"), "exactly 50 words"),
        (between(40, 60, "words"), "40-60 words"),
        (between(90, 110, "words"), "~100 words"),  # the same values as about(100)
        (about(100, "tokens"), "~100 tokens"),
        (ratio(1), "1.0x chars"),
        (ratio(0.9, 1.2, "words"), "0.9-1.2x words"),
        (ratio(0.00001), "0.00001x chars"),
        (at_most(1.1, "words", of_source=True), "at most 1.1x words"),
        (Budget(40, 60, 45, "words"), "40-60 words, ideally 45"),
        (Budget(0, 60, 30, "words"), "at most 60 words, ideally 30"),
    ],
)
def test_str(budget, text):
    assert str(budget) == text


@pytest.mark.parametrize(
    ("text", "length", "fits", "miss", "distance"),
    [
        ("at most 75 chars", 0, True, 0, 75),
        ("at most 75 chars", 75, True, 0, 0),
        ("at most 75 chars", 80, False, 5, 5),
        ("at least 20 words", 17, False, 3, 3),
        ("at least 20 words", 999, True, 0, 979),
        ("40-60 words", 39, False, 1, 11),
        ("40-60 words", 60, True, 0, 10),
        ("~100 words", 110, True, 0, 10),
        ("~100 words", 111, False, 1, 11),
        ("exactly 50 words", 49, False, 1, 1),
    ],
)
def test_fits_miss_distance(text, length, fits, miss, distance):
    budget = Budget.parse(text)
    assert (budget.fits(length), budget.miss(length), budget.distance(length)) == (fits, miss, distance)


@pytest.mark.parametrize("ask", [Budget.fits, Budget.miss, Budget.distance])
def test_a_ratio_must_be_resolved_first(ask):
    with pytest.raises(ValueError, match=r"'1.0x chars' is relative to a source; resolve it with a source first"):
        ask(ratio(1.0), 75)


@pytest.mark.parametrize(
    ("text", "source_length", "expected"),
    [
        ("1.0x", 100, (90, 110, 100)),
        ("1.0x", 15, (14, 16, 15)),  # 13.5 to 16.5
        ("0.7-1.1x", 10, (7, 11, 9)),  # in floats 0.7 × 10 is more than 7
        ("at most 1.1x", 75, (0, 82, 82)),  # 82.5: the aim stays within the limit
        ("at least 1.1x", 75, (83, None, 83)),
        ("exactly 0.5x", 5, (3, 3, 3)),  # 2.5: nothing in between, so the nearest
        ("1.0x", 1, (1, 2, 1)),  # a tenth, and one at least, as in "about 1"
        ("1.0x", 5, (4, 6, 5)),
        ("0.9-1.1x", 9, (8, 10, 9)),  # the same budget
        ("1.0x", 10, (9, 11, 10)),
        ("1.2x", 8, (9, 11, 10)),  # 9.6, from 8.64 to 10.56
        ("0.8-1.2x", 3, (3, 3, 3)),  # limits that were named are kept
        ("at most 0.1x", 3, (0, 1, 1)),
        ("exactly 0.1x", 3, (1, 1, 1)),
        ("0.9-1.2x, ideally 1.0x", 20, (18, 24, 20)),
    ],
)
def test_resolve(text, source_length, expected):
    resolved = Budget.parse(text).resolve(" " + "a" * source_length)
    assert resolved == Budget(*expected, "chars")


def test_resolve_counts_in_the_budgets_unit():
    assert ratio(1.0, unit="words").resolve("How are you today, my old friend? All is well.") == about(10, "words")
    assert ratio(1.0, unit="tokens").resolve("x", lambda text, **_: {"input_ids": [0] * 20}) == about(20, "tokens")
    with pytest.raises(ValueError, match="lengths in tokens need a tokenizer"):
        ratio(1.0, unit="tokens").resolve("x")


def test_resolve_leaves_counts_alone_and_needs_a_source_for_ratios():
    budget = at_most(75, "chars")
    assert budget.resolve("") is budget
    with pytest.raises(ValueError, match=r"'1.0x words' is relative to the source, but the source is empty: ' '"):
        ratio(1.0, unit="words").resolve(" ")


units = st.sampled_from(sorted(UNITS))
counts = st.integers(1, 300) | st.integers(1, 10**30)
ratios = st.sampled_from([0.1, 0.7, 0.9, 1.0, 1.1, 1.2]) | st.floats(min_value=0, max_value=1e300, exclude_min=True)


@st.composite
def budgets(draw, relative=None):
    relative = draw(st.booleans()) if relative is None else relative
    one, two, three = sorted(draw(ratios if relative else counts) for _ in range(3))
    low, high = draw(st.sampled_from([(one, three), (0, three), (one, None), (one, one)]))
    if draw(st.booleans()):
        aim = one if low == high else two
        return Budget(low, high, aim, draw(units), relative)
    make = draw(st.sampled_from([exactly, at_most, at_least, about, between]))
    numbers = (one, three) if make is between else (two,)
    return make(*numbers, draw(units), of_source=relative)


@given(budgets())
def test_every_budget_can_be_written_down_and_read_back(budget):
    assert Budget.parse(str(budget)) == budget
    assert Budget.parse(str(budget).upper().replace(" ", "  ")) == budget


@given(budgets(relative=False), st.integers(0, 400))
def test_fitting_is_lying_between_the_limits(budget, length):
    assert budget.fits(length) == (budget.low <= length and (budget.high is None or length <= budget.high))
    assert budget.fits(budget.target)
    assert budget.distance(budget.target) == 0
    assert budget.miss(length) <= budget.distance(length)


@given(budgets(relative=True), st.integers(1, 500))
def test_what_is_resolved_is_possible(budget, length):
    assume(budget.unit != "tokens")
    resolved = budget.resolve("a" * length if budget.unit != "words" else "a " * length)
    assert not resolved.of_source
    assert resolved.fits(resolved.target)
    assert resolved.target >= 1
    assert {type(resolved.low), type(resolved.target)} == {int}
    assert Budget.parse(str(resolved)) == resolved


@given(st.text().filter(lambda text: "x" not in text.lower() and "×" not in text))  # no chance of a "7x"
def test_any_other_text_is_refused(text):
    with pytest.raises(ValueError, match="cannot read") as error:
        Budget.parse(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize("text", ["free", "None", " any length "])
def test_no_limit_is_no_budget(text):
    with pytest.raises(ValueError, match="give it no length"):
        Budget.parse(text)


def test_one_budget_for_all_texts_or_one_for_each():
    assert with_budgets("a", "at most 9 chars") == (["a"], ["at most 9 chars"])
    assert with_budgets(["a", "b"], ("1.0x", "2.0x")) == (["a", "b"], ["1.0x", "2.0x"])
    assert with_budgets(["a", "b"], None, optional=True) == (["a", "b"], [None, None])
    assert with_budgets(["a", "b"], [None, "1.0x"], optional=True) == (["a", "b"], [None, "1.0x"])


@pytest.mark.parametrize(
    ("budgets", "optional", "says"),
    [
        (40, True, "got 40"),
        (40, False, "got 40"),
        (None, False, "got None"),
        ({"a": "1.0x"}, True, "got {'a': '1.0x'}"),
        (b"1.0x", True, "got b'1.0x'"),
    ],
)
def test_what_is_no_budget(budgets, optional, says):
    with pytest.raises(TypeError, match=f"a budget is a text such as 'at most 75 chars', or a Budget; {says}"):
        with_budgets(["a"], budgets, optional=optional)


@pytest.mark.parametrize("texts", [None, 5, b"one", {"one": 1}])
def test_texts_that_are_none(texts):
    with pytest.raises(TypeError, match="give one text as a str, or several as a list of them; got "):
        with_budgets(texts, "at most 5 words")


def test_a_budget_is_read_from_a_string():
    with pytest.raises(TypeError, match="a budget is read from a str; got None; write for example 'at most 75 chars'"):
        Budget.parse(None)
