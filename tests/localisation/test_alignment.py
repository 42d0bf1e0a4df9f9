"""Alignment: tags go around the words that they belong to in the translation, or around its cue, with a note."""

import pytest

from lengthwise.localisation.alignment import phrases, place_tags
from lengthwise.localisation.styled import read_tags


def placed(source, text, **known):
    styled, _ = read_tags(source, "srt", False)
    found, notes = place_tags(styled, text, lambda span: (0, len(text)), known.get)
    return found.written(), [note for _, note in notes]


@pytest.mark.parametrize(
    ("source", "text", "known", "tagged"),
    [
        ("We lost the <i>Endeavour</i>.", "Perdemmo la Endeavour.", {}, "Perdemmo la <i>Endeavour</i>."),
        ("I <b>love</b> you.", "Ti amo.", {"love": "amore"}, "Ti <b>amo</b>."),
        ("<i>Go</i> or <b>stay</b>.", "Vai o resta.", {"Go": "Vai", "stay": "restare"}, "<i>Vai</i> o <b>resta</b>."),
        ("No, <i>no</i>, no.", "No, no, no.", {}, "No, <i>no</i>, no."),  # the nearest
        ("the <i>big ship</i>", "la nave molto grande", {"big ship": "grande nave"}, None),
        (
            "the <i>old ship</i> sank",
            "la vecchia nave affondò",
            {"old ship": "vecchia nave"},
            "la <i>vecchia nave</i> affondò",
        ),
    ],
)
def test_words_of_tags(source, text, known, tagged):
    found, notes = placed(source, text, **known)
    if tagged is None:
        assert found == f"<i>{text}</i>"
        assert notes == ["<i> is around the whole cue: its words 'big ship' were not found"]
    else:
        assert (found, notes) == (tagged, [])


def test_a_point_is_at_a_border_of_words():
    assert placed("Hello {\\i1}my friend", "Ciao, amico mio") == (
        "Ciao, {\\i1}amico mio",
        ["the place of {\\i1} is estimated"],
    )


def test_the_same_tag_is_not_doubled():
    found, notes = placed("<b>Go</b> or <b>stay</b>.", "Vai o resta.", Go="Vai")
    assert (found, len(notes)) == ("<b>Vai o resta.</b>", 1)


def test_phrases():
    assert phrases(read_tags("<i>One\ntwo</i> {\\r}<b>!</b>", "srt", False)[0]) == ["One two"]
