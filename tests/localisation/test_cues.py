"""Subtitles through a translator: what is asked for, what is in the file afterwards, and what is listed."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.formats import read, splice
from lengthwise.formats.check import Checker
from lengthwise.formats.rules import Rule
from lengthwise.formats.subtitles import PRESETS, Style
from lengthwise.length.budget import Budget
from lengthwise.localisation.cues import REPEATED, plan_cues
from lengthwise.localisation.files import shorten_file, translate_file
from lengthwise.localisation.plan import Answer, Plan, Task
from lengthwise.translation.records import NO_FIT

NETFLIX = PRESETS["netflix"]


def cue(number, start, seconds, text):
    times = [f"00:00:{second:06.3f}".replace(".", ",") for second in (start, start + seconds)]
    return f"{number}\n{times[0]} --> {times[1]}\n{text}\n\n"


def srt(*texts, seconds=2.0):
    return "".join(cue(n, 1 + (n - 1) * (seconds + 0.1), seconds, text) for n, text in enumerate(texts, 1)).encode()


def run(file, answers, task):
    """Answer the requests of a file, and return the outcome and the requests. `answers`: texts, or functions."""
    step, asked, known = plan_cues(file, task), [], {}
    while isinstance(step, Plan):
        for request in step.requests:
            found = answers.get(request.text, request.text) if isinstance(answers, dict) else answers(request)
            known[request] = found if isinstance(found, Answer) else Answer(found)
            asked.append((request.text, str(request.budget or "")))
        step = step.finish(known)
    return step, asked


def translated(data, answers, style=None, name="film.srt", **task):
    """Return the texts of the cues after a translation."""
    file = read(name, data=data)
    outcome, _ = run(file, answers, Task("it", style=style, **task))
    return [entry.text for entry in read(name, data=splice(file, outcome.texts)).entries]


def test_a_sentence_is_asked_for_whole_and_shared_out_again():
    file = read("film.srt", data=srt("I was going to tell you", "the truth about it.", "Yes."))
    answers = {"I was going to tell you the truth about it.": "Stavo per dirti la verità su tutto.", "Yes.": "Sì."}
    outcome, asked = run(file, answers, Task("it", style=NETFLIX))
    assert asked == [("I was going to tell you the truth about it.", "at most 63 chars"), ("Yes.", "at most 34 chars")]
    assert list(outcome.texts.values()) == ["Stavo per dirti la verità", "su tutto.", "Sì."]
    assert not outcome.misfits
    assert [row.source for row in outcome.rows] == ["I was going to tell you", "the truth about it.", "Yes."]


@pytest.mark.parametrize(
    ("source", "answers", "text"),
    [
        ("- Hello.\n- Hi.", {"Hello.": "Ciao.", "Hi.": "Salve."}, "- Ciao.\n- Salve."),
        ("[DOOR SLAMS]", {"DOOR SLAMS": "SBATTE LA PORTA"}, "[SBATTE LA PORTA]"),
        ("JOHN: (sighs) No.", {"sighs": "sospira", "No.": "Mai."}, "JOHN: (sospira) Mai."),
        ("♪ Happy day ♪", {"Happy day": "Lieto giorno"}, "♪ Lieto giorno ♪"),
        ("♪", {}, "♪"),
        ("{\\an8}<i>Hello you</i>", {"Hello you": "Ciao a te"}, "{\\an8}<i>Ciao a te</i>"),
        ("<i>Hello</i>\n<i>you</i>", {"Hello you": "Ciao a te"}, "<i>Ciao a te</i>"),
        ("<i>- Hello.\n- Hi.</i>", {"Hello.": "Ciao.", "Hi.": "Salve."}, "<i>- Ciao.\n- Salve.</i>"),
        ("I <b>love</b> you.", {"I love you.": "Ti amo.", "love": "amore"}, "Ti <b>amo</b>."),
        ("I <b>love</b> you.", {"I love you.": "Ti adoro."}, "<b>Ti adoro.</b>"),
        ("<i>[sighs] I</i> know.", {"sighs": "ah", "I know.": "Io so.", "I": "io"}, "<i>[ah] </i><i>Io</i> so."),
    ],
)
def test_what_stays_in_a_cue(source, answers, text):
    assert translated(srt(source), answers) == [text]


def test_tags_of_webvtt():
    vtt = "WEBVTT\n\n00:01.000 --> 00:04.000 line:0\n<v Ann>Hi, <c.red>you</c> &amp; me\n<v Bob>Bye.\n"
    answers = {"Hi, you & me": "Ciao, te & me <3", "you": "te", "Bye.": "Addio."}
    file = read("a.vtt", data=vtt.encode())
    outcome, _ = run(file, answers, Task("it"))
    new = vtt.replace("Hi, <c.red>you</c> &amp; me", "Ciao, <c.red>te</c> &amp; me &lt;3").replace("Bye", "Addio")
    assert splice(file, outcome.texts).decode() == new


def test_tags_of_ass():
    line = "Dialogue: 0:00:01.00,0:00:04.00,A,{\\fad(1,2)}{\\i1}It{\\i0} is long enough\\Nfor two lines, I think."
    data = ("[Events]\nFormat: Start, End, Style, Text\n" + line + "\n").encode()
    answers = {"It is long enough for two lines, I think.": "Essa dura abbastanza per due righe, lo sai.", "It": "Essa"}
    file = read("a.ass", data=data)
    outcome, _ = run(file, answers, Task("it", style=NETFLIX))
    text = b"{\\fad(1,2)}{\\i1}Essa{\\i0} dura abbastanza\\Nper due righe, lo sai."
    assert splice(file, outcome.texts) == data.replace(line.encode().partition(b",A,")[2], text)


def test_hard_spaces_at_the_ends_of_a_line_of_ass_stay():
    data = b"[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:04.00,\\h\\hGo on.\\h\\h\\h\n"
    file = read("a.ass", data=data)
    outcome, _ = run(file, {"Go on.": "Continua."}, Task("it"))
    assert splice(file, outcome.texts) == data.replace(b"Go on.", b"Continua.")


def test_a_tag_over_the_border_of_cues_is_closed_and_opened_again():
    answers = {"We saw the big ship go down.": "Vedemmo affondare la grande nave.", "the big ship": "la grande nave"}
    assert translated(srt("We saw <i>the big ship</i>", "go down."), answers) == [
        "Vedemmo affondare",
        "<i>la grande nave</i>.",
    ]
    answers = {
        "We saw the big ship go down.": "La nave così grande che vedemmo",
        "the big ship": "nave così grande che",
    }
    first, second = translated(srt("We saw <i>the big ship</i>", "go down."), answers)
    assert first.endswith("</i>")
    assert second.startswith("<i>")


def test_tags_that_are_lost_or_moved_are_said():
    data = "WEBVTT\n\n00:01.000 --> 00:04.000\nI <00:02.000>sing\n\n00:05.000 --> 00:06.000\nA <b>big</b> dog.\n"
    answers = {"I sing": "Canto", "A big dog.": "Un cane enorme."}
    outcome, _ = run(read("a.vtt", data=data.encode()), answers, Task("it"))
    assert list(outcome.texts.values()) == ["Canto", "<b>Un cane enorme.</b>"]
    assert outcome.notes == [
        "the times of single words are left out in 1 cue",
        "tags inside of 1 cue have a new place; --json names them",
    ]
    assert [row.note for row in outcome.rows] == [
        "the times of single words are left out",
        "<b> is around the whole cue: its words 'big' were not found",
    ]


def test_dots_between_cues_stay():
    texts = translated(srt("I was...", "...afraid of you."), {"I was afraid of you.": "Avevo paura di te."})
    assert texts == ["Avevo...", "...paura di te."]


def test_dots_between_cues_are_left_out_where_a_sentence_ends():
    answers = {"All our work here is secret. Go now.": "È segreto il lavoro. Ora vai via."}
    texts = translated(srt("All our work here...", "...is secret. Go now."), answers)
    assert texts == ["È segreto il lavoro.", "Ora vai via."]


def test_a_cue_that_is_too_long_is_asked_for_again_with_less_room():
    def answer(request):
        return "x" * 38 + " yy zz" if request.budget.high > 40 else "uno due tre"

    file = read("film.srt", data=srt("One two three four five six seven.", seconds=3))
    outcome, asked = run(file, answer, Task("it", style=Style(17, 10, 5)))
    assert [budget for _, budget in asked] == ["at most 34 chars"]  # the room of the lines: no second request helps
    outcome, asked = run(file, answer, Task("it", style=Style(17, 25, 2)))
    assert len(asked) == 2
    assert not outcome.misfits
    assert list(outcome.texts.values()) == ["uno due tre"]


def test_what_does_not_fit_is_listed_with_its_shortest_text():
    file = read("film.srt", data=srt("Hello there."))
    outcome, _ = run(file, {"Hello there.": "Buongiorno a tutti quanti voi."}, Task("it", style=Style(10, 42, 2)))
    [row] = outcome.misfits
    assert (row.text, row.fits, row.note) == ("Buongiorno a tutti quanti voi.", False, "30 chars, at most 20")
    assert list(outcome.texts.values()) == ["Buongiorno a tutti quanti voi."]


def test_a_cue_that_fits_is_not_said_to_have_no_translation_that_fits():
    """The request had less room than the cues: some characters are reserved for the border between them."""
    file = read("film.srt", data=srt("A long", "time ago."))
    misfit = Answer("Molto tempo fa.", note=f"{NO_FIT}; left out: long")
    outcome, _ = run(file, {"A long time ago.": misfit}, Task("it", style=Style(5, 42, 2)))
    assert [(row.fits, row.note) for row in outcome.rows] == [(True, "left out: long")] * 2
    outcome, _ = run(file, {"A long time ago.": misfit}, Task("it", style=Style(1, 42, 2)))
    assert [(row.fits, NO_FIT in row.note) for row in outcome.rows] == [(False, True)] * 2


def test_an_error_leaves_the_cue_as_it_is():
    file = read("film.srt", data=srt("Hello.", "Bye."))
    outcome, _ = run(file, {"Hello.": Answer("", error="too long"), "Bye.": "Addio."}, Task("it"))
    assert list(outcome.texts.values()) == ["Addio."]
    assert [(row.id, row.note) for row in outcome.misfits] == [("1", "too long")]
    outcome, _ = run(file, {"Hello.": " ", "Bye.": "Addio."}, Task("it"))
    assert [(row.id, row.note) for row in outcome.misfits] == [("1", "the answer is empty")]


def test_a_text_of_fewer_words_than_cues_is_repeated_with_a_note():
    file = read("film.srt", data=srt("I was going to", "go away.", "Yes, now."))
    outcome, _ = run(file, {"I was going to go away.": "Andavo.", "Yes, now.": "Sì, ora."}, Task("it"))
    assert list(outcome.texts.values()) == ["Andavo.", "Andavo.", "Sì, ora."]
    assert [row.note for row in outcome.rows] == [REPEATED, REPEATED, None]
    assert outcome.notes == ["texts with fewer words than cues: 1; --json names them"]


def test_a_text_that_lost_a_placeholder_is_not_written():
    file = read("film.srt", data=srt("Hello, {name}.", "It costs $5."))
    answers = {"Hello, {name}.": "Ciao.", "It costs $5.": "Costa 5 dollari."}
    outcome, _ = run(file, answers, Task("it"))
    assert list(outcome.texts.values()) == ["Costa 5 dollari."]
    assert [(row.id, row.note) for row in outcome.misfits] == [
        ("1", "placeholders were lost, doubled or misplaced: {name}")
    ]


def rule_of(length):
    return Rule(Budget.parse(length), f"length = {length}")


@pytest.mark.parametrize("how", ["length", "rules"])
@pytest.mark.parametrize(
    ("length", "style", "budget", "note"),
    [
        ("at most 10 chars", None, "at most 10 chars", "22 chars, at most 10"),
        ("at most 60 chars", NETFLIX, "at most 34 chars", None),
        ("at most 20 chars", NETFLIX, "at most 20 chars", "22 chars, at most 20"),
        ("30-40 chars", None, "30-40 chars", "22 chars, at least 30"),
        ("at most 2 words", NETFLIX, "at most 2 words", "4 words, at most 2"),
        ("at most 99 words", NETFLIX, "at most 34 chars", None),
        ("at most 0.55x", None, "at most 7 chars", "22 chars, at most 7"),
    ],
)
def test_lengths_of_the_user_are_limits_beside_the_style(how, length, style, budget, note):
    file = read("film.srt", data=srt("Hello my you."))
    rule = rule_of(length)
    given = {"length": rule} if how == "length" else {"rules": [rule]}
    outcome, asked = run(file, {"Hello my you.": "Buongiorno a voi tutti"}, Task("it", style=style, **given))
    assert asked[0] == ("Hello my you.", budget)
    assert [row.note for row in outcome.rows] == [note]
    assert [row.fits for row in outcome.rows] == [note is None]


def test_a_length_is_for_each_cue_of_a_sentence():
    file = read("film.srt", data=srt("I was going to tell you", "the truth about it."))
    outcome, asked = run(file, lambda _: "Stavo per dirti la verità.", Task("it", length=rule_of("at most 16 chars")))
    assert asked[0][1] == "at most 27 chars"  # 2 × 16, less 5 at the border
    assert list(outcome.texts.values()) == ["Stavo per dirti", "la verità."]
    assert not outcome.misfits


def test_rules_apply_only_to_the_cues_that_they_match():
    rule = Rule(Budget.parse("at most 5 chars"), "", files="*.srt", keys="2")
    file = read("film.srt", data=srt("Hello you.", "Hello me.", "Hello all."))
    outcome, asked = run(file, {}, Task(None, rules=[rule]))
    assert asked == [("Hello me.", "at most 5 chars")]
    assert [row.id for row in outcome.misfits] == ["2"]


def test_shorten_leaves_cues_that_are_within_the_length():
    data = srt("Two lines\nof text.", "This one is rather long.")
    file = read("film.srt", data=data)
    answers = {"This one is rather long.": "This is long."}
    outcome, asked = run(file, answers, Task(None, length=rule_of("at most 20 chars")))
    assert [text for text, _ in asked] == ["This one is rather long."]
    assert splice(file, outcome.texts) == data.replace(b"This one is rather long.", b"This is long.")


def test_shorten_leaves_cues_that_are_too_short():
    file = read("film.srt", data=srt("Hello."))
    assert run(file, {}, Task(None, length=rule_of("10-20 chars")))[1] == []


def test_a_cue_whose_words_stay_keeps_its_bytes():
    data = srt("Yes,\nNetflix.", "&nbsp;  OK", "<i>One</i>\n<i>two</i>")
    file = read("film.srt", data=data)
    outcome, _ = run(file, {}, Task("it", style=NETFLIX))
    assert splice(file, outcome.texts) == data
    assert not outcome.misfits


def test_lines_that_are_too_long_are_broken_without_a_request():
    file = read("film.srt", data=srt("This line is rather long."))
    outcome, asked = run(file, {}, Task(None, style=Style(line=20)))
    assert not asked
    assert list(outcome.texts.values()) == ["This line\nis rather long."]


def test_a_length_relative_to_the_source_may_have_a_minimum():
    rule = Rule(Budget.parse("at most 1.5x"), "--length")
    file = read("film.srt", data=srt("Hello."))
    assert run(file, {}, Task("it", length=rule))[1] == [("Hello.", "at most 9 chars")]
    assert run(file, {}, Task("it", length=replace(rule, min_limit=12)))[1] == [("Hello.", "at most 12 chars")]


def test_shorten_takes_only_what_is_too_long(tmp_path):
    source = srt("This is much too long for so little time.", "Short.", seconds=2)
    (tmp_path / "a.srt").write_bytes(source)
    calls = []

    def shorten(texts, budgets, **_):
        calls.append(list(zip(texts, map(str, budgets), strict=True)))
        note = "left out: much"
        return [SimpleNamespace(text="This is too long.", complete=True, note=note, error=None) for _ in texts]

    model = SimpleNamespace(name="fake")
    shortener = SimpleNamespace(shorten=shorten, model=model, writer=model, at_once=lambda limited: 8)
    done = shorten_file(tmp_path / "a.srt", tmp_path / "b.srt", shortener, Task(None, style=NETFLIX))
    assert calls == [[("This is much too long for so little time.", "at most 34 chars")]]
    assert [row.note for row in done.outcome.rows] == ["left out: much"]
    assert (tmp_path / "b.srt").read_bytes() == srt("This is too long.", "Short.", seconds=2)


def test_a_file_is_written_with_nothing_else_changed(tmp_path):
    data = b"\xef\xbb\xbf" + srt("Hello.", "<i>Bye</i>.").replace(b"\n", b"\r\n")
    (tmp_path / "a.srt").write_bytes(data)
    answers = {"Hello.": "Ciao.", "Bye.": "Addio.", "Bye": "Addio"}

    def translate(texts, budgets):
        return [SimpleNamespace(text=answers[text], complete=True, note=None, error=None) for text in texts]

    translator = SimpleNamespace(translate=translate, settings={}, at_once=lambda limited: 8)
    translate_file(tmp_path / "a.srt", tmp_path / "b.srt", translator, Task("it"))
    assert (tmp_path / "b.srt").read_bytes() == data.replace(b"Hello", b"Ciao").replace(b"Bye", b"Addio")


WORDS = st.lists(
    st.sampled_from(["la", "casa", "di", "un", "uomo,", "e", "poi.", "via", "lontano"]), min_size=1, max_size=25
).map(" ".join)
TEXTS = st.lists(
    st.sampled_from(
        [
            "I went",
            "home again",
            "Yes.",
            "- Who?\n- Me.",
            "<i>All of it</i>",
            "A <b>big</b> dog",
            "{\\an8}[LAUGHS] No",
            "♪ la ♪",
        ]
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=40)
@given(TEXTS, st.data())
def test_whatever_is_answered_the_cues_are_whole(texts, data):
    file = read("film.srt", data=srt(*texts))
    style = data.draw(st.sampled_from([None, NETFLIX, Style(17, 20, 2)]))

    def answer(request):
        return data.draw(WORDS)

    outcome, _ = run(file, answer, Task("it", style=style))
    after = read("film.srt", data=splice(file, outcome.texts))
    found = [row.id for row in outcome.misfits]
    checker = Checker(style=style)
    assert {one.id for one in checker.check(after)} == set(found)  # what `check` finds is what was listed
    for before, entry in zip(file.entries, after.entries, strict=True):
        assert entry.shown.strip()
        for tag in ("<i>", "<b>", "{\\an8}", "[", "♪"):
            assert entry.text.count(tag) >= (before.text.count(tag) if tag != "<b>" else 0)
        assert entry.text.count("<b>") == entry.text.count("</b>")
        assert entry.text.count("- ") == before.text.count("- ")
    assert "".join(e.text for e in after.entries).count("<b>") >= "".join(e.text for e in file.entries).count("<b>")


SPACES = st.sampled_from([" ", "\u00a0", "\u202f", "\u3000", "\u2009", "  ", "\n"])
PIECES = ["Hello", "there.", "my", "friend,", "-", "♪", "[SIGHS]", "JOHN:", "<i>now</i>", "東京。", "（", "...", "#"]
ESCAPED = {"film.srt": {}, "film.vtt": {"\u00a0": "&nbsp;"}, "film.ass": {"\u00a0": "\\h", "\n": "\\N"}}
HEADS = {
    "film.srt": "1\n00:00:01,000 --> 00:00:03,000\n",
    "film.vtt": "WEBVTT\n\n00:01.000 --> 00:03.000\n",
    "film.ass": "[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:03.00,",
}


def dark(text):
    return "".join(text.split()).casefold()


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize(
    "text",
    ["\u00a0Hello there.", "\u00a0\u00a0Hi.\u00a0", "♪\u3000My friend\u3000♪", "-\u3000Hi there.\n-\u3000Me."],
)
def test_unusual_spaces_cut_nothing_off(name, text):
    assert_nothing_is_lost(name, text, NETFLIX)


@settings(max_examples=150)
@given(
    st.sampled_from(sorted(HEADS)),
    st.lists(st.tuples(SPACES, st.sampled_from(PIECES)), min_size=1, max_size=12),
    st.sampled_from([None, NETFLIX, Style(17, 12, 2)]),
)
def test_no_character_is_lost(name, pieces, style):
    assert_nothing_is_lost(name, "".join(space + piece for space, piece in pieces), style)


def assert_nothing_is_lost(name, text, style):
    """The answers differ from the source only in case, so that cues are made of them."""
    text = "\n".join(line for line in text.split("\n") if line.strip())  # an empty line ends a cue
    for character, written in ESCAPED[name].items():
        text = text.replace(character, written)
    file = read(name, data=(HEADS[name] + text + "\n").encode())
    outcome, _ = run(file, lambda request: request.text.swapcase(), Task("it", style=style))
    after = read(name, data=splice(file, outcome.texts))
    assert [dark(entry.shown) for entry in after.entries] == [dark(entry.shown) for entry in file.entries]


@pytest.mark.parametrize(
    ("new", "text"),
    [
        ("Non lo so.", "MARY:\nNon lo so."),  # it fits below the label
        ("Non so che cosa tu voglia dire.", "MARY: Non so che\ncosa tu voglia dire."),
    ],
)
def test_a_label_alone_on_its_line_takes_no_line_that_the_text_needs(new, text):
    assert translated(srt("MARY:\nI do not know."), {"I do not know.": new}, Style(line=20, lines=2)) == [text]
