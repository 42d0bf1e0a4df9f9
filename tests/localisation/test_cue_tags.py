"""The tags of cues: read, closed and opened where a text is cut, put around the same words of a translation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.localisation.cue_tags import place_tags, read_tags
from lengthwise.translation.alignment import phrases
from lengthwise.translation.styled import Span, Styled


def tagged(text, form="srt"):
    return read_tags(text, form, form == "vtt")[0]


@pytest.mark.parametrize(
    ("form", "text", "shown", "spans"),
    [
        ("srt", "I <b>love</b> you.", "I love you.", [(2, 6, "<b>")]),
        ("srt", '{\\an8}<font color="#ff0">Go</font>!', "Go!", [(0, 0, "{\\an8}"), (0, 2, '<font color="#ff0">')]),
        ("srt", "<i>One</i>\n<i>two</i>", "One\ntwo", [(0, 7, "<i>")]),  # a pair in each line is one pair
        ("srt", "5 < 6 <br> {name}", "5 < 6 <br> {name}", []),  # no tags of subtitles
        ("vtt", "<v Fred>Hi, <c.yellow>Bob &amp; Al</c>", "Hi, Bob & Al", [(0, 0, "<v Fred>"), (4, 12, "<c.yellow>")]),
        ("ass", "{\\i1}Hello{\\i0} you{\\r}", "Hello you", [(0, 5, "{\\i1}"), (9, 9, "{\\r}")]),
        ("ass", "{\\pos(1,2)\\i1}Hello\\nyou", "Hello you", [(0, 0, "{\\pos(1,2)\\i1}")]),
    ],
)
def test_tags_are_spans(form, text, shown, spans):
    found = tagged(text, form)
    assert found.text == shown
    assert [(span.start, span.end, span.before) for span in found.spans] == spans


def test_word_times_are_left_out_and_said():
    found, notes = read_tags("this<00:05:04.199><c> will</c><00:05:04.379><c> be</c>", "vtt", True)
    assert (found.written(), notes) == ("this will be", ["the times of single words are left out"])
    assert read_tags("{\\k20}ka{\\k30}ra", "ass", False)[0].written() == "kara"


def test_a_cut_closes_and_opens_tags():
    text = Styled("one two three", (Span(4, 13, "<i>", "</i>"), Span(0, 0, "{\\an8}")))
    assert text.cut(0, 7).written() == "{\\an8}one <i>two</i>"
    assert text.cut(8, 13).written() == "<i>three</i>"


PIECES = st.lists(
    st.sampled_from(["a", " b", "\n", "<i>", "</i>", "<b>", "</b>", "{\\an8}", "{\\i1}", "{\\i0}"]), max_size=12
)


@given(PIECES.map("".join), st.sampled_from(["srt", "vtt", "ass"]))
def test_reading_and_writing_keeps_the_words(text, form):
    found, _ = read_tags(text, form, False)
    again, _ = read_tags(found.written(), form, False)
    assert again.text == found.text
    if not any(span.is_point and span.before != "{\\an8}" for span in found.spans):  # each tag has a partner
        assert sorted(span.before for span in again.spans) == sorted(span.before for span in found.spans)


def placed(source, text, **known):
    styled, _ = read_tags(source, "srt", False)
    found, notes = place_tags(
        styled, text, lambda span: (0, len(text)), lambda phrase: [known[phrase]] if phrase in known else []
    )
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
