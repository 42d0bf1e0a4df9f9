"""Translating lines: what goes in comes out in its place, within its length and with its placeholders.

The models here translate by a dictionary, or write nonsense (a tiny random Marian) where only lengths matter.
"""

import json
import os
import re
import tempfile
from types import SimpleNamespace

import numpy as np
import pytest

from families import tiny
from lengthwise import Budget, Writer, measure
from lengthwise.cli import main
from lengthwise.cli.translate import AT_A_TIME, NAMED
from lengthwise.controls import CountdownHead, EncodingControl
from lengthwise.controls.attach import attach
from lengthwise.generation.generator import Written
from lengthwise.models import checkpoint
from lengthwise.scoring.noisy_channel import OWN, Channel, forward
from lengthwise.scoring.reverse import ReverseModel
from lengthwise.translation import Translator
from lengthwise.translation.casing import to_sentence_case
from lengthwise.translation.hypotheses import Hypotheses
from lengthwise.translation.languages import prepare
from lengthwise.translation.placeholders import STAND_INS, kept, lost, masked, translatable, unmasked
from lengthwise.translation.segments import parts_of

FIELDS = ["text", "length", "unit", "budget", "fits", "complete", "model", "tokens", "candidates", "source", "intact"]


def fake_writer(name="fake", **told):
    """What a translator asks of a writer before it searches."""
    config = SimpleNamespace(is_encoder_decoder=True, _name_or_path="", **told.pop("config", {}))
    tokenizer = SimpleNamespace(**{"added_tokens_encoder": {}, **told})
    device, generation = SimpleNamespace(type="cuda"), SimpleNamespace(forced_bos_token_id=None)
    model = SimpleNamespace(config=config, device=device, generation_config=generation)
    return SimpleNamespace(
        name=name, model=model, tokenizer=tokenizer, steered=False, takes_limits_in=lambda unit: False
    )


class Dictionary:
    """In the place of the beam search: knows its translations, best first, and says SENTENCE where it knows none.

    Within a budget it offers what it knows, longest first, or as many letters as it may write.
    """

    told = False

    def __init__(self, entries):
        self.entries, self.free_calls, self.bound_calls = entries, [], []

    def first(self, texts):
        return [written("") for _ in texts]  # nothing comes of half a sentence here

    def free(self, texts):
        self.free_calls.append(list(texts))
        return [[written(text) for text in self.known(text)] for text in texts]

    def bound(self, texts, budgets):
        self.bound_calls.append([(text, str(budget)) for text, budget in zip(texts, budgets, strict=True)])
        return [[self.cut(text, budget)] for text, budget in zip(texts, budgets, strict=True)]

    def cut(self, text, budget):
        found = [one for one in self.known(text) if budget.fits(measure(one, budget.unit))]
        return written(found[0] if found else "z" * int(budget.target), complete=bool(found))

    def known(self, text):
        found = self.entries.get(text, text.upper())
        if isinstance(found, KeyboardInterrupt):
            raise found
        return [found] if isinstance(found, str) else found


def written(text, complete=True):
    error = "the text is too long for the model" if text == "TOO LONG" else None
    text = "" if error else text
    return Written(text, len(text), "chars", "", not error, complete, "fake", len(text.split()), error=error)


@pytest.fixture
def translator(monkeypatch):
    """Makes a translator that knows these words, and gives the dictionary with it."""

    def make(entries=(), forward=None, **options):
        book = Dictionary(dict(entries))
        monkeypatch.setattr("lengthwise.translation.translator.Hypotheses", lambda writer, beams: book)
        monkeypatch.setattr("lengthwise.translation.translator.forward", lambda writer, prefix: forward)
        return Translator(fake_writer(source_lang="en", target_lang="fr"), **options), book

    return make


def texts(rows):
    return [row.text for row in rows]


# ---- parts


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \t ", []),
        ("  One. Two!  Three ", ["One.", "Two!", "Three"]),
        ("See Dr. Who. Then go.", ["See Dr. Who.", "Then go."]),
        (r"First line\nSecond line", ["First line", "Second line"]),
        ("One<br/>Two\nThree", ["One", "Two", "Three"]),
        ("<b><i>Note</i></b>", ["Note"]),
        ("<b>Note</b> and <b>more</b>", ["<b>Note</b> and <b>more</b>"]),
        (r"Open C:\new\table now.", [r"Open C:\new\table now."]),
        ("42", []),
        ("Go. 42. https://a.org", ["Go."]),
        ("吾輩は猫である。名前はまだ無い。", ["吾輩は猫である。", "名前はまだ無い。"]),
    ],
)
def test_a_line_falls_into_sentences_and_nothing_is_lost(text, sentences):
    parts = parts_of(text)
    assert "".join(part.text for part in parts) == text
    assert [part.text for part in parts if part.sentence] == sentences


