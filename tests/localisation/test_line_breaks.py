"""Line breaks: never too long if it can be avoided, nothing lost, and broken where a reader expects it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise import measure
from lengthwise.length.weak_words import WEAK_WORDS
from lengthwise.localisation.borders import join_atoms, split_atoms
from lengthwise.localisation.line_breaks import break_lines, fits_in_lines

LANGUAGES = [*WEAK_WORDS, "pl", "ja", ""]


@pytest.mark.parametrize(
    ("text", "line", "language", "lines"),
    [
        ("Short enough.", 42, "en", ["Short enough."]),
        ("", 42, "en", []),
        # after punctuation, before a conjunction or a preposition
        ("I came as soon as I could, but you had left.", 30, "en", ["I came as soon as I could,", "but you had left."]),
        ("We stayed there and they went home again.", 30, "en", ["We stayed there", "and they went home again."]),
        # not after an article, a preposition, a pronoun, an auxiliary
        ("Non so se questa sia la casa che cercavi.", 26, "it", ["Non so se questa sia", "la casa che cercavi."]),
        ("Je cherche depuis longtemps la maison bleue", 30, "fr", ["Je cherche depuis longtemps", "la maison bleue"]),
        ("Gestern sahen wir zusammen den alten Film", 30, "de", ["Gestern sahen wir zusammen", "den alten Film"]),
        ("Nunca pensé que volvería a la vieja casa", 30, "es", ["Nunca pensé que volvería", "a la vieja casa"]),
        ("Nunca pensei que voltaria para a casa velha", 30, "pt", ["Nunca pensei que voltaria", "para a casa velha"]),
        # not inside a name or a quantity
        ("Yesterday morning Mary Poppins flew away", 26, "en", ["Yesterday morning", "Mary Poppins flew away"]),
        ("The parcel weighed about 35 kg in total", 28, "en", ["The parcel weighed", "about 35 kg in total"]),
        ("Yesterday evening Dr. Watson called us", 24, "en", ["Yesterday evening", "Dr. Watson called us"]),
        # other languages: balance only
        ("aaaa bbbb cccc dddd eeee ffff", 20, "pl", ["aaaa bbbb cccc", "dddd eeee ffff"]),
        # Japanese and Chinese break between characters; no line begins with 。 or 」, and none ends with 「
        ("昨日、私は東京で友達に会いました。", 13, "ja", ["昨日、私は東京で", "友達に会いました。"]),
        ("我们昨天在北京见到了老朋友", 8, "zh", ["我们昨天在北", "京见到了老朋友"]),
        # no-break spaces hold
        ("Vous venez avec nous ce soir\u00a0?", 28, "fr", ["Vous venez", "avec nous ce soir\u00a0?"]),
    ],
)
def test_where_lines_are_broken(text, line, language, lines):
    assert break_lines(text, line, 2, language) == lines


def test_a_text_that_is_too_long_has_no_more_lines_than_asked():
    rows = break_lines("one two three four five six seven", 10, 2, "en")
    assert len(rows) == 2
    assert " ".join(rows) == "one two three four five six seven"


def test_without_a_length_there_is_one_line():
    assert break_lines("a " * 100, None) == ["a " * 99 + "a"]


WORDS = st.lists(st.text("abcdeàß.,'-東京。「」 \u00a0", min_size=1, max_size=12), max_size=18).map(" ".join)


@given(WORDS, st.integers(5, 45), st.sampled_from([1, 2, 3, None]), st.sampled_from(LANGUAGES))
def test_nothing_is_lost_and_no_line_is_too_long_if_it_can_be_avoided(text, line, lines, language):
    rows = break_lines(text, line, lines, language)
    assert "".join("".join(rows).split()) == "".join(text.split())
    assert lines is None or len(rows) <= lines
    if fits_in_lines(text, line, lines):
        assert all(measure(row) <= line for row in rows)
    assert all(row == row.strip(" ") for row in rows)


@given(WORDS)
def test_atoms_join_to_the_text(text):
    assert join_atoms(split_atoms(text)) == " ".join(text.replace("\u00a0", "~").split()).replace("~", "\u00a0").strip()


@given(st.text("東京です。、「」ー！ょ", max_size=40), st.integers(3, 20))
def test_kinsoku(text, line):
    for row in break_lines(text, line, None, "ja")[1:]:
        assert row[0] not in "。、」ー！ょ" or not text.strip("。、」ー！ょ「")


@given(st.lists(st.sampled_from(["the", "house", "of", "a", "man", "and", "every", "dog"]), min_size=6, max_size=14))
def test_no_line_ends_with_an_article_if_there_is_a_better_place_nearby(words):
    text = " ".join([*words[:3], "garden,", *words[3:]])
    rows = break_lines(text, max(len(text) - 8, 5), 2, "en")
    best = len(" ".join([*words[:3], "garden,"]))
    if len(rows) == 2 and abs(best - len(text) / 2) < 4:
        assert rows[0].split()[-1] not in ("the", "a", "every", "of", "and")
