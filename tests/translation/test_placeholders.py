"""Placeholders: what counts as one, what was lost, and stand-ins."""

import pytest

from lengthwise import measure
from lengthwise.translation.placeholders import STAND_INS, count_placeholders, lost, mask, translatable, unmask
from translation.fakes import texts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("%s of %1$d, %-5.2f and %ld", ["%s", "%1$d", "%-5.2f", "%ld"]),
        ("%(host)s %1 %NAME% %PRODUCTNAME %d%%", ["%(host)s", "%1", "%NAME%", "%PRODUCTNAME", "%d", "%%"]),
        ("{name} {0} ${x} {{y}} #{z} {n, plural, one {# file} other {# files}}",
         ["{name}", "{0}", "${x}", "{{y}}", "#{z}", "{n, plural, one {# file} other {# files}}"]),
        ("$name$ $(ARG1) $[office] $1 $HOME", ["$name$", "$(ARG1)", "$[office]", "$1", "$HOME"]),
        ('Go <a href="x">there</a> &amp; <br/>\\n', ['<a href="x">', "</a>", "&amp;", "<br/>", "\\n"]),
        ("%2$#@groups@, %1$@s %+1.3fmm %@", ["%2$#@groups@", "%1$@", "%+1.3f", "%@"]),
        ("%n of %Ln, %L1", ["%n", "%Ln", "%L1"]),
        ("$t(menu.file) @:menu.file @.lower:a %<n>d", ["$t(menu.file)", "@:menu.file", "@.lower:a", "%<n>d"]),
        ("See https://a.org/b?c=d. Or write to me@a.org.", ["https://a.org/b?c=d", "me@a.org"]),
        ("See www.a.fr, or a-b.com/help. Not a.b.Name, end.Then, file.txt or x.company",
         ["www.a.fr", "a-b.com/help"]),
        ("如『http://a.org/b』或（https://c.org）。", ["http://a.org/b", "https://c.org"]),
        ("In /usr/share/doc/x, ~/work, ./a.sh and C:\\b\\c", ["/usr/share/doc/x", "~/work", "./a.sh", "C:\\b\\c"]),
        ("and/or, n/a, 12/05/2024, km/h, s/he, /me, </b> / 5", ["</b>"]),
        ("🎉🎉 New → ★ 5 × 3 ▲, ♥️ © 20°", ["🎉🎉", "★", "▲", "♥️"]),
        ("Run it with --dry-run or --out=x -- now, a--b", ["--dry-run", "--out"]),
        ("Key dGhpcyBpcyBhIGtleSAxMjM0NQ==, digest 5f2b8c1d9e4a7f3b6c0d1e2f.",
         ["dGhpcyBpcyBhIGtleSAxMjM0NQ==", "5f2b8c1d9e4a7f3b6c0d1e2f"]),
        ("Item 123e4567-e89b-12d3-a456-426614174000 of 3rd-party-documentation",
         ["123e4567-e89b-12d3-a456-426614174000"]),
        ("Donaudampfschifffahrtsgesellschaft, self-explanatory-documentation, 12345678901234567890", []),
        ("100% done, 50% of it, 5 % discount, 0% is little", []),
        ("$5.20 and $12, 3 < 4 > 2, AT&T; F<=f", []),
    ],
)  # fmt: skip
def test_placeholders_are_found(text, found):
    assert list(count_placeholders(text)) == found


@pytest.mark.parametrize(
    ("source", "output", "missing"),
    [
        ("Delete %s?", "Supprimer %s ?", []),
        ("Delete %s?", "Supprimer %d ?", ["%s", "%d"]),
        ("{a} and {a}", "{a}", ["{a}"]),
        ("Three of 1,234.5 in the 20th century", "3 sur 1 234,5 au XXe siècle", []),
        ("In 2001, 300 people", "En 2001 300 personnes", []),
        ("At 09:05 there were 5", "À 9h05 ils étaient 5", []),
        ("5 of 15", "15", ["5"]),
        ("Needs 3.11", "Richiede 3,11", []),
        ("Needs 3.11", "Richiede 311", ["3.11"]),
        ("Version 10.0.1", "Versione 100.1", ["10.0.1"]),
        ("Version 2.13.4", "Versione 2.13,4", ["2.13.4"]),
        ("1,234,567 and 1,234", "1.234.567 e 1 234", []),
        ("See /usr/share/doc", "Vedi", ["/usr/share/doc"]),
        ("Tap ▲ now", "Tocca \ufffd\ufffd ora", ["▲", "\ufffd"]),
        ("<i>on</i> < 5", "<i> <7on<</i> < 5", ["<7"]),
        ("<i>on</i> it", "<i>,</i> cela", ["<i>", "</i>"]),
        ("I love you", "Ti amo <3", []),
    ],
)
def test_lost_placeholders_and_numbers(source, output, missing):
    assert lost(source, output) == missing


