"""Bins of a report."""

import pytest

from lengthwise.evaluation.report import bin_edges
from lengthwise.metrics import Texts


@pytest.mark.parametrize(
    ("targets", "edges"),
    [
        ([1], [1]),
        ([5, 6, 9, 9], [6, 10]),
        ([40, 45, 120, 130, 190, 200], [50, 150, 200]),
        ([7, 80, 90, 95, 400], [400]),
        ([60, 70, 75, 75, 20, 30], [30, 70, 80]),
    ],
)
def test_bins_are_few_and_round_and_none_is_of_one_text(targets, edges):
    texts = Texts(["x"] * len(targets), budgets=[f"at most {n} chars" for n in targets])
    assert bin_edges(texts) == edges
