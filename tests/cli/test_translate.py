"""`lengthwise translate`: what is on stdout, what on stderr, and the exit code."""

import json
import os
import re
from functools import partial

import pytest

from families import tiny
from lengthwise import Writer
from lengthwise.cli.results import MAX_NAMED
from lengthwise.cli.translate import BATCH_SIZE
from lengthwise.models import checkpoint
from lengthwise.scoring.noisy_channel import NoisyChannel
from lengthwise.scoring.reverse import ReverseModel
from translation.fakes import Dictionary, fake_writer

NO_COMPLETE = "does not fit · complete · no complete translation that fits was found"
FIELDS = ["text", "length", "unit", "budget", "fits", "complete", "model", "tokens", "candidates", "source", "intact"]


@pytest.fixture
def translate(cli):
    return partial(cli, "translate")


@pytest.fixture(scope="module")
def marian(sp_unigram):
    return Writer(tiny("marian", sp_unigram), sp_unigram, name="tiny-en-fr")


@pytest.fixture
def book(monkeypatch):
    """Puts a dictionary in place of the model."""

    def put(entries=(), **settings):
        found = Dictionary(dict(entries))
        writer = fake_writer(**{"source_lang": "en", "target_lang": "fr", **settings})
        monkeypatch.setattr("lengthwise.generation.load.load", lambda name, **_: writer)
        monkeypatch.setattr("lengthwise.models.registry.resolve", lambda name: name)
        monkeypatch.setattr("lengthwise.cli.loading.converted", lambda name: None)
        monkeypatch.setattr("lengthwise.translation.translator.Hypotheses", lambda writer, beams: found)
        return found

    return put


TO = ["--to", "fr", "--model", "x"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["Go."], "--to fr"),
        ([" ", *TO], "the text is empty"),
        (
            ["Go.", "--to", "de"],
            "give one with --model, for example Helsinki-NLP/opus-mt-en-de (from",
        ),
        (["Go.", "--to", "italian"], "a language is given by its code, such as fr, it or de; got 'italian'"),
        (["nosuch.tsv", *TO], "there is no file 'nosuch.tsv'; if it is a text, give - and"),
        (["Go.", *TO, "--length", "short"], "cannot read 'short' as a budget"),
        (["Go.", *TO, "--length", "42"], "'42' has no unit; write 'at most 42 chars', or give --unit chars"),
        (["Go.", *TO, "--unit", "ells"], "unknown unit 'ells'"),
        (["Go.", "--to", "de", "--model", "x"], "fake translates from en to fr, not from en to de"),
        (["Go.", "--to", "fr", "--model", "./nowhere"], "no model at './nowhere'"),
    ],
)
def test_bad_usage_is_one_line_and_code_2(translate, book, monkeypatch, args, says):
    if "./nowhere" not in args:
        book()
    code, out, err = translate(*args)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: .+\n", err)
    assert says in err


@pytest.mark.parametrize(
    ("args", "code", "out", "err"),
    [
        ([], 0, "Va-t'en.\n", ""),
        (["--length", "at most 8 chars"], 0, "Va-t'en.\n", ""),
        (["--length", "8", "--unit", "chars"], 0, "Va-t'en.\n", ""),
        (["--length", "at most 3 chars"], 3, "Va-t'en.\n", f"lengthwise: 8 of at most 3 chars · {NO_COMPLETE}\n"),
    ],
)
def test_one_text(translate, book, args, code, out, err):
    book({"Go.": "Va-t'en."})
    assert translate("Go.", *TO, *args) == (code, out, err)


def test_a_word_that_may_be_the_name_of_a_missing_folder(translate, book, tmp_path):
    book({"values": "valeurs"})
    code, _, err = translate("values", *TO, "--out", str(tmp_path / "values-fr"))
    assert (code, err) == (0, "lengthwise: 'values' is translated as a text: there is no file or folder of this name\n")
    assert translate("values", *TO, "--out", str(tmp_path / "values.txt")) == (0, "", "")


@pytest.mark.parametrize("address", ["https://example.com/a.html", "https://example.com/a.txt"])
def test_an_address_is_a_text(translate, book, address):
    book()
    assert translate(address, *TO) == (0, f"{address}\n", "")


