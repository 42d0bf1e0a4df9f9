"""Variants of a sentence: shorter, well formed by the rules, the same for a seed."""

import pytest

from lengthwise.shortening.pieces import split_pieces
from lengthwise.shortening.variants import _parts, variants

LONG = "On Monday, scientists at the old centre (in the north) said that the storm which is near the coast may grow."


def test_variants_are_shorter_and_keep_the_full_stop():
    found = variants(LONG, seed=1, each=4)
    assert "On Monday, scientists said the storm near the coast may grow." in found
    assert len(found) == len(set(found)) > 8
    assert all(len(text) <= 0.9 * len(LONG) and text.endswith(".") and text[0].isupper() for text in found)


def test_the_seed_draws_them():
    assert variants(LONG, seed=1) == variants(LONG, seed=1) != variants(LONG, seed=2)


@pytest.mark.parametrize("text", ["", "Save", "..."])
def test_nothing_to_leave_out(text):
    assert variants(text, seed=1) == []


@pytest.mark.parametrize(
    ("text", "part", "allowed"),
    [
        ("It changes text and mathematics fonts.", "mathematics", False),  # fonts of text, too
        ("It keeps snapping and dumping the crossers.", "and dumping", False),  # it does not snap the crossers
        ("We test it on a range of English and Chinese texts.", "on a range of English", False),
        ("They married in Texas and came to Buffalo.", "in Texas", True),
        ("Open the file that is locked.", "that is", True),
        ("Open the file that is not locked.", "that is", False),
    ],
)
def test_parts_that_may_be_left_out(text, part, allowed):
    pieces = split_pieces(text)
    parts = {" ".join(piece.text for piece in pieces[one.start : one.end]) for one in _parts(pieces) if not one.instead}
    assert (part in parts) == allowed
