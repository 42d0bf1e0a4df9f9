"""Tokens that go on with a word that the token before them has begun."""

import numpy as np
import pytest

from lengthwise.length.vocabulary import vocabulary_of


@pytest.mark.parametrize(
    ("text", "inside"),
    [("no de", "01001"), ("a-b", "010"), ("l'un", "0101"), ("x: y2", "00000"), ("-as", "001")],
)
def test_tokens_inside_words(byte_bpe, text, inside):
    known = vocabulary_of(byte_bpe, len(byte_bpe))
    one_byte = {piece: token for token, piece in enumerate(known.pieces) if len(piece) == 1}
    ids = [one_byte[bytes([byte])] for byte in text.encode()]
    assert known.inside_words(np.array([ids])).astype(int).tolist() == [[int(c) for c in inside]]


def test_scripts_without_spaces_have_no_words(sp_unigram):
    known = vocabulary_of(sp_unigram, len(sp_unigram))
    ids = sp_unigram("日本語", add_special_tokens=False)["input_ids"]
    assert not known.inside_words(np.array([ids])).any()
