"""Target lengths of an evaluation."""

import pytest

from lengthwise.evaluation.target_length import TargetLength

PAIR = ("Where is the old house?", "Dov'è la vecchia casa?")


@pytest.mark.parametrize(
    ("asked", "budget"),
    [("reference", "exactly 22 chars"), ("reference:words", "exactly 4 words"), ("1.0x", "~23 chars"),
     ("at most 9 words", "at most 9 words")],
)  # fmt: skip
def test_lengths(asked, budget):
    assert str(TargetLength.parse(asked).of(*PAIR)) == budget


def test_what_a_target_needs():
    with pytest.raises(ValueError, match="needs references; there are none"):
        TargetLength.parse("reference:words").of("a source", None)
    with pytest.raises(ValueError, match="relative to the source; there are no sources"):
        TargetLength.parse("1.0x").of(None, "a reference")
