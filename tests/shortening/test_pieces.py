"""Pieces: words and marks of a sentence, and the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.shortening.pieces import capitalised, join_pieces, split_pieces, split_sentences

SENTENCES = [
    "The file {name} could not be saved (error %d).",
    'He said "no", and left at 11:00 for $5.',
    "Visit https://example.com/a,b, or write to me@example.com!",
    "About 1,000.5 U.S. soldiers -- the old ones -- don't care.",
    "Catmandu::RIS, AC/DC and C++ cost 5% more…",
    "<b>Open</b> the file\\nnow",
]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_pieces_join_to_the_sentence(sentence):
    assert join_pieces(split_pieces(sentence)) == sentence


@given(st.text(alphabet="ab I,.()\"'’-{}%1é", max_size=40).map(lambda text: " ".join(text.split())))
def test_no_character_is_lost(text):
    assert join_pieces(split_pieces(text)).replace("an", "a") == text.replace("an", "a")


@pytest.mark.parametrize(
    ("words", "joined"),
    [("an tool", "a tool"), ("a old tool", "an old tool"), ("a FTP site", "an FTP site"), ("a unit", "a unit")],
)
def test_articles_agree(words, joined):
    assert join_pieces(split_pieces(words)) == joined


def test_sentences():
    assert split_sentences("It works.\nDr. Who agrees! And more") == ["It works.", "Dr. Who agrees!", "And more"]


@pytest.mark.parametrize(("word", "capital"), [("files", "Files"), ("iPhone", "iPhone"), ("{name}", "{name}")])
def test_capitals(word, capital):
    [piece] = split_pieces(word)
    assert capitalised(piece).text == capital