@pytest.mark.parametrize("form", STAND_INS)
def test_stand_ins_are_replaced_again(form):
    text = " ".join(f"{{n{i}}}" for i in range(12)) + " %s."
    masked, stand_ins = mask(text, form)
    assert len(stand_ins) == 13
    assert "n1" not in masked
    assert unmask(masked, stand_ins) == text


@pytest.mark.parametrize("form", STAND_INS)
def test_placeholders_that_look_like_stand_ins_are_restored(form):
    text = "{2} of {1}"
    assert unmask(*mask(text, form)) == text


@pytest.mark.parametrize(("text", "yes"), [("Go", True), ("{name}: %s", False), ("12 → 3", False), ("é", True)])
def test_texts_with_something_to_translate(text, yes):
    assert translatable(text) is yes


def test_a_hypothesis_that_keeps_the_placeholders_is_preferred(translator):
    lines, book = translator({"Hi {name}": ["Salut {nom}", "Salut {name}"], "5 dogs": ["cinq chiens", "5 chiens"]})
    assert texts(lines.translate(["Hi {name}", "5 dogs"])) == ["Salut {name}", "5 chiens"]
    assert len(book.free_calls) == 1


def test_torn_character_references_are_mended(translator):
    lines, _ = translator({"Name:": "Nom & #160;:", "A & b;": "A & b ;"})
    assert texts(lines.translate(["Name:", "A & b;"])) == ["Nom\u00a0:", "A & b ;"]


@pytest.mark.parametrize(
    ("source", "output", "restored"),
    [
        ("Loading…", "Chargement...", "Chargement…"),
        ("Well… so wait, {name}…", "Bon... attendez, {name}...", "Bon… attendez, {name}…"),
        ("Loading...", "Chargement...", "Chargement..."),
        ("Wait… no...", "Attendez... non...", "Attendez... non..."),  # of which kind each is cannot be told
        ("Wait…", "Attendez… ou...", "Attendez… ou..."),
        ("Wait…", "Attendez..", "Attendez.."),
        ("Wait…", "Attendez....", "Attendez...."),
        ("Wait.", "Attendez...", "Attendez..."),
    ],
)
def test_an_ellipsis_is_restored(translator, source, output, restored):
    lines, _ = translator({source: output})
    [one] = lines.translate([source], "at most 60 chars")
    assert (one.text, one.length) == (restored, len(restored))


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        ("at most 11 chars", "Chargement…"),
        ("exactly 11 chars", "Chargement…"),
        ("exactly 13 chars", "Chargement..."),
        ("12-13 chars", "Chargement..."),
        ("10-13 chars", "Chargement…"),
        ("exactly 1 tokens", "Chargement…"),  # counted as they were generated
        ("exactly 13 bytes", "Chargement…"),
    ],
)
def test_three_full_stops_stay_where_the_text_fits_only_with_them(translator, budget, text):
    lines, _ = translator({"Loading…": "Chargement..."})
    [one] = lines.translate(["Loading…"], budget)
    assert (one.text, one.fits, one.complete) == (text, True, True)
    unit = budget.split()[-1]
    assert unit == "tokens" or one.length == measure(text, unit)


def test_stand_ins_are_tried_where_no_hypothesis_keeps_the_placeholders(translator):
    lines, book = translator({"Hi {name}": "Salut", "Hi {1}": "Salut", "Hi <1>": "Salut <1>"})
    [row] = lines.translate(["Hi {name}"])
    assert (row.text, row.intact) == ("Salut {name}", True)
    # within a budget, the placeholder is longer than its stand-in
    lines, book = translator({"Hi {name}": "Salut toi", "Hi {1}": "Salut toi {1}"})
    lines.translate(["Hi {name}"], "at most 9 chars")
    assert [("Hi {1}", "at most 6 chars")] in book.bound_calls
    lines, book = translator({"Hi {name}": "Salut toi", "Hi {1}": ["Salut toi {1}", "Hé {1}"]})
    [row] = lines.translate(["Hi {name}"], "at most 9 chars")
    assert (row.text, row.fits, row.intact) == ("Hé {name}", True, True)


def test_the_note_names_lost_placeholders(translator):
    lines, _ = translator(dict.fromkeys(("Hi {name}", "Hi {1}", "Hi <1>", "Hi X1"), "Salut"))
    [row] = lines.translate(["Hi {name}"])
    assert (row.text, row.intact, row.fits) == ("Salut", False, True)
    assert row.note == "not as in the source: {name}"
    assert row.as_json()["note"] == row.note


def test_a_long_text_without_spaces_takes_linear_time():
    assert not count_placeholders("a" * 200_000)  # it took a minute
    assert list(count_placeholders("长" * 100 + " me@a.org")) == ["me@a.org"]
