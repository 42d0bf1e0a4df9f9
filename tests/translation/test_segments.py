"""Segments: a line is split into sentences and joined again, and its sentences share its budget."""

import pytest

from lengthwise import measure
from lengthwise.translation import Translator
from lengthwise.translation.segments import split


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \t ", []),
        ("  One. Two!  Three ", ["One.", "Two!", "Three"]),
        ("See Dr. Who. Then go.", ["See Dr. Who.", "Then go."]),
        (r"First line\nSecond line", ["First line", "Second line"]),
        ("One<br/>Two\nThree", ["One", "Two", "Three"]),
        ("<b><i>Note</i></b>", ["Note"]),
        ("<b>Note</b> and <b>more</b>", ["<b>Note</b> and <b>more</b>"]),
        (r"Open C:\new\table now.", [r"Open C:\new\table now."]),
        ("42", []),
        ("One.{1} Two.", ["One.{1}", "Two."]),  # a footnote mark
        ("Version 1.{0} is out.", ["Version 1.{0} is out."]),
        ("Go. 42. https://a.org", ["Go."]),
        ("吾輩は猫である。名前はまだ無い。", ["吾輩は猫である。", "名前はまだ無い。"]),
    ],
)
def test_a_line_is_split_into_sentences_and_nothing_is_lost(text, sentences):
    segments = split(text)
    assert "".join(segment.text for segment in segments) == text
    assert [segment.text for segment in segments if segment.is_sentence] == sentences


def test_sentences_share_the_budget_and_what_one_saves_the_next_can_use(translator):
    # 10 characters each; "Aaaaaaaaa." needs 4, so of 24 (two for the spaces) the others have 18, 9 each
    entries = {"Aaaaaaaaa.": "A aa", "Bbbbbbbbb.": "B" * 20, "Ccccccccc.": ["C" * 20, "C" * 10]}
    lines, book = translator(entries)
    [row] = lines.translate(["Aaaaaaaaa. Bbbbbbbbb. Ccccccccc."], "at most 24 chars")
    assert (row.text, row.fits) == ("A aa " + "B" * 20 + " " + "C" * 20, False)
    assert [call[0][1] for call in book.bound_calls] == ["at most 9 chars"]  # then there is no room left
    # if the second one takes less than its share, the third one has more
    book.entries["Bbbbbbbbb."] = ["B" * 20, "B" * 8]
    [row] = lines.translate(["Aaaaaaaaa. Bbbbbbbbb. Ccccccccc."], "at most 24 chars")
    assert row.text == "A aa " + "B" * 8 + " " + "C" * 10
    assert (row.length, row.fits) == (24, True)


def test_the_last_sentence_keeps_both_limits(translator):
    lines, _ = translator({"Aaaa.": ["A" * 9, "Aa"], "Bbbb.": ["B" * 9, "Bb"]})
    [row] = lines.translate(["Aaaa. Bbbb."], "10-12 chars")
    assert (row.text[:3], row.fits) == ("Aa ", True)  # the second one fills what the first one saved


def test_a_line_that_is_too_short_is_searched_again(translator):
    lines, book = translator({"Aaaa.": "A", "Bbbb.": "BBBB"})
    book.fragments_are_complete = True
    [row] = lines.translate(["Aaaa. Bbbb."], "at least 10 chars")
    assert (row.text, row.fits) == ("zzzzz BBBB", True)
    assert book.bound_calls == [[("Aaaa.", "at least 5 chars")]]


@pytest.mark.parametrize(
    "budget", ["at most 30 chars", "at most 6 words", "at most 40 bytes", "at most 12 tokens", "1.0x"]
)
def test_several_sentences_fit_together(marian, budget):
    source = ["It was a bright cold day. The clocks were striking! Text that fits?", "A button", " The dog. "]
    for row in Translator(marian, beams=1).translate(source, budget):
        assert row.fits
        assert row.unit == "tokens" or row.length == measure(row.text, row.unit)
        assert row.text[0].isspace() == row.source[0].isspace()
