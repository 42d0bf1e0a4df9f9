"""Sentences of a longer text: how many are searched and put together."""

import pytest

from lengthwise.length.budget import Budget
from lengthwise.shortening.leaving_out import Kept
from lengthwise.shortening.pieces import split_pieces, split_sentences
from lengthwise.shortening.records import Source
from lengthwise.shortening.sentences import _chosen, _combined

TEXT = " ".join(f"Sentence number {n} is here." for n in range(10, 34))  # of 27 characters each


def source(limit):
    sentences = [*map(split_pieces, split_sentences(TEXT))]
    carried = [[float(piece.is_word) for piece in one] for one in sentences]
    return Source(TEXT, Budget.parse(f"at most {limit} chars"), len, sentences, carried, carried)


@pytest.mark.parametrize(("limit", "form", "count"), [(100, "text", 5), (280, "text", 11), (280, "sentence", 5)])
def test_as_many_sentences_are_searched_as_fill_the_limit(limit, form, count):
    assert len(_chosen(source(limit), limit, form)) == count


@pytest.mark.parametrize("limit", [280, 600])
def test_a_text_fills_the_limit(limit):
    options = []
    for number, pieces in enumerate(source(limit).sentences):
        whole, short = (
            tuple(split_pieces(text)) for text in (f"Sentence number {number + 10} is here.", "It is here.")
        )
        places = tuple(range(len(pieces)))
        kept = [Kept(whole, places, -3.0, 0.0), Kept(short, places[: len(short)], -30.0, 9.0)]
        options.append((number, 5.0 + number, kept))  # the last ones carry most
    best, *_ = _combined(source(limit), limit, options, "text")
    assert limit - 27 <= len(best.text) <= limit
    assert "33" in best.text, "the first sentences leave room for better ones"
