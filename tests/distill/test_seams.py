"""Seams: forms that leave out what the words beside it need, or that say something else, are refused."""

import pytest

from lengthwise.distill.seams import holds


@pytest.mark.parametrize(
    ("sentence", "form"),
    [
        ("How many pieces of gum will each one get?", "How pieces of gum will each one get?"),
        ("Photons are even smaller than the stuff that makes up atoms!", "Photons are even smaller than the stuff!"),
        ("The task of generating texts has received attention.", "The task has received attention."),
        ("It is only available for a chart, under Format - Axis.", "It is only available - Axis."),
        ("Cannot create the file $(URL1).", "Cannot create the $(URL1)."),
        ("He has been accused, but was not charged.", "He was charged, but was not charged."),
        ("See Creating a Template for related information.", "See creating a Template."),
        ("They're having extreme money problems.", "Having money problems."),
        ("Bullets are resized to fit the current line.", "Balls are resized to fit the line."),
    ],
)
def test_a_broken_form_is_refused(sentence, form):
    assert not holds(sentence, form)


@pytest.mark.parametrize(
    ("sentence", "form"),
    [
        ("Three of the rooms face the street.", "Three rooms face the street."),
        ("You can make use of a large number of styles.", "You can use many styles."),
        ("Enter password to allow editing", "Enter password"),
        ("The couple had married in Texas one year ago and left.", "The couple married in Texas a year ago."),
        ("Format - Axis is only available for a chart of this kind.", "Format - Axis is only available for a chart."),
    ],
)
def test_a_sound_form_holds(sentence, form):
    assert holds(sentence, form)
