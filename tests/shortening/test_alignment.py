"""Alignment: what each word of a short text stands for in its source."""

import pytest

from lengthwise.shortening.alignment import aligned
from lengthwise.shortening.pieces import split_pieces

SAVE = "Save the files in order to use the application."


@pytest.mark.parametrize(
    ("source", "text", "spans"),
    [
        (SAVE, "Save files to use the app.", [(0, 1), (2, 3), (5, 6), (6, 7), (7, 8), (8, 9), (9, 10)]),
        (SAVE, "Keep the file", [None, (1, 2), (2, 3)]),  # a new word, an inflected one
        ("The date or the new date.", "New date.", [(4, 5), (5, 6), (6, 7)]),  # neighbours
        ("The name is not valid.", "Name is invalid", [(1, 2), (2, 3), (3, 5)]),
        ("Open the file.", "Delete it", [None, None]),
    ],
)
def test_words_stand_for_those_of_the_source(source, text, spans):
    assert aligned(split_pieces(source), split_pieces(text)) == spans