def test_one_text_that_lost_a_placeholder(translate, book):
    book(dict.fromkeys(["Hi %s", "Hi {1}", "Hi <1>", "Hi X1"], "Salut"))
    assert translate("Hi %s", *TO) == (3, "Salut\n", "lengthwise: 5 chars · complete · not as in the source: %s\n")


def test_lines_of_stdin(translate, book):
    book({"Go.": "Va.", "Long.": "TOO LONG"})
    code, out, err = translate("-", *TO, stdin=b"Go.\n\n Go. Go.\r\n\xff\nLong.\n42")
    assert (code, out) == (3, "Va.\n\n Va. Va.\n\n\n42\n")
    assert "line 4: it is not UTF-8: byte 0xff at 0" in err
    assert "line 5: the text is too long" in err
    assert err.endswith("of 6 lines, 0 do not fit, 0 lost a placeholder or a number and 2 could not be translated\n")
    rows = [json.loads(line) for line in translate("-", *TO, "--json", stdin=b"Go.\n\n\xff\n")[1].splitlines()]
    assert [list(row) for row in rows[:2]] == [FIELDS] * 2
    assert [row.get("error", "")[:6] for row in rows] == ["", "", "it is "]


def test_a_line_that_lost_a_placeholder_is_named(translate, book):
    book({"Go.": "Va.", **dict.fromkeys(("Hi {name}", "Hi {1}", "Hi <1>", "Hi X1"), "Salut")})
    code, out, err = translate("-", *TO, stdin=b"Go.\nHi {name}\n")
    assert (code, out) == (3, "Va.\nSalut\n")
    assert "line 2: 5 chars · complete · not as in the source: {name}\n" in err
    assert "line 1" not in err


def test_lines_of_which_nothing_complete_fits_are_named(translate, book):
    book({"Go.": "Va-t'en.", "Up.": "Oh."})
    code, out, err = translate("-", *TO, "--length", "at most 3 chars", stdin=b"Up.\nGo.\n")
    assert (code, out) == (3, "Oh.\nVa-t'en.\n")
    assert err.startswith(f"lengthwise: line 2: 8 of at most 3 chars · {NO_COMPLETE}\n")


def test_a_string_file_gets_no_fragments(translate, book, tmp_path):
    book({"Cancel": "Annuler", "Up": "Haut"})
    file = tmp_path / "fr.po"
    file.write_text('msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid "Cancel"\nmsgstr ""\n\nmsgid "Up"\nmsgstr ""\n')
    code, _, err = translate(str(file), *TO, "--in-place", "--length", "at most 4 chars")
    assert (code, "1 of 2 texts are new and fit, 1 does not fit" in err) == (3, True)
    assert '#, fuzzy\nmsgid "Cancel"\nmsgstr "Annuler"\n\nmsgid "Up"\nmsgstr "Haut"\n' in file.read_text()


def test_lines_that_are_not_complete_are_named(translate, book):
    book({"Go.": "Va-t'en.", "Up.": "Oh."}).needs_length = True  # so there are no complete ones to return instead
    code, _, err = translate("-", *TO, "--length", "at most 3 chars", stdin=b"Up.\nGo.\nUp.\nGo.\n")
    assert (code, err) == (3, "lengthwise: of 4 lines, 2 fit but are not complete: lines 2, 4\n")
    code, _, err = translate("-", *TO, "--length", "at most 3 chars", "--json", stdin=b"Up.\nGo.\n")
    assert (code, err) == (3, "lengthwise: of 2 lines, 1 fits but is not complete: line 2\n")
    err = translate("-", *TO, "--length", "at most 3 chars", stdin=b"Go.\n" * (MAX_NAMED + 1))[2]
    assert err.endswith(f"{MAX_NAMED - 1}, {MAX_NAMED}, ...\n")


def test_lines_of_a_file_in_batches(translate, book, tmp_path):
    known = book({"Go.": "Va."})
    (tmp_path / "lines.txt").write_text("Go.\n\n" * BATCH_SIZE)
    assert translate(str(tmp_path / "lines.txt"), *TO, "--out", str(tmp_path / "out.txt")) == (0, "", "")
    assert (tmp_path / "out.txt").read_text() == "Va.\n\n" * BATCH_SIZE
    assert known.free_calls == [["Go."]] * 8  # a batch of lines is 4 of sentences


