"""Runs: which cues a sentence goes on over."""

import pytest

from lengthwise.formats import read
from lengthwise.localisation.cue import Cue
from lengthwise.localisation.runs import find_runs


def srt(*cues, gap=0.1):
    """Return an SRT file with these texts, two seconds each."""
    blocks, at = [], 1.0
    for number, text in enumerate(cues, 1):
        times = (f"00:00:{second:06.3f}".replace(".", ",") for second in (at, at + 2))
        blocks.append(f"{number}\n{' --> '.join(times)}\n{text}\n")
        at += 2 + gap
    return read("film.srt", data="\n".join(blocks).encode())


def runs(file, language="en"):
    cues = [Cue.of(entry, file.format.name) for entry in file.entries]
    return [[piece.speech.text for piece in run.pieces] for run in find_runs(cues, language)]


@pytest.mark.parametrize(
    ("cues", "found"),
    [
        (["Go home.", "now, please."], [["Go home."], ["now, please."]]),
        (["I went", "home. Then"], [["I went", "home. Then"]]),
        (["I went to", "London, and", "I stayed."], [["I went to", "London, and", "I stayed."]]),
        (["We met Mr.", "Smith there."], [["We met Mr.", "Smith there."]]),
        # a capital begins a sentence, unless it is a name or "I", or the cue before it ends in a weak word
        (["Look out", "Everything falls.", "Yes."], [["Look out"], ["Everything falls."], ["Yes."]]),
        (["They saw", "Mary there.", "Is it Mary?"], [["They saw", "Mary there."], ["Is it Mary?"]]),
        (["They think", "I am ill.", "No."], [["They think", "I am ill."], ["No."]]),
        # dots and dashes
        (["I was...", "...afraid."], [["I was", "afraid."]]),
        (["I was...", "What?"], [["I was..."], ["What?"]]),
        (["What the --", "Get down!"], [["What the --"], ["Get down!"]]),
        # other speakers, brackets and music
        (["I went", "- home.", "Yes."], [["I went"], ["home."], ["Yes."]]),
        (["I went ♪", "home.", "Yes."], [["I went"], ["home."], ["Yes."]]),
        (["- Who?\n- The man", "that I saw.", "Yes."], [["Who?"], ["The man", "that I saw."], ["Yes."]]),
        # quotations
        (['"I was there.', 'You were not."'], [['"I was there.'], ['You were not."']]),
    ],
)
def test_sentences_go_on(cues, found):
    assert runs(srt(*cues)) == found


def test_a_pause_ends_a_sentence():
    assert runs(srt("I went", "home.", gap=5)) == [["I went"], ["home."]]


def test_captions_without_punctuation_are_joined_only_a_little():
    assert runs(srt(*["so this is it"] * 7)) == [["so this is it"] * 3, ["so this is it"] * 3, ["so this is it"]]
    assert runs(srt(*["So This Is It"] * 4)) == [["So This Is It"]] * 4


def test_a_very_long_sentence_is_divided_where_a_clause_ends():
    clause = "so it went on and on without an end in sight for a long time,"
    found = runs(srt(*[clause] * 5, "and that was it."))
    assert [len(run) for run in found] == [3, 3]


def test_german_nouns_are_no_new_sentences():
    assert runs(srt("Wir sahen", "Bäume.", "Ja."), "de") == [["Wir sahen", "Bäume."], ["Ja."]]


def test_another_voice_or_style_is_another_sentence():
    vtt = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>I went\n\n00:02.100 --> 00:03.000\n<v {}>home.\n"
    assert runs(read("a.vtt", data=vtt.format("Ann").encode())) == [["I went", "home."]]
    assert runs(read("a.vtt", data=vtt.format("Bob").encode())) == [["I went"], ["home."]]
    ass = (
        "[Events]\nFormat: Start, End, Style, Text\n"
        "Dialogue: 0:00:01.00,0:00:02.00,A,I went\nDialogue: 0:00:02.10,0:00:03.00,{},home.\n"
    )
    assert runs(read("a.ass", data=ass.format("A").encode())) == [["I went", "home."]]
    assert runs(read("a.ass", data=ass.format("Sign").encode())) == [["I went"], ["home."]]


def test_cues_at_the_same_time_are_not_joined():
    text = "1\n00:00:01,000 --> 00:00:05,000\nI went\n\n2\n00:00:02,000 --> 00:00:05,000\nhome.\n"
    assert runs(read("a.srt", data=text.encode())) == [["I went"], ["home."]]
