"""Casing: sentences in capitals are translated in sentence case and returned in capitals."""

import pytest

from lengthwise.translation.casing import to_sentence_case, with_first_capital
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


@pytest.mark.parametrize(
    ("source", "text", "written"),
    [
        ("Supported files", "file gestiti", "File gestiti"),
        ("<a1>Supported</a1> files", "<a1>file</a1> gestiti", "<a1>File</a1> gestiti"),
        ('"Save" is off', "«salva» è spento", "«Salva» è spento"),
        ("Étages", "étages", "Étages"),
        ("Phones", "iPhone", "iPhone"),
        ("Processors", "x86 e altri", "x86 e altri"),
        ("Output", "a.out è il file", "a.out è il file"),
        ("Files {1}", "{1} file", "{1} file"),
        ("files", "file", "file"),
        ("Files", "文件", "文件"),
        ("Files", "", ""),
    ],
)
def test_a_sentence_of_a_document_keeps_its_first_capital(source, text, written):
    assert with_first_capital(source, text) == written
