"""Translator: each line in its place, within its budget; a line that fails costs only itself."""

import re

import pytest

from lengthwise import Budget
from lengthwise.translation import Translator
from translation.fakes import Reader, texts


def test_output_lines_are_in_the_order_of_the_input(translator):
    lines, book = translator({"Yes.": "Oui.", "No.": "Non."})
    source = ["Yes.", "", "  No. Yes.\t", "   ", "12,5", "https://a.org", "No.", "{x}"]
    rows = lines.translate(source)
    assert texts(rows) == ["Oui.", "", "  Non. Oui.\t", "   ", "12,5", "https://a.org", "Non.", "{x}"]
    assert [row.source for row in rows] == source
    assert all(row.fits and row.complete and row.intact and row.note is None for row in rows)
    assert book.free_calls == [["Yes.", "No."]]  # each once
    assert book.bound_calls == []


def test_a_free_translation_that_fits_is_chosen(translator):
    lines, book = translator({"Cancel": ["Annuler", "Stop"]})
    [row] = lines.translate(["Cancel"], "at most 7 chars")
    assert (row.text, row.length, row.budget, row.fits) == ("Annuler", 7, "at most 7 chars", True)
    [row] = lines.translate(["Cancel"], "at most 6 chars")
    assert (row.text, book.bound_calls) == ("Stop", [])  # another free one fits
    assert lines.translate(["Cancel"], "exactly 4 chars")[0].text == "Stop"


@pytest.mark.parametrize(
    ("budget", "nearest"),
    [("at most 3 chars", "Stop"), ("exactly 6 chars", "Annuler"), ("20-30 chars", "Va et annule")],
)
def test_a_fragment_is_replaced_by_the_nearest_complete_translation(translator, budget, nearest):
    lines, book = translator({"Cancel": ["Annuler", "Stop", "Annulation", "Va et annule"]})
    [row] = lines.translate(["Cancel"], budget)
    assert book.bound_calls == [[("Cancel", budget)]]
    assert (row.text, row.length, row.fits, row.complete) == (nearest, len(nearest), False, True)
    assert (row.budget, row.note) == (budget, "no complete translation that fits was found")


def test_a_text_that_is_none_costs_only_itself(translator):
    lines, _ = translator({"Cancel": "Annuler"})
    none, row = lines.translate([None, "Cancel"])
    assert (none.error, row.text) == ("a text is a str; got None", "Annuler")


def test_a_name_is_not_a_writer():
    with pytest.raises(TypeError, match=r"takes a Writer, such as lengthwise.load\('en-it'\); got 'en-it'"):
        Translator("en-it", "en", "it")


def test_a_translation_that_lost_a_placeholder_is_replaced_by_one_that_has_it(translator):
    lines, book = translator({"See {name}": "Voir {name}"})
    book.fragments_are_complete = True
    [row] = lines.translate(["See {name}"], "at most 8 chars")
    assert (row.text, row.fits, row.intact) == ("Voir {name}", False, True)


def test_of_complete_translations_the_nearest_of_nearly_the_same_score_is_chosen(translator):
    known = {"Paramètres": -1.0, "Réglages": -1.4, "Règle": -3.0}
    lines, _ = translator({"Settings": list(known)}, reverse=Reader(known))
    [row] = lines.translate(["Settings"], "at most 3 chars")
    assert (row.text, row.score) == ("Réglages", -1.4)


def test_without_a_free_translation_a_fragment_is_reported_as_such(translator):
    lines, book = translator({"Cancel": "Annuler"})
    book.needs_length = True
    [row] = lines.translate(["Cancel"], "at most 3 chars")
    assert (row.text, row.fits, row.complete) == ("zzz", True, False)


def test_fragments_that_fit_are_among_the_candidates(translator):
    lines, _ = translator({"Cancel": ["Annuler", "Annulation"]}, candidates=3)
    [row] = lines.translate(["Cancel"], "at most 3 chars")
    found = [(one.text, one.fits, one.complete) for one in (row, *row.candidates)]
    assert found == [("Annuler", False, True), ("zzz", True, False), ("Annulation", False, True)]


