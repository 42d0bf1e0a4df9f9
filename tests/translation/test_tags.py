"""Tags around words: the words are translated without them, the tags are put around the same words, or it is said."""

import pytest

from lengthwise.translation.alignment import align, words_of
from lengthwise.translation.forms import forms_of
from lengthwise.translation.placeholders import changed_placeholders
from lengthwise.translation.segments import split
from lengthwise.translation.tags import misplaced_tags, read_tags
from translation.fakes import texts


@pytest.mark.parametrize(
    ("text", "bare", "tags"),
    [
        ("Click <b>here</b> now.", "Click here now.", ["<b>"]),
        ("<span><code>a/b</code> issue</span> list", "a/b issue list", ["<span>", "<code>"]),
        ("Go<br>on, {name} <img src='x'/> ok", "Go<br>on, {name} <img src='x'/> ok", []),
        ('<i class="icon"></i> Save', '<i class="icon"></i> Save', []),  # nothing to translate inside
        ("<b>!</b> Save <file>", "<b>!</b> Save <file>", []),
        ("<b>%d</b> files", "%d files", ["<b>"]),
        ("<link>Learn <b>more</link></b>", "Learn <b>more</b>", ["<link>"]),  # tags that cross
    ],
)
def test_pairs_around_words_are_taken_out(text, bare, tags):
    found = read_tags(text)
    assert (found.text, [span.before for span in found.spans]) == (bare, tags)


@pytest.mark.parametrize(
    ("source", "output", "wrong"),
    [
        ("See the <a>page</a>.", "Voir la <a>page</a>.", []),
        ("See the <a>page</a>.", "Voir la page <a></a>.", ["<a>", "</a>"]),
        ("See the <a>page</a>.", "Voir </a>la page<a>.", ["</a>", "<a>"]),
        ("<b>One</b> <i>two</i>", "<b>Un <i></b>deux</i>", ["</i>", "<i>"]),
        ("<br>One <hr/>", "<hr/>Un <br>", []),
        ("A <x/> b", "A <x/> b", []),
    ],
)
def test_misplaced_tags_are_noticed(source, output, wrong):
    assert sorted(misplaced_tags(source, output)) == sorted(wrong)
    assert sorted(changed_placeholders(source, output)) == sorted(wrong)


@pytest.mark.parametrize(
    ("source", "text", "known", "tagged"),
    [
        ("Click <b>here</b>.", "Cliquez ici.", {"here": ["là", "ici"]}, "Cliquez <b>ici</b>."),
        ("<b>Thank you!</b> Go on.", "Merci ! Continuez.", {"Thank you!": ["Merci !"]}, "<b>Merci !</b> Continuez."),
        ("Add <tt>.gz</tt> (or <tt>.xz</tt>)", "Ajouter .gz (ou .xz)", {}, "Ajouter <tt>.gz</tt> (ou <tt>.xz</tt>)"),
        ("Press <b>Ctrl</b>-<b>C</b>", "Premere Ctrl-C", {}, "Premere <b>Ctrl</b>-<b>C</b>"),
        ("The <i>user</i> is away", "L'utente è via", {"user": ["utente"]}, "L'<i>utente</i> è via"),
        ("(<a>“Not Safe”</a>)", "(“Not Safe”)", {}, "(<a>“Not Safe”</a>)"),
        ("State: <b>{state}</b>", "Stato: {state}", {}, "Stato: <b>{state}</b>"),
        (
            "Ask the <a><b>new</b> list</a>",
            "Chiedi alla lista nuova",
            {"new list": ["lista nuova"], "new": ["nuovo"]},
            "Chiedi alla <a>lista <b>nuova</b></a>",
        ),
    ],
)
def test_tags_are_put_around_the_same_words(source, text, known, tagged):
    assert forms_of(source)[0]().restore(text, known) == tagged


def test_words_that_are_not_found_have_no_place():
    styled = read_tags("<b>Group names</b> are chosen by <i>members</i>.")
    known = {"Group names": ["nomi del gruppo"], "members": ["membri"]}.get
    found = align(styled, "Scelgono i membri del gruppo.", known)
    assert [place for _, place in found] == [None, (11, 17)]  # "membri del gruppo" is no form of "nomi del gruppo"
    assert words_of("l'utente {a b}") == [(0, 1), (2, 8), (9, 14)]


def test_the_words_inside_tags_are_translated(translator):
    entries = {"Click here": "Cliquez ici", "here": "ici", "Ask %@ now": ["Demandez %", "Demandez à %"]}
    entries |= {"Ask {1} now": "Demandez {1} maintenant", "now": "maintenant"}
    lines, _ = translator(entries)
    rows = lines.translate(["Click <b>here</b>", "Ask %@ <i>now</i>"])
    assert texts(rows) == ["Cliquez <b>ici</b>", "Demandez %@ <i>maintenant</i>"]
    assert all(row.intact for row in rows)


def test_if_the_words_are_not_found_the_model_receives_the_tags(translator):
    entries = {"See the page": "Voir ceci", "page": "feuille", "See the <a1> page </a1>": "Voir la <a1> page </a1>"}
    lines, _ = translator(entries)
    [row] = lines.translate(['See the <a href="x">page</a>'])
    assert row.text == 'Voir la <a href="x">page</a>'


def test_tags_with_the_names_of_stand_ins_are_restored():
    text = "Click <a2>here</a2> and <a3>there</a3>."
    restored = {form.restore(form.text, {}) for form in (make() for make in forms_of(text)[1:])}
    assert restored == {text}


def test_tags_that_no_form_keeps_in_place_are_named(translator):
    source = "See <a>page</a>"
    forms = [form().text for form in forms_of(source)]
    lines, _ = translator({form: "Voir page <a></a>" for form in forms if form != "page"} | {"page": "feuille"})
    [row] = lines.translate([source])
    assert (row.intact, row.note) == (False, "not as in the source: <a>, </a>")


def test_a_budget_is_for_the_text_with_its_tags(translator):
    lines, book = translator({"Click here now": "Cliquez donc ici maintenant", "here": "ici"})
    lines.translate(["Click <b>here</b> now"], "at most 21 chars")
    assert [("Click here now", "at most 14 chars")] in book.bound_calls


@pytest.mark.parametrize(
    ("line", "sentences"),
    [
        ("<b>Thank you!</b> It is late.", ["Thank you!", "It is late."]),
        ("Go on. <u>Needs an account.</u>", ["Go on.", "Needs an account."]),
        ("<b>One. Two.</b> Three.", ["One.", "Two.", "Three."]),
        ("<b>One<br>two</b>", ["One", "two"]),
        ("Data:<ul><li>One</li><li>Two <i>three</i></li></ul>", ["Data:", "One", "Two <i>three</i>"]),
        ('<html><head/><body><p class="x">One</p></body></html>', ["One"]),
        ("<file> could not be opened", ["<file> could not be opened"]),
        ("<p>%1</p><ul>%2</ul>", []),
    ],
)
def test_tags_at_the_ends_of_sentences_stay_there(line, sentences):
    segments = split(line)
    assert "".join(segment.text for segment in segments) == line
    assert [segment.text for segment in segments if segment.is_sentence] == sentences