def test_columns(translate, book, tmp_path):
    book({"Go.": "Va-t'en.", "Exit": "Quitter"})
    file = tmp_path / "strings.tsv"
    file.write_text("Go.\tat most 9 chars\nGo.\t3\n\t\nExit\nExit\t\nExit\t<=9 chars\n")
    code, out, err = translate(str(file), *TO, "--length", "at most 4 chars")
    assert (code, out.splitlines()) == (3, ["Va-t'en.", "", "", "Quitter", "Quitter", "Quitter"])
    assert "line 2: '3' has no unit" in err
    assert translate(str(file), *TO, "--unit", "chars")[1].splitlines() == [
        "Va-t'en.",
        "Va-t'en.",
        "",
        "Quitter",
        "Quitter",
        "Quitter",
    ]
    header = b"text\tnote\tLength\nGo.\ta verb\tat most 8 chars\n"
    assert translate("-", "--tsv", *TO, stdin=header)[:2] == (0, "text\nVa-t'en.\n")
    assert "line 3: '7' has no unit" in translate("-", "--tsv", *TO, stdin=header + b"Go.\t\t7\n")[2]
    assert json.loads(translate("-", "--tsv", *TO, "--json", stdin=header)[1])["budget"] == "at most 8 chars"


def test_a_model_of_unknown_languages(translate, book):
    book({"Go.": "Va."}, source_lang=None, target_lang=None)
    code, out, err = translate("Go.", *TO)
    assert (code, out) == (0, "Va.\n")
    assert err == "lengthwise: fake does not name its languages; it is assumed to translate from en to fr\n"


def test_a_model_named_by_its_languages_is_the_default(translate, book, monkeypatch, tmp_path):
    book({"Go.": "Va."})
    (tmp_path / "en-fr").mkdir()
    (tmp_path / "en-fr" / "config.json").write_text("{}")
    (tmp_path / "en-fr" / "README.md").write_text("---\nlicense: mit\n---\n# English to French\n")
    monkeypatch.setattr("lengthwise.models.registry.BUNDLED", tmp_path)
    assert translate("Go.", "--to", "fr") == (0, "Va.\n", "")


def test_ctrl_c_keeps_the_lines_that_were_translated(translate, book, tmp_path):
    book({"Go.": "Va.", "Stop.": KeyboardInterrupt()})
    (tmp_path / "lines.txt").write_text("Go.\n" * BATCH_SIZE + "Stop.\n")
    message = f"lengthwise: stopped: {BATCH_SIZE} of {BATCH_SIZE + 1} lines were translated\n"
    assert translate(str(tmp_path / "lines.txt"), *TO) == (130, "Va.\n" * BATCH_SIZE, message)


@pytest.mark.parametrize(("length", "lines"), [([], 16), (["--length", "1.0x"], 20)])
def test_lines_are_printed_inside_a_batch(translate, book, tmp_path, length, lines):
    """The fake engine does 40 rows at once: 8 sentences of 5 beams, or 4 within a length."""
    book({"Go.": "Va.", "Stop.": KeyboardInterrupt()})
    (tmp_path / "lines.txt").write_text("Go.\n" * 21 + "Stop.\n" * 3)
    message = f"lengthwise: stopped: {lines} of 24 lines were translated\n"
    assert translate(str(tmp_path / "lines.txt"), *TO, *length) == (130, "Va.\n" * lines, message)


def test_a_file_appears_when_all_lines_are_done(translate, book, tmp_path):
    book({"Go.": "Va.", "Stop.": KeyboardInterrupt(), "Long.": "TOO LONG"})
    lines, out, partial = (tmp_path / name for name in ("lines.txt", "out.txt", "out.txt.partial"))
    out.write_text("earlier\n")
    out.chmod(0o600)
    lines.write_text("Go.\n" * BATCH_SIZE + "Stop.\n")
    ask = [*TO, "--out", str(out)]
    message = f"lengthwise: stopped: {BATCH_SIZE} of {BATCH_SIZE + 1} lines were translated; they are in {partial}"
    assert translate(str(lines), *ask) == (130, "", f"{message}: delete it, or give another --out, to begin again\n")
    assert (out.read_text(), partial.read_text()) == ("earlier\n", "Va.\n" * BATCH_SIZE)
    code, _, err = translate("Go.", *ask)
    assert (code, f"{partial} exists: an interrupted run left it" in err) == (2, True)
    partial.unlink()
    assert translate("Long.", *ask)[0] == 3  # an error, and nothing to write
    assert (out.read_text(), partial.exists()) == ("earlier\n", False)
    assert translate("-", *ask, stdin=b"Go.\n") == (0, "", "")
    assert (out.read_text(), partial.exists(), out.stat().st_mode & 0o777) == ("Va.\n", False, 0o600)