# ---- placeholders


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("%s of %1$d, %-5.2f and %ld", ["%s", "%1$d", "%-5.2f", "%ld"]),
        ("%(host)s %1 %NAME% %PRODUCTNAME %d%%", ["%(host)s", "%1", "%NAME%", "%PRODUCTNAME", "%d", "%%"]),
        ("{name} {0} ${x} {{y}} #{z} {n, plural, one {# file} other {# files}}",
         ["{name}", "{0}", "${x}", "{{y}}", "#{z}", "{n, plural, one {# file} other {# files}}"]),
        ("$name$ $(ARG1) $[office] $1 $HOME", ["$name$", "$(ARG1)", "$[office]", "$1", "$HOME"]),
        ('Go <a href="x">there</a> &amp; <br/>\\n', ['<a href="x">', "</a>", "&amp;", "<br/>", "\\n"]),
        ("See https://a.org/b?c=d. Or write to me@a.org.", ["https://a.org/b?c=d", "me@a.org"]),
        ("100% done, 50% of it, 5 % discount, 0% is little", []),
        ("$5.20 and $12, 3 < 4 > 2, AT&T; F<=f", []),
    ],
)  # fmt: skip
def test_what_must_come_through(text, found):
    assert list(kept(text)) == found


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
    ],
)
def test_what_did_not_come_through(source, output, missing):
    assert lost(source, output) == missing


@pytest.mark.parametrize("form", STAND_INS)
def test_stand_ins_come_off_again(form):
    text = " ".join(f"{{n{i}}}" for i in range(12)) + " %s."
    hidden, stands = masked(text, form)
    assert len(stands) == 13
    assert "n1" not in hidden
    assert unmasked(hidden, stands) == text


@pytest.mark.parametrize(("text", "yes"), [("Go", True), ("{name}: %s", False), ("12 → 3", False), ("é", True)])
def test_what_there_is_to_translate(text, yes):
    assert translatable(text) is yes


# ---- lines, with a dictionary


def test_every_line_in_its_place(translator):
    lines, book = translator({"Yes.": "Oui.", "No.": "Non."})
    source = ["Yes.", "", "  No. Yes.\t", "   ", "12,5", "https://a.org", "No.", "{x}"]
    rows = lines.translate(source)
    assert texts(rows) == ["Oui.", "", "  Non. Oui.\t", "   ", "12,5", "https://a.org", "Non.", "{x}"]
    assert [row.source for row in rows] == source
    assert all(row.fits and row.complete and row.intact and row.note is None for row in rows)
    assert book.free_calls == [["Yes.", "No."]]  # each once
    assert book.bound_calls == []


def test_what_fits_as_it_is_stays_so(translator):
    lines, book = translator({"Cancel": ["Annuler", "Stop"]})
    [row] = lines.translate(["Cancel"], "at most 7 chars")
    assert (row.text, row.length, row.budget, row.fits) == ("Annuler", 7, "at most 7 chars", True)
    [row] = lines.translate(["Cancel"], "at most 6 chars")
    assert (row.text, book.bound_calls) == ("Stop", [])  # another of the search's own fits
    [row] = lines.translate(["Cancel"], "at most 3 chars")
    assert (row.text, row.fits, row.complete) == ("zzz", True, False)
    assert book.bound_calls == [[("Cancel", "at most 3 chars")]]


def test_sentences_share_the_room_and_pass_on_what_they_save(translator):
    # 10 characters each; "Aaaaaaaaa." needs 4, so that of 24 (two for the spaces) the others have 18, 9 each
    entries = {"Aaaaaaaaa.": "A aa", "Bbbbbbbbb.": "B" * 20, "Ccccccccc.": ["C" * 20, "C" * 10]}
    lines, book = translator(entries)
    [row] = lines.translate(["Aaaaaaaaa. Bbbbbbbbb. Ccccccccc."], "at most 24 chars")
    assert row.text == "A aa " + "z" * 9 + " " + "z" * 9
    assert [call[0][1] for call in book.bound_calls] == ["at most 9 chars", "at most 9 chars"]
    # and if the second one takes less than it may, the third one has more
    book.entries["Bbbbbbbbb."] = ["B" * 20, "B" * 8]
    [row] = lines.translate(["Aaaaaaaaa. Bbbbbbbbb. Ccccccccc."], "at most 24 chars")
    assert row.text == "A aa " + "B" * 8 + " " + "C" * 10
    assert (row.length, row.fits) == (24, True)


def test_the_last_sentence_keeps_both_limits(translator):
    lines, _ = translator({"Aaaa.": ["A" * 9, "A"], "Bbbb.": ["B" * 9, "B"]})
    [row] = lines.translate(["Aaaa. Bbbb."], "10-12 chars")
    assert (row.text[:2], row.fits) == ("A ", True)  # what it saved, and had to be filled, the second one took