@pytest.mark.parametrize(
    "budget", ["at most 11 chars", Budget.parse("at most 11 chars"), "at most 1.0x", "at most 2 words"]
)
def test_one_budget_for_all_lines(translator, budget):
    lines, _ = translator({"Go away now": ["GO AWAY NOW", "GO AWAY"]})
    expected = "GO AWAY" if "words" in str(budget) else "GO AWAY NOW"
    assert texts(lines.translate(["Go away now"], budget)) == [expected]


def test_a_ratio_allows_at_least_the_minimum_limit(translator):
    entries = {"Exit": "Quitter", "Data": "Informations"}
    lines, _ = translator(entries, min_limit=8)
    assert [row.fits for row in lines.translate(["Exit", "Data"], "1.0x")] == [True, False]
    assert not lines.translate(["Exit"], "at most 4 chars")[0].fits  # a count is not widened


def test_an_error_concerns_its_line_only(translator):
    lines, _ = translator({"Long.": "TOO LONG", "Go.": "Va."})
    asked = [None, "at most 20 chars", "short", "at most 9 chars", "42 chars", "at most 3 chars"]
    rows = lines.translate(["Go. Long.", "Long. Go.", "Go.", "Go.", "Go.", "https://a.org"], asked)
    assert [(row.error or "")[:18] for row in rows] == ["the text is too lo"] * 2 + [
        "cannot read 'short",
        "",
        "cannot read '42 ch",
        "",
    ]
    assert (rows[3].text, rows[3].fits, rows[0].text, rows[0].fits) == ("Va.", True, "", False)
    assert (rows[5].text, rows[5].fits, rows[5].note) == (
        "https://a.org",
        False,
        "the line has nothing to translate; it was copied",
    )


def test_budgets_that_are_none_are_told(translator):
    lines, _ = translator()
    with pytest.raises(ValueError, match="one budget for all texts or one for each; got 1 for 2 texts"):
        lines.translate(["a", "b"], ["1.0x"])
    with pytest.raises(TypeError, match="a budget is a text such as 'at most 75 chars', or a Budget; got 40"):
        lines.translate(["a"], 40)


def test_candidates_are_reported_if_asked_for(translator):
    entries = {"Cancel": ["Annuler", "Annulation", "Stop"]}
    lines, _ = translator(entries)
    assert lines.translate(["Cancel"])[0].candidates == []
    lines, _ = translator(entries, candidates=3)
    [row] = lines.translate([" Cancel"], "at most 7 chars")
    assert [(one.text, one.fits) for one in row.candidates] == [(" Stop", True), (" Annulation", False)]


def test_candidates_keep_the_placeholders_that_the_translation_keeps(translator):
    lines, _ = translator({"See {name}": ["Voir {name}", "Voir {nom}", "Vois {name}"]}, candidates=3)
    [row] = lines.translate(["See {name}"])
    assert (row.text, row.intact) == ("Voir {name}", True)
    assert [one.text for one in row.candidates] == ["Vois {name}"]


def test_a_model_that_needs_a_length_is_not_searched_freely_first(translator):
    lines, book = translator({"Go.": "Va."})
    book.needs_length = True
    assert texts(lines.translate(["Go.", "Go."], ["at most 9 chars", None])) == ["Va.", "Va."]
    assert (book.free_calls, book.bound_calls) == ([["Go."]], [[("Go.", "at most 9 chars")]])


def test_a_sentence_that_is_too_long_for_the_model(marian):
    rows = Translator(marian, beams=2).translate(["A dog " * 100, "A dog"])
    assert re.match("the text is too long for the model: .* its window has 128", rows[0].error)
    assert rows[1].error is None
    assert rows[1].budget == ""
