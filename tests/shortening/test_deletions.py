"""Deletions: what can be left out of a sentence, and at what cost."""

import pytest

from lengthwise.shortening.deletions import NEVER, deletions, skips
from lengthwise.shortening.pieces import join_pieces, split_pieces


def left(sentence, headline=False):
    """Return the cost of each text that one deletion leaves."""
    pieces = split_pieces(sentence)
    found = {}
    for one in deletions(pieces, headline):
        middle = [one.instead] if one.instead else []
        text = join_pieces([*pieces[: one.start], *middle, *pieces[one.end :]])
        found[text] = min(one.cost, found.get(text, NEVER))
    return found


@pytest.mark.parametrize(
    ("sentence", "shorter"),
    [
        ("The tool (an old one) works.", "The tool works."),
        ("On Monday, the shop opens.", "the shop opens."),
        ("The bridge, which was built in 1911, is closed.", "The bridge is closed."),
        ("The tool works very well.", "The tool works well."),
        ("The tool works on every disk.", "The tool works."),
        ("The tool stops because the disk is full.", "The tool stops."),
        ("It runs in order to help.", "It runs to help."),
        ("It is less than or equal to 2.", "It is at most 2."),
        ("It is greater than or equal to 2.", "It is at least 2."),
        ("The file is not available.", "The file is unavailable."),
        ("The file is not available.", "The file is N/A."),
        ("The file is not available.", "The file isn't available."),
        ("It will close for at least eleven weeks.", "It will close."),
        ("It will run for more than 3 days now.", "It will run now."),
        ("Cats and dogs sleep.", "Cats sleep."),
        ("Cats and dogs sleep.", "dogs sleep."),
    ],
)
def test_parts_of_a_sentence(sentence, shorter):
    assert shorter in left(sentence)


def test_a_negation_goes_only_with_its_clause():
    assert "Do open it." not in left("Do not open it.")
    assert "It works." in left("It works, but not always.")


@pytest.mark.parametrize(
    ("sentence", "damaged"),
    [
        ("The value must be smaller than 2.", "The value must smaller than 2."),
        ("The license must be accepted.", "The license be accepted."),
        ("Engineers have found serious cracks.", "Engineers have serious cracks."),
        ("The value is smaller than or equal to 2.", "The value is smaller than to 2."),
        ("The value is smaller than or equal to 2.", "The value is smaller than or to 2."),
        ("Type at least 8 characters.", "Type 8 characters."),
        ("{user} invited you on {date}.", "{user} you on {date}."),
        ("It stays open after residents signed a petition.", "It stays open a petition."),
        ("It is the most likely cause.", "It is the likely cause."),
        ("You can save it.", "can save it."),
        ("Only administrators can change it.", "Only can change it."),
        ("Delete selected messages", "selected messages"),
        ("Delete all messages", "all messages"),
        ("She said that the shop is closed.", "She said."),
        ("You are able to open it.", "You are able."),
        ("The file is in the box.", "The file is."),
        ("Go back to the beginning of the file.", "Go back of the file."),
        ("Click to return to the page.", "Click to the page."),
        ("An error occurred while installing %NAME.", "An error occurred while %NAME."),
        ("It opens, and the door closes.", "It opens, the door closes."),
        ("It runs whether or not available.", "It runs whether or unavailable."),
        ("It runs whether or not available.", "It runs whether or N/A."),
        ("It runs whether or not valid.", "It runs whether or invalid."),
    ],
)
def test_what_would_be_no_english_or_mean_something_else(sentence, damaged):
    assert damaged not in left(sentence)


def test_an_alternative_and_a_condition_cost_more():
    costs = left("Save or close the file.")
    assert costs["Save the file."] > left("Save and close the file.")["Save the file."]
    assert left("It stops, if it is old.")["It stops."] > left("It stops, which is old.")["It stops."]


def test_a_lead_in_can_go():
    assert left("Opens a dialog to select the format.")["select the format."] < 1


def test_names_numbers_and_placeholders_cost_more():
    costs = left("Old Paris files of 1911 in {name} remain.")
    plain = left("Old paper files of glass in boxes remain.")
    assert costs["Old Paris files in {name} remain."] > plain["Old paper files in boxes remain."]
    assert costs["Old files of 1911 in {name} remain."] > plain["Old files of glass in boxes remain."]
    assert costs["Old Paris files of 1911 remain."] > 10


def test_brackets_are_never_opened():
    assert not [text for text in left("The tool (an old one) works.") if text.count("(") != text.count(")")]


def test_telegraphic_forms_are_for_headlines():
    sentence = "The disk could not be read."
    assert left(sentence, headline=True)["The disk not read."] < left(sentence)["The disk not read."]


def test_skips_add_up():
    pieces = split_pieces("It works very very well.")
    table = skips(pieces, deletions(pieces))
    assert table[2][4] == pytest.approx(table[2][3] + table[3][4])
    assert all(table[place][place] == 0 for place in range(len(pieces) + 1))