def test_a_line_that_is_too_short_is_searched_again(translator):
    lines, book = translator({"Aaaa.": "A", "Bbbb.": "BBBB"})
    [row] = lines.translate(["Aaaa. Bbbb."], "at least 10 chars")
    assert (row.text, row.fits) == ("zzzzz BBBB", True)
    assert book.bound_calls == [[("Aaaa.", "at least 5 chars")]]


@pytest.mark.parametrize(
    "budget", ["at most 11 chars", Budget.parse("at most 11 chars"), "at most 1.0x", "at most 2 words"]
)
def test_budgets_for_all(translator, budget):
    lines, _ = translator()
    assert texts(lines.translate(["Go away now"], budget))[0] == ("zz" if "words" in str(budget) else "GO AWAY NOW")


def test_a_ratio_leaves_as_much_room_as_is_asked_for(translator):
    entries = {"Exit": "Quitter", "Data": "Informations"}
    lines, _ = translator(entries, room=8)
    assert texts(lines.translate(["Exit", "Data"], "1.0x")) == ["Quitter", "z" * 8]
    assert texts(lines.translate(["Exit"], "at most 4 chars")) == ["zzzz"]  # who counts means it


def test_a_hypothesis_that_keeps_the_placeholders_is_preferred(translator):
    lines, book = translator({"Hi {name}": ["Salut {nom}", "Salut {name}"], "5 dogs": ["cinq chiens", "5 chiens"]})
    assert texts(lines.translate(["Hi {name}", "5 dogs"])) == ["Salut {name}", "5 chiens"]
    assert len(book.free_calls) == 1


def test_the_source_itself_is_no_way_out(translator):
    lines, _ = translator({"Exit": ["Quitter", "Exit"], "Paris": ["Paris", "Lutèce"]})
    rows = lines.translate(["Exit", "Paris"], "at most 5 chars")
    assert [(row.text, row.complete) for row in rows] == [("Exit", False), ("Paris", True)]


def test_torn_character_references_are_mended(translator):
    lines, _ = translator({"Name:": "Nom & #160;:", "A & b;": "A & b ;"})
    assert texts(lines.translate(["Name:", "A & b;"])) == ["Nom\u00a0:", "A & b ;"]


def test_else_a_stand_in_brings_them_through(translator):
    lines, book = translator({"Hi {name}": "Salut", "Hi {1}": "Salut", "Hi <1>": "Salut <1>"})
    [row] = lines.translate(["Hi {name}"])
    assert (row.text, row.intact) == ("Salut {name}", True)
    # within a budget, room is kept for what it stands for
    lines, book = translator({"Hi {name}": "Salut toi", "Hi {1}": "Salut toi {1}"})
    lines.translate(["Hi {name}"], "at most 9 chars")
    assert [("Hi {1}", "at most 6 chars")] in book.bound_calls
    lines, book = translator({"Hi {name}": "Salut toi", "Hi {1}": ["Salut toi {1}", "Hé {1}"]})
    [row] = lines.translate(["Hi {name}"], "at most 9 chars")
    assert (row.text, row.fits, row.intact) == ("Hé {name}", True, True)


def test_else_the_row_says_what_was_lost(translator):
    lines, _ = translator(dict.fromkeys(("Hi {name}", "Hi {1}", "Hi <1>", "Hi X1"), "Salut"))
    [row] = lines.translate(["Hi {name}"])
    assert (row.text, row.intact, row.fits) == ("Salut", False, True)
    assert row.note == "not as in the source: {name}"
    assert row.as_json()["note"] == row.note


def test_what_cannot_be_translated_costs_its_row_only(translator):
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
        "there is nothing to translate in it; it is copied",
    )
    with pytest.raises(ValueError, match="got 1 for 2 lines"):
        lines.translate(["a", "b"], ["1.0x"])


def test_candidates_are_told_where_asked_for(translator):
    entries = {"Cancel": ["Annuler", "Annulation", "Stop"]}
    lines, _ = translator(entries)
    assert lines.translate(["Cancel"])[0].candidates == []
    lines, _ = translator(entries, candidates=3)
    [row] = lines.translate([" Cancel"], "at most 7 chars")
    assert [(one.text, one.fits) for one in row.candidates] == [(" Stop", True), (" Annulation", False)]


def test_no_candidate_is_told_that_loses_what_the_translation_keeps(translator):
    lines, _ = translator({"See {name}": ["Voir {name}", "Voir {nom}", "Vois {name}"]}, candidates=3)
    [row] = lines.translate(["See {name}"])
    assert (row.text, row.intact) == ("Voir {name}", True)
    assert [one.text for one in row.candidates] == ["Vois {name}"]


def test_a_model_that_is_told_its_length_is_not_asked_before(translator):
    lines, book = translator({"Go.": "Va."})
    book.told = True
    assert texts(lines.translate(["Go.", "Go."], ["at most 9 chars", None])) == ["Va.", "Va."]
    assert (book.free_calls, book.bound_calls) == ([["Go."]], [[("Go.", "at most 9 chars")]])


