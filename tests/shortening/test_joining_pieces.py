"""Joining: what may stand beside a short form of several words."""

from dataclasses import replace

import pytest

from lengthwise.shortening.joining import form_of, may_end
from lengthwise.shortening.pieces import split_pieces


@pytest.mark.parametrize(("after", "follows"), [("5", True), ("{n}", True), ("mm", False), (".", False)])
def test_a_limit_stands_before_its_number(after, follows):
    source = split_pieces("The length is smaller than or equal to 5 {n} mm.")
    limit = replace(source[3], text="at most")
    place = next(n for n, piece in enumerate(source) if piece.text == after)
    form = form_of(source[place], place, [*source[:3], limit], next_place=5, source=source)  # something is left out
    assert (form is not None) is follows


@pytest.mark.parametrize(
    ("sentence", "before", "after", "follows"),
    [
        ("It closes for at least eleven weeks.", "least", "weeks", False),
        ("It has at least the old 8 keys.", "least", "8", True),
        ("It stays open after more than 6 signed.", "open", "than", False),
        ("It must contain at least 8 letters and 1 digit.", "contain", "and", False),
        ("It must contain 8 letters and 1 digit.", "contain", "and", False),
        ("It must contain old letters and digits.", "letters", "and", True),
    ],
)
def test_a_comparison_keeps_its_number(sentence, before, after, follows):
    source = split_pieces(sentence)
    first, place = (next(n for n, piece in enumerate(source) if piece.text == text) for text in (before, after))
    form = form_of(source[place], place, source[: first + 1], next_place=first + 1, source=source)
    assert (form is not None) is follows


def test_no_sentence_ends_with_a_limit():
    [word] = split_pieces("most")
    assert not may_end(replace(word, text="at most"))
    assert not may_end(replace(word, text="at least"))
