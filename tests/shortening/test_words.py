"""Words: sentences that are not whole, and words that only announce what follows."""

import pytest

from lengthwise.shortening.pieces import split_pieces
from lengthwise.shortening.words import has_subject_and_verb, lacks_main_clause, lead_in, may_be_verb


@pytest.mark.parametrize(
    ("text", "source", "lacks"),
    [
        ("If taking a photo isn't allowed.", "If taking a photo isn't allowed, don't make a video.", True),
        ("Because the disk is full.", "It stopped because the disk is full.", True),
        ("To continue.", "To continue, accept the license.", True),
        ("Using the tool.", "Using the tool, you can save it.", True),
        ("When it rains, it pours.", "When it rains, it pours, and so on.", False),
        ("When it rains it pours.", "When it rains it pours a lot.", False),
        ("The disk is full.", "If the disk is full, stop.", False),
        ("If so?", "If so, why?", False),
        ("In 1990 the bridge was closed.", "In 1990, the bridge was closed.", False),
        ("By default the option is on.", "By default, the option is on.", False),
        ("In winter it's icy.", "In winter, it's icy.", False),
        ("In winter the road is icy.", "The road is icy in winter.", False),
        ("In case the disk is full.", "In case the disk is full, stop.", True),
        ("By the time it was closed.", "By the time it was closed, all had left.", True),
        ("In the house that was sold.", "In the house that was sold, she found it.", True),
        ("On the 3rd of May 1990.", "On the 3rd of May 1990, it was closed.", True),
        ("With all his free will.", "With all his free will, he stayed.", True),
        ("When the disk is full.", "When the disk is full, stop.", True),
    ],
)
def test_a_clause_that_depends_on_another_one_is_no_sentence(text, source, lacks):
    assert lacks_main_clause(split_pieces(text), split_pieces(source)) is lacks


def test_a_sentence_with_a_subject_needs_a_verb():
    source = split_pieces("Peter Costello, the man to succeed Howard, has thrown his support behind it.")
    assert has_subject_and_verb(source)
    assert not any(map(may_be_verb, split_pieces("Peter Costello, the man to succeed Howard.")))
    assert any(map(may_be_verb, split_pieces("Peter Costello has thrown his support.")))
    assert not has_subject_and_verb(split_pieces("Enter the name that can be used."))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("Opens a dialog to select it.", 4),
        ("Use this option to save.", 4),
        ("Here you can select it.", 3),
        ("Opens a file.", 0),
        ("You can lose data if the power fails.", 0),
        ("This is a warning about the old battery.", 0),
        ("Used to be open.", 0),
    ],
)
def test_lead_ins(text, size):
    assert lead_in(split_pieces(text)) == size