# ---- capitals


@pytest.mark.parametrize(
    ("text", "read"),
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
def test_what_is_shouted_is_read_in_small_letters(text, read):
    assert to_sentence_case(text) == read


def test_what_is_shouted_comes_back_in_capitals_and_as_long(translator):
    lines, _ = translator({"Open {name}!": "Öffne {name}, groß!", "Open.": "Öffne."})
    assert texts(lines.translate(["OPEN {name}!", "Open."])) == ["ÖFFNE {name}, GROß!", "Öffne."]
    assert texts(lines.translate(["OPEN {name}!"], "at most 19 chars")) == ["ÖFFNE {name}, GROß!"]


# ---- a real search


@pytest.fixture(scope="module")
def marian(sp_unigram):
    return Writer(tiny("marian", sp_unigram), sp_unigram, name="tiny-en-fr")


@pytest.mark.parametrize(
    "budget", ["at most 30 chars", "at most 6 words", "at most 40 bytes", "at most 12 tokens", "1.0x"]
)
def test_several_sentences_fit_together(marian, budget):
    source = ["It was a bright cold day. The clocks were striking! Text that fits?", "A button", " The dog. "]
    for row in Translator(marian, beams=1).translate(source, budget):
        assert row.fits
        assert row.unit == "tokens" or row.length == measure(row.text, row.unit)
        assert row.text[0].isspace() == row.source[0].isspace()


def test_a_sentence_that_the_model_cannot_read(marian):
    rows = Translator(marian, beams=2).translate(["A dog " * 100, "A dog"])
    assert re.match("the text is too long for the model: .* it reads 128", rows[0].error)
    assert rows[1].error is None
    assert rows[1].budget == ""


# ---- languages


CODES = {"lang_code_to_id": {"en_XX": 7, "fr_XX": 8, "it_IT": 9}}
NLLB = {"added_tokens_encoder": {"eng_Latn": 7, "fra_Latn": 8, "<pad>": 1}}
T5 = {"config": {"task_specific_params": {"translation_en_to_fr": {"prefix": "translate English to French: "}}}}


@pytest.mark.parametrize(
    ("writer", "prefix", "note"),
    [
        (fake_writer("here/opus-mt-en-fr"), "", None),
        (fake_writer(source_lang="en", target_lang="fr"), "", None),
        (fake_writer(**CODES), "", None),
        (fake_writer(**NLLB), "", None),
        (fake_writer(**T5), "translate English to French: ", None),
        (fake_writer(supported_language_codes=[">>fr<<", ">>it<<"]), ">>fr<< ", None),
        (fake_writer("my-model"), "", "my-model does not say what it translates; it is taken to go from en to fr"),
    ],
)
def test_models_that_will_do(writer, prefix, note):
    assert prepare(writer, "en", "fr") == (prefix, note)
    codes = getattr(writer.tokenizer, "lang_code_to_id", writer.tokenizer.added_tokens_encoder)
    assert writer.model.generation_config.forced_bos_token_id == (8 if codes else None)
    assert not codes or writer.tokenizer.src_lang in ("en_XX", "eng_Latn")
    assert not codes or writer.tokenizer.tgt_lang in ("fr_XX", "fra_Latn")  # in which a reverse model spells a source


@pytest.mark.parametrize(
    ("writer", "says"),
    [
        (fake_writer("opus-mt-en-de"), "opus-mt-en-de translates from en to de; asked for was from en to fr"),
        (fake_writer(source_lang="fr", target_lang="en"), "fake translates from fr to en"),
        (fake_writer(added_tokens_encoder={"eng_Latn": 1}), "does not know the language 'fr'; it knows eng_Latn"),
        (fake_writer(supported_language_codes=[">>it<<"]), "does not translate to fr; it knows >>it<<"),
    ],
)
def test_models_that_will_not(writer, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        prepare(writer, "en", "fr")


def test_a_model_that_answers_is_no_translator(byte_bpe):
    with pytest.raises(ValueError, match="answers prompts and is no translator"):
        Translator(Writer(tiny("llama", byte_bpe), byte_bpe))


# ---- the command


@pytest.fixture
def cli(capfd):
    def run(*args, stdin=b""):
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            before = os.dup(0)
            os.dup2(file.fileno(), 0)
            try:
                code = main(["translate", *args])
            finally:
                os.dup2(before, 0)
                os.close(before)
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def book(monkeypatch):
    """Puts a dictionary in the place of the model."""

    def put(entries=(), **told):
        found = Dictionary(dict(entries))
        writer = fake_writer(**{"source_lang": "en", "target_lang": "fr", **told})
        monkeypatch.setattr("lengthwise.models.registry.resolve", lambda name: name)
        monkeypatch.setattr(checkpoint, "load", lambda name, device, fitted: writer)
        monkeypatch.setattr("lengthwise.translation.translator.Hypotheses", lambda writer, beams: found)
        return found

    return put


TO = ["--to", "fr", "--model", "x"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["Go."], "--to fr"),
        ([" ", *TO], "the text is empty"),
        (["Go.", "--to", "de"], "--model Helsinki-NLP/opus-mt-en-de, or the folder of a model"),
        (["Go.", "--to", "italian"], "languages are named by their codes, such as fr, it or de; got 'italian'"),
        (["nosuch.tsv", *TO], "there is no file 'nosuch.tsv' here"),
        (["Go.", *TO, "--length", "short"], "cannot read 'short' as a budget"),
        (["Go.", *TO, "--length", "42"], "'42' names no unit; write 'at most 42 chars', or give --unit chars"),
        (["Go.", *TO, "--unit", "ells"], "unknown unit 'ells'"),
        (["Go.", "--to", "de", "--model", "x"], "fake translates from en to fr; asked for was from en to de"),
        (["Go.", "--to", "fr", "--model", "./nowhere"], "no model at './nowhere'"),
    ],
)
def test_bad_usage_is_one_line_and_code_2(cli, book, monkeypatch, args, says):
    if "./nowhere" not in args:
        book()
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: .+\n", err)
    assert says in err


