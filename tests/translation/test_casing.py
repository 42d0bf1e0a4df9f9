"""Casing: sentences in capitals are translated in sentence case and returned in capitals."""

import pytest

from lengthwise.translation.casing import to_sentence_case
from translation.fakes import texts


@pytest.mark.parametrize(
    ("text", "received"),
    [
        ("DELETE THE FILE %s?", "Delete the file %s?"),
        ("{name} HAS LEFT", "{name} has left"),
        ("MP3 FILES", "MP3 files"),
        ("USB", "USB"),
        ("IMAP", "IMAP"),
        ("README", "README"),
        ("DOWNLOADS", "Downloads"),
        ("CAN I SAVE IT?", "Can I save it?"),
        ("(SAVE FILE)", "(Save file)"),
        ("GO ON, PLEASE", "Go on, please"),
        ("DOSYA SİLİNDİ", "Dosya sİlİndİ"),
        ("Save AS PDF", "Save AS PDF"),
        ("HTML 文件", "HTML 文件"),
        ("https://a.org/x", "https://a.org/x"),
    ],
)
def test_the_model_receives_capitals_in_sentence_case(text, received):
    assert to_sentence_case(text) == received


def test_translations_of_capitals_are_in_capitals_and_no_longer(translator):
    lines, _ = translator({"Open {name}!": "Öffne {name}, groß!", "Open.": "Öffne."})
    assert texts(lines.translate(["OPEN {name}!", "Open."])) == ["ÖFFNE {name}, GROß!", "Öffne."]
    assert texts(lines.translate(["OPEN {name}!"], "at most 19 chars")) == ["ÖFFNE {name}, GROß!"]
