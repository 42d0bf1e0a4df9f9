"""Tags: read, replaced by stand-ins, put around the same words again, closed and opened where a text is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.localisation.styled import Span, Styled, read_stand_ins, read_tags


def tagged(text, form="srt"):
    return read_tags(text, form, form == "vtt")[0]


@pytest.mark.parametrize(
    ("form", "text", "asked"),
    [
        ("srt", "I <b>love</b> you.", "I <t1>love</t1> you."),
        ("srt", '{\\an8}<font color="#ff0">Go</font>!', "<t1/><t2>Go</t2>!"),
        ("srt", "<i>One</i>\n<i>two</i>", "<t1>One two</t1>"),  # a pair in each line is one pair
        ("srt", "5 < 6 <br> {name}", "5 < 6 <br> {name}"),  # no tags of subtitles
        ("vtt", "<v Fred>Hi, <c.yellow>Bob &amp; Al</c>", "<t1/>Hi, <t2>Bob & Al</t2>"),
        ("ass", "{\\i1}Hello{\\i0} you{\\r}", "<t1>Hello</t1> you<t2/>"),
        ("ass", "{\\pos(1,2)\\i1}Hello\\nyou", "<t1/>Hello you"),
    ],
)
def test_stand_ins(form, text, asked):
    assert tagged(text, form).with_stand_ins() == asked


@pytest.mark.parametrize(
    ("source", "answer", "text"),
    [
        ("I <b>love</b> you.", "Ti <t1>amo</t1>.", "Ti <b>amo</b>."),
        ("I <b>love</b> you.", "Ti <t1> amo </t1>.", "Ti <b>amo</b>."),
        ("I <b>love</b> you.", "<t1>Amo</t1> te.", "<b>Amo</b> te."),
        ("A{\\r} b", "<t1/>X y", "{\\r}X y"),
        ("<i>a <b>b</b></i> c", "<t1>x <t2>y</t2></t1> z", "<i>x <b>y</b></i> z"),
    ],
)
def test_tags_follow_their_words(source, answer, text):
    found, notes = read_stand_ins(answer, tagged(source))
    assert (found.written(), notes) == (text, [])


@pytest.mark.parametrize("answer", ["Ti amo.", "Ti <t1>amo.", "Ti </t1>amo<t1>.", "Ti <t1></t1>amo."])
def test_a_lost_tag_is_widened_and_said(answer):
    found, [note] = read_stand_ins(answer, tagged("I <b>love</b> you."))
    assert found.written() == "<b>Ti amo.</b>"
    assert note.startswith("<b> is around the whole text")


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
    assert sorted(span.before for span in again.spans) == sorted(span.before for span in found.spans)