@pytest.mark.parametrize(
    ("args", "code", "out", "err"),
    [
        ([], 0, "Va-t'en.\n", ""),
        (["--length", "at most 8 chars"], 0, "Va-t'en.\n", ""),
        (["--length", "8", "--unit", "chars"], 0, "Va-t'en.\n", ""),
        (["--length", "at most 3 chars"], 0, "zzz\n", "lengthwise: 3 of at most 3 chars · fits · not complete\n"),
    ],
)
def test_one_text(cli, book, args, code, out, err):
    book({"Go.": "Va-t'en."})
    assert cli("Go.", *TO, *args) == (code, out, err)


def test_an_address_is_a_text(cli, book):
    book()
    assert cli("https://example.com/a.html", *TO) == (0, "https://example.com/a.html\n", "")


def test_one_text_that_lost_something(cli, book):
    book(dict.fromkeys(["Hi %s", "Hi {1}", "Hi <1>", "Hi X1"], "Salut"))
    assert cli("Hi %s", *TO) == (3, "Salut\n", "lengthwise: 5 chars · complete · not as in the source: %s\n")


def test_lines_of_stdin(cli, book):
    book({"Go.": "Va.", "Long.": "TOO LONG"})
    code, out, err = cli("-", *TO, stdin=b"Go.\n\n Go. Go.\r\n\xff\nLong.\n42")
    assert (code, out) == (3, "Va.\n\n Va. Va.\n\n\n42\n")
    assert "line 4: it is not UTF-8: byte 0xff at 0" in err
    assert "line 5: the text is too long" in err
    assert err.endswith("of 6 lines, 0 do not fit, 0 lost a placeholder or a number and 2 could not be translated\n")
    rows = [json.loads(line) for line in cli("-", *TO, "--json", stdin=b"Go.\n\n\xff\n")[1].splitlines()]
    assert [list(row) for row in rows[:2]] == [FIELDS] * 2
    assert [row.get("error", "")[:6] for row in rows] == ["", "", "it is "]


def test_a_line_that_lost_something_is_named(cli, book):
    book({"Go.": "Va.", **dict.fromkeys(("Hi {name}", "Hi {1}", "Hi <1>", "Hi X1"), "Salut")})
    code, out, err = cli("-", *TO, stdin=b"Go.\nHi {name}\n")
    assert (code, out) == (3, "Va.\nSalut\n")
    assert "line 2: 5 chars · complete · not as in the source: {name}\n" in err
    assert "line 1" not in err


def test_lines_that_are_not_complete_are_named(cli, book):
    book({"Go.": "Va-t'en.", "Up.": "Oh."})
    code, _, err = cli("-", *TO, "--length", "at most 3 chars", stdin=b"Up.\nGo.\nUp.\nGo.\n")
    assert (code, err) == (0, "lengthwise: of 4 lines, 2 fit but are not complete: lines 2, 4\n")
    err = cli("-", *TO, "--length", "at most 3 chars", stdin=b"Go.\n" * (NAMED + 1))[2]
    assert err.endswith(f"{NAMED - 1}, {NAMED}, ...\n")


def test_lines_of_a_file_in_batches(cli, book, tmp_path):
    known = book({"Go.": "Va."})
    (tmp_path / "lines.txt").write_text("Go.\n\n" * AT_A_TIME)
    assert cli(str(tmp_path / "lines.txt"), *TO, "--out", str(tmp_path / "out.txt")) == (0, "", "")
    assert (tmp_path / "out.txt").read_text() == "Va.\n\n" * AT_A_TIME
    assert known.free_calls == [["Go."]] * 2


