"""Mnemonics: what is one, and where it is in the translation."""

import pytest

from lengthwise.localisation.mnemonics import put_back, take_out


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("&File", ("File", "&F")),
        ("E&xit", ("Exit", "&x")),
        ("&Find && replace", ("Find && replace", "&F")),
        ("_File", ("File", "_F")),
        ("Cu_t", ("Cut", "_t")),
        ("Save _As…", ("Save As…", "_A")),
        *((text, (text, "")) for text in ("R&D", "AT&T", "Cut && paste", "Find & replace", "&amp; more", "x &nbsp;")),
        *((text, (text, "")) for text in ("file_name", "MAX_LENGTH", "in_progress", "a_b _c", "&One &Two")),
        ("https://a.example/?x=1&y=2", ("https://a.example/?x=1&y=2", "")),
        ("Set %(file_name)s", ("Set %(file_name)s", "")),
    ],
)
def test_take_out(text, found):
    assert take_out(text, "&_") == found


@pytest.mark.parametrize(
    ("text", "mnemonic", "wanted"),
    [
        ("File", "&F", "&File"),
        ("Salva con nome", "&n", "Salva con &nome"),  # the first letter of a word comes before other letters
        ("Esci", "&x", "&Esci"),
        ("Öffnen", "&O", "&Öffnen"),
        ("%s salva", "&p", "%s &salva"),  # never in a placeholder
        ("ファイル…", "&f", "ファイル(&F)…"),
        ("Файл", "&F", "&Файл"),
        ("Text", "", "Text"),
    ],
)
def test_put_back(text, mnemonic, wanted):
    assert put_back(text, mnemonic) == wanted
