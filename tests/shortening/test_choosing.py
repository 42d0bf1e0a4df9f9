"""Choosing: rewritten sentences that lack their main clause."""

import pytest

from lengthwise.length.budget import Budget
from lengthwise.shortening.choosing import has_fragment
from lengthwise.shortening.pieces import split_pieces, split_sentences
from lengthwise.shortening.records import Candidate, Source

BRIDGE = "The bridge, built in 1911, is closed."


@pytest.mark.parametrize(
    ("second", "text", "fragment"),
    [
        ("When it rains it pours.", "The bridge is closed. When it rains it pours.", False),  # a sentence of the source
        ("When it rains it pours a lot.", "The bridge is closed. When it rains it pours.", False),
        ("When it rains, it pours.", "The bridge is closed. When it rains.", True),
        ("When it rains, it pours.", "When it rains. The bridge is closed.", True),
    ],
)
def test_a_rewritten_sentence_is_compared_with_the_one_it_came_from(second, text, fragment):
    source = f"{BRIDGE} {second}"
    sentences = [split_pieces(sentence) for sentence in split_sentences(source)]
    known = Source(source, Budget.parse("at most 55 chars"), len, sentences)
    assert has_fragment(Candidate(text, "rewritten", complete=True), known) is fragment