def test_columns(cli, book, tmp_path):
    book({"Go.": "Va-t'en.", "Exit": "Quitter"})
    file = tmp_path / "strings.tsv"
    file.write_text("Go.\tat most 9 chars\nGo.\t3\n\t\nExit\nExit\t\nExit\t<=9 chars\n")
    code, out, err = cli(str(file), *TO, "--length", "at most 4 chars")
    assert (code, out.splitlines()) == (3, ["Va-t'en.", "", "", "zzzz", "zzzz", "Quitter"])
    assert "line 2: '3' names no unit" in err
    assert cli(str(file), *TO, "--unit", "chars")[1].splitlines() == [
        "Va-t'en.",
        "zzz",
        "",
        "Quitter",
        "Quitter",
        "Quitter",
    ]
    header = b"text\tnote\tLength\nGo.\ta verb\tat most 3 chars\n"
    assert cli("-", "--tsv", *TO, stdin=header)[:2] == (0, "text\nzzz\n")
    assert "line 3: '7' names no unit" in cli("-", "--tsv", *TO, stdin=header + b"Go.\t\t7\n")[2]
    assert json.loads(cli("-", "--tsv", *TO, "--json", stdin=header)[1])["budget"] == "at most 3 chars"


def test_a_model_whose_languages_are_not_known(cli, book):
    book({"Go.": "Va."}, source_lang=None, target_lang=None)
    code, out, err = cli("Go.", *TO)
    assert (code, out) == (0, "Va.\n")
    assert err == "lengthwise: fake does not say what it translates; it is taken to go from en to fr\n"


def test_a_model_with_the_name_of_the_languages_needs_no_naming(cli, book, monkeypatch, tmp_path):
    book({"Go.": "Va."})
    (tmp_path / "en-fr").mkdir()
    (tmp_path / "en-fr" / "config.json").write_text("{}")
    (tmp_path / "en-fr" / "README.md").write_text("---\nlicense: mit\n---\n# English to French\n")
    monkeypatch.setattr("lengthwise.models.registry.BUNDLED", tmp_path)
    assert cli("Go.", "--to", "fr") == (0, "Va.\n", "")


def test_ctrl_c_leaves_what_was_done(cli, book, tmp_path):
    book({"Go.": "Va.", "Stop.": KeyboardInterrupt()})
    (tmp_path / "lines.txt").write_text("Go.\n" * AT_A_TIME + "Stop.\n")
    told = f"lengthwise: stopped: {AT_A_TIME} of {AT_A_TIME + 1} lines were translated\n"
    assert cli(str(tmp_path / "lines.txt"), *TO) == (130, "Va.\n" * AT_A_TIME, told)


def test_a_file_takes_its_name_when_all_is_there(cli, book, tmp_path):
    book({"Go.": "Va.", "Stop.": KeyboardInterrupt(), "Long.": "TOO LONG"})
    lines, out, partial = (tmp_path / name for name in ("lines.txt", "out.txt", "out.txt.partial"))
    out.write_text("of another day\n")
    out.chmod(0o600)
    lines.write_text("Go.\n" * AT_A_TIME + "Stop.\n")
    ask = [*TO, "--out", str(out)]
    told = f"lengthwise: stopped: {AT_A_TIME} of {AT_A_TIME + 1} lines were translated; see {partial}\n"
    assert cli(str(lines), *ask) == (130, "", told)
    assert (out.read_text(), partial.read_text()) == ("of another day\n", "Va.\n" * AT_A_TIME)
    code, _, err = cli("Go.", *ask)
    assert (code, f"{partial} was left by a run that broke off" in err) == (2, True)
    partial.unlink()
    assert cli("Long.", *ask)[0] == 3  # an error, and nothing to write
    assert (out.read_text(), partial.exists()) == ("of another day\n", False)
    assert cli("-", *ask, stdin=b"Go.\n") == (0, "", "")
    assert (out.read_text(), partial.exists(), out.stat().st_mode & 0o777) == ("Va.\n", False, 0o600)


def test_what_is_no_file_of_its_own_is_written_to_as_it_is(cli, book, tmp_path):
    book({"Go.": "Va."})
    (tmp_path / "target").write_text("old\n")
    (tmp_path / "link").symlink_to("target")
    assert cli("Go.", *TO, "--out", str(tmp_path / "link")) == (0, "", "")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "Va.\n"
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert cli("Go.", *TO, "--out", str(tmp_path / "pipe")) == (0, "", "")
    assert os.read(reading, 99) == b"Va.\n"
    os.close(reading)


