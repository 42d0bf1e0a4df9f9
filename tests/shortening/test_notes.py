"""Notes: what a short text lacks and adds, and where it may read badly."""

import pytest

from lengthwise.shortening.english import may_be_foreign
from lengthwise.shortening.notes import notes_on


@pytest.mark.parametrize(
    ("source", "text", "note"),
    [
        ("The value must be smaller than or equal to $2.", "Value must be at most $2.", None),
        (
            "The value must be smaller than or equal to $2.",
            "Value must be at least $2.",
            "left out: than, or, smaller; not in the source: least",
        ),
        ("The value or the sum must be no less than 2.", "The value must be at least 2.", "left out: or"),
        ("At most 5 rows, and no more than 2 files.", "At most 5 rows.", "left out: than, no, 2"),
        ("No more than 5 rows, and no more than 2 files.", "At most 5 rows.", "left out: than, no, 2"),
        ("DELETE privilege not available.", "DELETE N/A.", None),
        ("The disk is not available and not full.", "The disk is unavailable and full.", "left out: not"),
        ("The name is not valid.", "The name is invalid.", None),
        ("Files with the exception of logs are not deleted.", "Files except logs are not deleted.", None),
        ("Files with the exception of logs are not deleted.", "Files except logs are deleted.", "left out: not"),
        ("Files with the exception of logs are not deleted.", "Files are not deleted.", "left out: exception"),
        ("It is not valid or is unable to run.", "It is invalid or cannot run.", None),
        ("It is not valid or is unable to run.", "It is invalid or can run.", "left out: unable"),
        ("The name is invalid.", "The name is here.", "left out: invalid"),
        ("The people of the United States and Peru agree.", "The people of the US agree.", "left out: Peru"),
    ],
)
def test_notes_know_short_forms(source, text, note):
    assert notes_on(source, text) == note


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("It needs eight keys and two digits.", "left out: unless, not, ten"),  # conditions first
        ("Unless it is not old, it needs ten digits.", "left out: eight, two"),
    ],
)
def test_notes_name_numbers_in_words(text, note):
    source = "Unless it is not old, it needs eight keys and two digits in ten."
    assert notes_on(source, text) == note


@pytest.mark.parametrize(
    ("source", "text", "note"),
    [
        ("The disk is {n}% full.", "The disk is {n} full.", "left out: %"),
        ("The disk is 5 % full.", "The disk is 5 full.", "left out: %"),
        ("The disk is 5 % full.", "The disk is 5% full.", None),
        ("The disk is 5 % full.", "The disk is 5 percent full.", None),
        ("It has 5 % of {n}% and more.", "It has 5 % of {n} and more.", "left out: %"),
        ("The price is 5 €.", "The price is 5.", "left out: €"),
        ("It was made by a newer version of it.", "It was made by a version of it.", "left out: newer"),
        ("It sent an unexpected answer.", "It sent an answer.", "left out: unexpected"),
        ("Files & folders – all.", "Files, folders.", None),
    ],
)
def test_notes_name_symbols_and_opposites(source, text, note):
    assert notes_on(source, text) == note


def test_notes_name_everything():
    source = "It has keys " + ", ".join(map(str, range(10, 30))) + "."
    assert notes_on(source, "It has keys.") == "left out: " + ", ".join(map(str, range(10, 30)))


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("Die Datei konnte nicht gespeichert werden, weil der Datenträger voll ist.", True),
        ("Le fichier n'a pas pu être enregistré.", True),
        ("Не удалось сохранить файл.", True),
        ("Datei löschen", False),  # too little to say
        ("The file {le} {la} could not be saved in the café.", False),
        ("Die cast", False),
        ("%s", False),
        ("Los Angeles in La La Land", False),  # names
        ("El Niño and La Niña", False),
        ("Café de la Paix: open", True),  # a false alarm: small words in a name
    ],
)
def test_texts_that_may_not_be_english(text, foreign):
    assert may_be_foreign(text) is foreign
