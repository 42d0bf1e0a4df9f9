"""Content: what a short text keeps of its source, and what it adds."""

import pytest

from lengthwise.shortening.content import coverage, dropped, invented, is_format, stem
from lengthwise.shortening.pieces import split_pieces
from lengthwise.translation.placeholders import changed_placeholders

SOURCE = "On Monday, 20 officials in Paris did not open the {name} file."


@pytest.mark.parametrize(("one", "other"), [("completed", "completion"), ("files", "file"), ("studies", "study")])
def test_inflections_share_a_stem(one, other):
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("Officials opened files.", []),
        ("Officials burned files.", ["burned"]),
        ("Officials don't open it.", []),
        ("30 officials", ["30"]),
    ],
)
def test_words_that_are_not_in_the_source(text, new):
    assert invented(SOURCE, text) == new


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (SOURCE, []),
        ("Officials didn't open the {name} file.", ["Monday", "20", "Paris"]),
        ("On Monday, 20 officials in Paris opened the {name} file.", ["not"]),
    ],
)
def test_names_numbers_and_negations_that_are_gone(text, gone):
    assert dropped(SOURCE, text) == gone


def test_qualifiers_that_are_gone():
    assert dropped("Wait until it is done or stop it.", "Wait till it is done.") == ["or"]
    assert dropped("It stops if at least one file is there.", "It stops.") == ["if", "least"]


def test_each_negation_counts():
    assert dropped("It is not old and cannot fly.", "It is not old.") == ["cannot"]
    assert dropped("It is not old and cannot fly.", "It isn't old and can't fly.") == []
    assert dropped("It is not old and is not new.", "It is not old.") == ["not"]


def test_a_contraction_has_its_negation():
    source = "You do not have permission to delete this folder unless you are an administrator."
    for text in ("You don't have permission.", "You don’t have permission.", "No permission to delete this folder."):
        assert dropped(source, text) == ["unless"]
    assert dropped(source, "You have permission unless you are an administrator.") == ["not"]
    assert dropped(source, "Delete this folder.") == ["unless", "not"]
    assert dropped("It isn't old, cannot fly and is never new.", "It is not old and is never new.") == ["cannot"]
    assert dropped("It is only here.", "It is not there.") == []  # as many negations as before


def test_a_number_with_the_short_form_of_percent():
    source = "The price rose by 12 percent because of the costs of 30 officials."
    assert dropped(source, "The price rose by 12% due to the costs of 30 officials.") == []
    assert dropped(source, "The price rose by 13% because of 30 officials.") == ["12"]
    assert invented(source, "The price rose by 13% because of 30 officials.") == ["13%"]
    assert invented("The price of 12 apples rose.", "The price rose by 12%.") == ["12%"]
    sentence = [split_pieces("It rose by 12 percent")]
    assert coverage(sentence, [[0.0, 1.0, 0.0, 1.0, 1.0]], "It rose by 12%") == 1


def test_a_short_form_stands_for_its_long_one_only():
    assert invented("The application works.", "The app works.") == []
    assert invented("The tool works.", "The app works.") == ["app"]


def test_a_short_form_of_several_words_carries_what_the_long_one_does():
    sentence = [split_pieces("The value must be smaller than or equal to 2.")]
    nats = [[1.0 if piece.text in ("smaller", "equal") else 0.0 for piece in sentence[0]]]
    assert coverage(sentence, nats, "The value must be at most 2.") == 1
    assert coverage(sentence, nats, "The value must be at least 2.") == 0


def test_placeholders_that_are_gone_or_doubled():
    assert changed_placeholders(SOURCE, "Open the file.") == ["{name}"]
    assert changed_placeholders(SOURCE, "Open {name} {name}.") == ["{name}"]
    assert changed_placeholders(SOURCE, "Open {name}.") == []


def test_coverage_weighs_information_and_the_last_quarter():
    sentence = [split_pieces("Alpha beta gamma delta")]
    nats = [[3.0, 1.0, 1.0, 1.0]]
    assert coverage(sentence, nats, "Alpha.") == pytest.approx(3 / 7)  # delta counts twice
    assert coverage(sentence, nats, "Deltas") == pytest.approx(2 / 7)
    assert coverage(sentence, nats, "") == 0
    assert coverage([[]], [[]], "x") == 1


def test_a_program_needs_formats_but_no_addresses():
    formats = ["%s", "{name}", "%1$@", "<b>", "\\n"]
    others = ["/usr/share/doc", "C:\\new\\%temp", "https://a.org", "www.a.org", "a.com/b", "me@a.org", "★"]
    assert [is_format(one) for one in (*formats, *others)] == [True] * len(formats) + [False] * len(others)