def test_files_that_cannot_be_written_to(cli, book, tmp_path):
    book({"Go.": "Va."})
    lines = tmp_path / "lines.txt"
    lines.write_text("Go.\n")
    (tmp_path / "link").symlink_to("lines.txt")
    for wrong, says in (
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "out", "there is no folder"),
        (lines, "is what is to be translated"),
        (tmp_path / "link", "is what is to be translated"),
    ):
        code, _, err = cli(str(lines), *TO, "--out", str(wrong))
        assert (code, says in err) == (2, True)
    assert lines.read_text() == "Go.\n"


def test_the_command_with_a_model(cli, marian, tmp_path):
    folder = checkpoint.save(marian.model, marian.tokenizer, tmp_path / "tiny-en-fr")
    ask = ["-", "--to", "fr", "--model", str(folder), "--length", "at most 1.5x", "--beams", "1", "--json"]
    code, out, err = cli(*ask, stdin=b"The lazy dog.\n\nA line. A screen!\n")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [(row["fits"], row["budget"]) for row in rows] == [
        (True, "at most 19 chars"), (True, "at most 1.5x chars"), (True, "at most 25 chars"),
    ]  # fmt: skip


# ---- with a reverse model


class Reader:
    """In the place of a reverse model: reads the source out of an output as far as it is told."""

    def __init__(self, known):
        self.known, self.calls = known, []

    def mean_log_prob(self, sources, outputs):
        self.calls.append(list(zip(sources, outputs, strict=True)))
        return np.array([self.known.get(output, -9.0) for output in outputs])


def test_what_is_best_read_back_is_taken(translator):
    known = {"Un deux": -3.0, "Un, deux": -1.0, "Une ou deux": -2.0}
    entries = {"One two": ["Un deux", "Un, deux", "Une ou deux"]}
    lines, _ = translator(entries, reverse=Reader(known), candidates=3)
    [row] = lines.translate(["One two"])
    assert (row.text, row.score, row.as_json()["score"]) == ("Un, deux", -1.0, -1.0)
    assert [(one["text"], one["score"]) for one in row.as_json()["candidates"]] == [
        ("Une ou deux", -2.0),
        ("Un deux", -3.0),
    ]
    [row] = lines.translate(["One two"], "at most 7 chars")  # of what fits
    assert (row.text, row.score) == ("Un deux", -3.0)
    [row] = translator(entries)[0].translate(["One two"])
    assert row.text == "Un deux"
    assert "score" not in row.as_json()


def test_what_the_translator_likes_counts_beside_what_is_read_back(translator):
    class Liking(Reader):
        def mean_log_prob(self, sources, outputs):
            assert outputs == ["One two"] * len(sources)  # it reads the source, and is asked about translations
            return super().mean_log_prob(outputs, sources)

    entries = {"One two": ["Un deux", "Un, deux", "Une ou deux"]}
    read = Reader({"Un deux": -6.0, "Un, deux": -1.0, "Une ou deux": -1.5})
    likes = Liking({"Un deux": -0.1, "Un, deux": -1.5, "Une ou deux": -0.5})
    [row] = translator(entries, forward=likes, reverse=read)[0].translate(["One two"])
    assert (row.text, row.score) == ("Une ou deux", -1.5 + OWN * -0.5)


def test_a_model_that_must_be_told_a_length_is_no_judge_without_one(sp_unigram):
    def judge(*controls):
        model = tiny("marian", sp_unigram)
        return forward(Writer(attach(model, list(controls), sp_unigram) if controls else model, sp_unigram), "")

    assert judge() is not None
    assert judge(CountdownHead("chars", hidden=4)) is not None  # untold it is the plain model
    assert judge(EncodingControl("difference", unit="chars")) is None
    assert judge(EncodingControl("difference", unit="words", at_most=True)) is None
    limited = judge(EncodingControl("difference", unit=("words", "chars"), at_most=True))  # told of a limit far off
    text = "The lazy dog."
    told = limited._inputs(limited._read([text, text]))
    assert {name: told[f"decoder_{name}"].tolist() for name in ("length", "unit", "at_most")} == {
        "length": [2 * len(text) + 20] * 2,
        "unit": [1, 1],
        "at_most": [True, True],
    }
    assert limited.mean_log_prob(["A line."], [text])[0] < 0
    both = [EncodingControl("difference", unit="chars"), CountdownHead("chars", hidden=4, at_most=True)]
    assert judge(*both) is None  # the one has learnt no limits


def test_a_word_that_is_left_as_it_is_makes_no_whole_translation(translator):
    class Tight(Dictionary):
        def bound(self, texts, budgets):
            return [[written("Tes new files"), written("Tes fichiers")] for _ in texts]

    lines, _ = translator(reverse=Reader({"Tes new files": -0.1, "Tes fichiers": -2.0, "Tes nouveaux fichiers": -0.2}))
    lines.hypotheses = Tight({"Your new files": ["Tes nouveaux fichiers", "Tes files"]})
    [row] = lines.translate(["Your new files"], "at most 14 chars")
    assert (row.text, row.complete) == ("Tes fichiers", True)
    lines.hypotheses = Tight({"Your new files": ["Tes new files nouveaux"]})  # by its best translation they are names
    [row] = lines.translate(["Your new files"], "at most 14 chars")
    assert (row.text, row.complete) == ("Tes new files", True)


