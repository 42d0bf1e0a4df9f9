"""Phrases: which parts a sentence is whole without, and where a noun phrase ends."""

import pytest

from lengthwise.shortening.phrases import head_of, is_clause_with_that, is_part
from lengthwise.shortening.pieces import split_pieces


def places(marked):
    """Return the pieces of a sentence with a part in brackets, and the places before and after that part."""
    before, part, after = (split_pieces(one) for one in marked.replace(")", "(").split("("))
    return [*before, *part, *after], len(before) - 1, len(before) + len(part)


@pytest.mark.parametrize(
    ("marked", "whole"),
    [
        ("A book of (cats and) dogs", True),
        ("It saw 5 (cats and) dogs", False),
        ("It comes with (a case and) a lid", True),
        ("It comes with a (case and a) lid", True),
        ("The (fast and secure) browser", True),
        ("A strong (and unique) password", True),
        ("Open documents (and read) codes", False),
        ("Edit (and save) the file", True),
        ("Shows (or hides) the file", True),
        ("These models (and generates) a reason", False),
        ("They (played well but) lost", True),
        ("It (has been saved and) will be sent", True),
        ("It is in (the north of) Peru", True),
        ("It has a (list of) files", False),
        ("It was shown (in the hall) last week", True),
        ("It was shown (in the hall) last page", False),
        ("It lasts (up to) ten hours", True),
        ("It lasts (for) ten hours", False),
    ],
)
def test_a_sentence_is_whole_without_some_parts(marked, whole):
    assert is_part(*places(marked)) is whole


@pytest.mark.parametrize(
    ("marked", "clause"),
    [
        ("Open the cell (that contains it).", True),
        ("Find the results (that match your search).", True),
        ("I opened (that door).", False),
        ("It is a setting (that suffers) from age.", False),
    ],
)
def test_a_clause_with_that_is_no_object(marked, clause):
    source, before, after = places(marked)
    assert is_clause_with_that(source, before + 1, head_of(source, before + 1), after) is clause


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("unread mail messages in", "messages"),
        ("phone number ending in", "number"),
        ("old painting in", "painting"),  # no participle
        ("page 5", "page"),
    ],
)
def test_the_head_of_a_phrase(text, head):
    source = split_pieces(text)
    assert source[head_of(source, 0)].text == head
