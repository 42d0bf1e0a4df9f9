"""Length errors against a budget, counted by hand."""

import pytest

from lengthwise.length.budget import at_most, between, exactly
from lengthwise.length.units import UNITS, measure
from lengthwise.metrics import Texts, as_table, score, score_bins
from lengthwise.metrics.length_error import bins
from metric_texts import GOLDEN, value


def test_variance():
    case = GOLDEN["takase_variance"]
    hyps = ["x" * n for n in case["in"]["lengths"]]
    assert value("variance", hyps, budgets=exactly(case["in"]["len"], "chars")) == case["out"]


FIVE = ["x" * n for n in (8, 10, 11, 12, 20)]


ABOUT_TEN = {  # against 8 to 12 chars, ideally 10
    "variance": (4 + 0 + 1 + 4 + 100) / 5,
    "mae": (2 + 0 + 1 + 2 + 10) / 5,
    "relative-error": 0.3,
    "exact": 0.2,
    "within:1": 0.4,
    "within:2": 0.8,
    "overrun": 0.2,
    "violation": 0.2,
}


@pytest.mark.parametrize("name", ABOUT_TEN)
def test_against_a_budget(name):
    (found,) = score(FIVE, budgets=between(8, 12, "chars"), metrics=[name])
    assert found.value == pytest.approx(ABOUT_TEN[name])
    assert UNITS["chars"].signature in found.signature
    assert found.name == name


def test_overrun_and_violation_read_the_limits():
    for budget, overrun, violation in (
        ("at most 10 chars", 0.6, 0.6),
        ("at least 11 chars", 0.0, 0.4),
        ("exactly 10 chars", 0.6, 0.8),
    ):
        assert value("overrun", FIVE, budgets=budget) == overrun
        assert value("violation", FIVE, budgets=budget) == violation


def test_budgets_one_each_in_their_own_unit_and_relative_ones():
    budgets = ["at most 2 words", "exactly 3 words", at_most(1, "words")]
    (found,) = score(["a b", "a b c d", "a"], budgets=budgets, metrics=["mae"], unit="bytes")
    assert found.per_item == [0, 1, 0]
    assert UNITS["words"].signature in found.signature
    assert score(["abcd"], srcs=["abcdefgh"], budgets="1.0x", metrics=["mae"])[0].per_item == [4]


def test_lengths_the_writer_counted_are_the_truth(byte_bpe):
    (found,) = score(["abc", "d"], budgets="exactly 4 tokens", lengths=[4, 6], metrics=["mae"])
    assert (found.per_item, "lengths:given" in found.signature) == ([0, 2], True)
    (found,) = score(["abc"], budgets="exactly 9 tokens", tokenizer=byte_bpe, metrics=["mae"])
    assert found.per_item == [9 - measure("abc", "tokens", tokenizer=byte_bpe)]
    assert "tok:" in found.signature
    with pytest.raises(ValueError, match="tokenizer"):
        score(["abc"], budgets="exactly 9 tokens")


def test_bins():
    assert bins([40, 100, 101, 350]) == {"1-100": [0, 1], "101-200": [2], "301-400": [3]}
    assert bins([5, 10, 11, 60], edges=[10, 50]) == {"1-10": [0, 1], "11-50": [2], "51-": [3]}
    for wrong in ({"width": 0}, {"edges": [5, 5]}, {"edges": [0, 5]}):
        with pytest.raises(ValueError, match=r"at least 1|rise"):
            bins([1], **wrong)


def test_scores_by_bins_of_the_target():
    texts = Texts(["x" * n for n in (9, 12, 30, 27)], budgets=[f"exactly {n} chars" for n in (10, 10, 30, 30)])
    table = score_bins(texts, width=20, metrics=["mae", "exact"])
    assert {name: [s.value for s in scores] for name, scores in table.items()} == {
        "1-20 chars": [1.5, 0.0],
        "21-40 chars": [1.5, 0.5],
    }
    assert "| 21-40 chars | 2 | 1.500 [0.000, 3.000] |" in as_table(table)
    with pytest.raises(ValueError, match="need budgets"):
        score_bins(Texts(["x"]))