def test_what_is_read_back_matters_less_than_faults(translator):
    entries = {"See %s": ["Voir s", "Voyez %s"], "The end": ["The end", "La fin"], "Go on": ["Va", "Go on"]}
    easy = {"Voir s": 0.0, "The end": 0.0, "Go on": 0.0}
    lines, _ = translator(entries, reverse=Reader(easy))
    # a placeholder; a copy that the model likes best stays, as for names; another is no translation
    assert texts(lines.translate(list(entries))) == ["Voyez %s", "The end", "Va"]


def test_what_was_searched_for_within_a_budget_is_read_back_too(translator):
    class Several(Dictionary):
        def bound(self, texts, budgets):
            return [[written("Abcd"), written("Efgh"), written("Ij", complete=False)] for _ in texts]

    reader = Reader({"Abcd": -2.0, "Efgh": -1.0, "Ij": 0.0, "LONGER. LONGER.": -1.0, "LONGER.": -1.5})
    lines, _ = translator(reverse=reader)
    lines.hypotheses = Several({})
    [row] = lines.translate(["Longer."], "at most 5 chars")
    assert (row.text, row.score, row.complete) == ("Efgh", -1.0, True)
    [row] = lines.translate(["Longer. Longer."], "at most 10 chars")
    assert (row.text, row.score) == ("Efgh Efgh", -1.0)
    [row] = lines.translate(["Longer. 42"])
    assert row.score == -1.5  # of the sentences that were translated
    [row] = lines.translate(["42"])
    assert row.score is None


@pytest.mark.parametrize(("free", "bound", "taken"), [(-1.4, -1.1, "Abc"), (-1.6, -1.1, "Efgh"), (-1.6, -2.0, "Abc")])
def test_what_fits_by_leaving_something_out_does_not_end_the_search(translator, free, bound, taken):
    class Shorter(Dictionary):
        def bound(self, texts, budgets):
            return [[written("Efgh")] for _ in texts]

    lines, _ = translator(reverse=Reader({"Abcdefghi": -1.0, "Abc": free, "Efgh": bound}))
    lines.hypotheses = Shorter({"Longer": ["Abcdefghi", "Abc"]})
    [row] = lines.translate(["Longer"], "at most 5 chars")
    assert row.text == taken


def test_the_score_of_several_sentences_is_their_mean(translator):
    lines, _ = translator({"Yes.": "Oui.", "No.": "Non."}, reverse=Reader({"Oui.": -1.0, "Non.": -2.0}))
    [row] = lines.translate(["Yes. No."])
    assert (row.text, row.score) == ("Oui. Non.", -1.5)


def test_a_line_that_fails_has_no_score(translator):
    lines, _ = translator({"Long": "TOO LONG"}, reverse=Reader({}))
    rows = lines.translate(["Long", "", "Yes"])
    assert [row.score for row in rows] == [None, None, -9.0]
    assert rows[0].error


def test_the_command_with_a_reverse_model(cli, marian, tmp_path):
    there = checkpoint.save(marian.model, marian.tokenizer, tmp_path / "tiny-en-fr")
    back = checkpoint.save(marian.model, marian.tokenizer, tmp_path / "tiny-fr-en")
    ask = ["-", "--to", "fr", "--model", str(there), "--length", "at most 1.5x", "--candidates", "3", "--json"]
    code, out, _ = cli(*ask, "--reverse", str(back), stdin=b"The lazy dog.\n\n")
    [row, empty] = [json.loads(line) for line in out.splitlines()]
    assert code in (0, 3)
    [known] = Channel(ReverseModel(marian), ReverseModel(marian)).scores(["The lazy dog."], [row["text"]])
    assert known < ReverseModel(marian).mean_log_prob(["The lazy dog."], [row["text"]])[0]
    assert row["score"] == pytest.approx(known, abs=1e-3)
    others = [one["score"] for one in row["candidates"]]
    assert others == sorted(others, reverse=True)
    assert "score" not in empty
    code, out, err = cli(*ask, "--reverse", str(there), stdin=b"Go.\n")
    assert (code, out) == (2, "")
    assert "asked for was from fr to en" in err


def test_a_model_that_has_learnt_limits_is_never_without_one(sp_unigram):
    def free(*controls):
        model = tiny("marian", sp_unigram)
        model = attach(model, list(controls), sp_unigram) if controls else model
        return Hypotheses(Writer(model, sp_unigram, name="tiny-en-fr"), 2).free(["Hello there."])[0][0]

    assert free(EncodingControl(unit="chars", at_most=True)).budget == "at most 44 chars"
    assert free(EncodingControl(unit="chars")).budget == free().budget == "at least 1 chars"
