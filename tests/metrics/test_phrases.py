"""Whole phrases, judged by hand."""

import pytest

from lengthwise.metrics import score
from lengthwise.metrics.phrases import is_whole


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Neural machine translation", True),
        ("Neural machine translation of", False),
        ("Neural machine translation of the", False),
        ("Cats and", False),
        ("Improving OF", False),
        ("What is a phrase?", True),
        ("A parser (in C++)", True),
        ("A parser (in C", False),
        ("Two-", False),
        ("BERT:", False),
        ("Command-line tools, ", False),
        ("", False),
        ("...", False),
    ],
)
def test_endings(text: str, whole: bool) -> None:
    assert is_whole(text) == whole


def test_the_metric_is_a_share() -> None:
    [found] = score(["A title", "A title of"], metrics=["whole-phrase"])
    assert found.value == 0.5
    assert found.signature.startswith("whole-phrase|en|")
