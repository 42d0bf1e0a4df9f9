"""Tags: read, replaced by stand-ins, put around the same words again, closed and opened where a text is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.localisation.styled import Span, Styled, read_tags


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
    assert sorted(span.before for span in again.spans) == sorted(span.before for span in found.spans)