def test_links_and_pipes_are_written_to_directly(translate, book, tmp_path):
    book({"Go.": "Va."})
    (tmp_path / "target").write_text("old\n")
    (tmp_path / "link").symlink_to("target")
    assert translate("Go.", *TO, "--out", str(tmp_path / "link")) == (0, "", "")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "Va.\n"
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert translate("Go.", *TO, "--out", str(tmp_path / "pipe")) == (0, "", "")
    assert os.read(reading, 99) == b"Va.\n"
    os.close(reading)


def test_files_that_cannot_be_written_to(translate, book, tmp_path):
    book({"Go.": "Va."})
    lines = tmp_path / "lines.txt"
    lines.write_text("Go.\n")
    (tmp_path / "link").symlink_to("lines.txt")
    for wrong, says in (
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "out", "there is no folder"),
        (lines, "is the file to translate; name another file"),
        (tmp_path / "link", "is the file to translate; name another file"),
    ):
        code, _, err = translate(str(lines), *TO, "--out", str(wrong))
        assert (code, says in err) == (2, True)
    assert lines.read_text() == "Go.\n"


def test_the_command_with_a_model(translate, marian, tmp_path):
    folder = checkpoint.save(marian.model, marian.tokenizer, tmp_path / "tiny-en-fr")
    ask = ["-", "--to", "fr", "--model", str(folder), "--length", "at most 1.5x", "--beams", "1", "--json"]
    code, out, err = translate(*ask, stdin=b"The lazy dog.\n\nA line. A screen!\n")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [(row["fits"], row["budget"]) for row in rows] == [
        (True, "at most 19 chars"), (True, "at most 1.5x chars"), (True, "at most 25 chars"),
    ]  # fmt: skip


def test_the_command_with_a_reverse_model(translate, marian, tmp_path):
    there = checkpoint.save(marian.model, marian.tokenizer, tmp_path / "tiny-en-fr")
    back = checkpoint.save(marian.model, marian.tokenizer, tmp_path / "tiny-fr-en")
    ask = ["-", "--to", "fr", "--model", str(there), "--length", "at most 1.5x", "--candidates", "3", "--json"]
    code, out, _ = translate(*ask, "--reverse", str(back), stdin=b"The lazy dog.\n\n")
    [row, empty] = [json.loads(line) for line in out.splitlines()]
    assert code in (0, 3)
    [known] = NoisyChannel(ReverseModel(marian.engine), ReverseModel(marian.engine)).scores(
        ["The lazy dog."], [row["text"]]
    )
    assert known < ReverseModel(marian.engine).mean_log_prob(["The lazy dog."], [row["text"]])[0]
    assert row["score"] == pytest.approx(known, abs=1e-3)
    others = [one["score"] for one in row["candidates"]]
    assert others == sorted(others, reverse=True)
    assert "score" not in empty
    code, out, err = translate(*ask, "--reverse", str(there), stdin=b"Go.\n")
    assert (code, out) == (2, "")
    assert "not from fr to en" in err


def test_candidates_are_made_only_if_they_are_listed(translate, book, monkeypatch):
    """The words that they leave out take time to find."""
    book({"Go.": ["Va.", "Vas-y.", "Allez."]})
    made = []
    monkeypatch.setattr("lengthwise.translation.Translator._others", lambda self, *_: made.append(self._beams) or [])
    assert translate("Go.", *TO, "--candidates", "7")[:2] == (0, "Va.\n")
    assert made == []
    assert translate("Go.", *TO, "--candidates", "7", "--json")[0] == 0
    assert made == [7]
