"""`lengthwise shorten`: what is on stdout, what on stderr, and the exit code."""

import json
import re
from contextlib import contextmanager
from functools import partial

import pytest

from families import tiny as tiny_model
from lengthwise import Writer
from lengthwise.models.typical_lengths import add
from lengthwise.shortening.records import Candidate, Shortened

TEXT = "The file {name} could not be saved because the disk is full."
FIELDS = ["text", "length", "unit", "budget", "fits", "complete", "model", "tokens", "candidates", "source", "route"]


@pytest.fixture(scope="module")
def writer(byte_bpe):
    model = tiny_model("llama", byte_bpe)
    model.config.max_position_embeddings = 1024
    return Writer(model, byte_bpe, name="tiny")


@pytest.fixture
def shorten(cli, writer, monkeypatch):
    monkeypatch.setattr("lengthwise.models.registry.resolve", lambda name: name)
    monkeypatch.setattr("lengthwise.cli.loading.converted", lambda name: None)
    monkeypatch.setattr("lengthwise.generation.load.load", lambda name, **options: writer)
    return partial(cli, "shorten")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([" ", "--length", "40"], "the text is empty"),
        ([TEXT], "--length is missing; give for example --length 'at most 80 chars'"),
        ([TEXT, "--tsv"], "--length is missing; give for example --length 'at most 80 chars'"),
        (["docs/page.docx", "--length", "40"], "there is no file 'docs/page.docx'; if it is a text, give - and"),
        (["-", "--length", "40", "--out", "short.txt"], "--out, --in-place and --encoding are for string files"),
        (["-", "--whole", "--tsv", "--length", "40"], "--whole and --tsv exclude each other"),
        (["-", "--whole", "--length", "40", "--in-place"], "--out, --in-place and --encoding are for string files"),
        ([TEXT, "--length", "short"], "cannot read 'short' as a budget"),
        ([TEXT, "--length", "30,short"], "cannot read '30,short' as a budget"),
        ([TEXT, "--length", "40", "--as", "poem"], "--as must be headline, sentence or text; got 'poem'"),
        ([TEXT, "--length", "40", "--candidates", "0"], "--candidates must be at least 1"),
        ([TEXT, "--length", "40", "--unit", "ells"], "unknown unit 'ells'"),
    ],
)
def test_bad_usage_is_one_line_and_code_2(shorten, args, says):
    code, out, err = shorten(*args)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: .+\n", err)
    assert says in err


def test_a_text_that_fits_is_printed_unchanged(shorten):
    assert shorten(TEXT, "--length", "at most 80 chars") == (0, f"{TEXT}\n", "")


def test_several_lengths_give_several_texts(shorten):
    code, out, _ = shorten(TEXT, "--length", "25,40, at most 7 words", "--faithful")
    first, second, third = out.splitlines()
    assert (code, len(first) <= 25, len(second) <= 40, len(third.split()) <= 7) == (0, True, True, True)


def test_several_lengths_give_what_each_gives(shorten):
    lengths = ["25", "40", "50"]
    _, together, _ = shorten(TEXT, "--length", ",".join(lengths), "--faithful")
    alone = [shorten(TEXT, "--length", length, "--faithful")[1] for length in lengths]
    assert together == "".join(alone)


def test_explain_compares_each_length_with_the_shortest_texts(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path))
    add("toy", "shorten", "shortest", [("x" * len(TEXT), "x" * (20 + n)) for n in range(30)])
    code, out, _ = cli("shorten", TEXT, "--length", "15,35", "--model", "toy", "--explain")
    measured = "toy shortened 30 texts like this one as far as it could; 90 % of the results have 21 to 48 chars"
    assert (code, out.splitlines()) == (
        0,
        [
            f"at most 15 chars: {measured}; this budget is below that; the shortest has 20",
            f"at most 35 chars: {measured}; about 55 % are within this budget; the shortest has 20",
        ],
    )


def test_explain_is_for_one_text(cli, tmp_path):
    (tmp_path / "lines.txt").write_text("A line.\n")
    for text in ("-", tmp_path / "lines.txt"):
        code, _, err = cli("shorten", text, "--length", "9", "--explain")
        assert (code, "--explain is for one text and a --length" in err) == (2, True)


def test_json(shorten):
    code, out, _ = shorten(TEXT, "--length", "40", "--candidates", "2", "--json")
    row = json.loads(out)
    assert code == 0
    assert list(row)[: len(FIELDS)] == FIELDS
    assert (row["budget"], row["source"], row["fits"]) == ("at most 40 chars", TEXT, True)
    assert row["length"] == len(row["text"]) <= 40
    assert all(other["length"] <= 40 for other in row["candidates"])


def test_what_does_not_fit_has_code_3_and_a_message(shorten):
    code, out, err = shorten("Incomprehensibilities.", "--length", "5", "--faithful")
    assert (code, out) == (3, "Incomprehensibilities.\n")
    assert "22 of at most 5 chars · does not fit" in err


def test_a_minimum_above_the_length_is_the_error_of_its_line(shorten, tmp_path):
    code, out, err = shorten("Some text here.", "--length", "at least 500 words")
    assert (code, out) == (3, "")
    assert "the text has 3 words and the minimum is 500" in err
    (tmp_path / "lines.tsv").write_text("Some text here.\texactly 500 words\nGo.\t3\n")
    code, out, err = shorten(tmp_path / "lines.tsv")
    assert (code, out) == (3, "\nGo.\n")
    assert "line 1: the text has 3 words and the minimum is 500; give a smaller one" in err


def test_a_lost_placeholder_has_code_3_and_a_note(shorten, monkeypatch):
    lost = Candidate("Now", "rewritten", complete=True)
    monkeypatch.setattr("lengthwise.shortening.shortener._about_source", lambda *_: [lost])  # the model is random
    code, out, err = shorten("{name} is here", "--length", "3", "--candidates", "2")
    assert (code, "{name}" in out) == (3, False)
    assert "left out: {name}" in err


def test_lines_of_stdin_stay_in_order(shorten):
    code, out, err = shorten("-", "--length", "40", "--faithful", stdin=f"Go.\n\n{TEXT}\nStop.\n")
    first, empty, short, last = out.splitlines()
    assert (code, first, empty, last, err) == (0, "Go.", "", "Stop.", "")
    assert len(short) <= 40


def test_messages_name_the_lines_that_are_not_complete(shorten, monkeypatch, tmp_path):
    results = {"a": ("a?", None), "b": ("b.", "left out: not"), "c": ("c.", None)}

    def known(shortener, texts, budgets, **options):
        return [
            Shortened(text, 2, "chars", "", True, text != "a?", "", 1, note=note)
            for text, note in (results[one] for one in texts)
        ]

    monkeypatch.setattr("lengthwise.shortening.shortener.Shortener.shorten", known)
    for lines, length, says in (
        ("c\na\nb\na\n", "40", ["of 4 texts, 2 fit but are not complete: lines 2, 4"]),
        ("c\n\na\nb\n", "40,30", ["of 8 texts, 2 fit but are not complete: line 3"]),
        ("a\nb\n", "40", ["of 2 texts, 1 fits but is not complete: line 1"]),
        ("c\n", "40", []),
    ):
        code, _, err = shorten("-", "--length", length, stdin=lines)
        texts, left_out = len(lines.splitlines()) * len(length.split(",")), len(length.split(","))
        counted = f"of {texts} texts, {left_out} leave{'s' * (left_out == 1)} words out (--json names them)"
        assert err.splitlines() == [f"lengthwise: {one}" for one in [*says, *([counted] if says else [])]]
        assert code == (3 if says else 0)
        assert "words out" not in shorten("-", "--length", length, "--json", stdin=lines)[2]
    for name in ("c", "a"):
        (tmp_path / f"{name}.txt").write_text(name)
    assert "of 2 texts, 1 fits but is not complete: a.txt" in shorten(tmp_path, "--whole", "--length", "40")[2]


def test_a_whole_file_or_stdin_is_one_text(shorten, tmp_path):
    article = "The file could not be saved.\nThe disk is full.\n\nNobody knew why this had happened.\n"
    (tmp_path / "a.txt").write_text(article)
    for place, stdin in ((tmp_path / "a.txt", ""), ("-", article)):
        code, out, _ = shorten(place, "--whole", "--as", "headline", "--length", "20,40", "--faithful", stdin=stdin)
        short, long = out.splitlines()
        assert (code, len(short) <= 20, len(long) <= 40) == (0, True, True)


def test_a_terminal_shows_what_is_being_done(shorten, monkeypatch, tmp_path):
    shown = []

    @contextmanager
    def status(message):
        shown.append(message)
        yield shown.append
        shown.append("cleared")

    monkeypatch.setattr("lengthwise.cli.terminal.status", status)
    file = tmp_path / "article.txt"
    file.write_text(TEXT)
    steps = ["shortening", "shortening: reading", "shortening: leaving words out", "shortening: comparing", "cleared"]
    arguments = ["--length", "40", "--faithful"]
    for text, seen in ((TEXT, True), (file, False)):
        shorten(text, *arguments, *(["--whole"] if text == file else []))
        assert [one for one in shown if one.startswith("shortening")] == (steps[:-1] if seen else [])
        shown.clear()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    shorten(file, *arguments, "--whole")
    assert shown[-len(steps) :] == steps


def test_each_file_of_a_folder_has_its_text_and_its_name(shorten, tmp_path):
    (tmp_path / "b.md").write_text(f"# Title\n\n{TEXT}\n\n```\ncode\n```\n")
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "table.csv").write_text("x,y\n")
    code, out, err = shorten(tmp_path, "--whole", "--length", "40", "--faithful")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [name for name, _ in rows] == ["a.txt", "b.md", "empty.txt", "latin.txt"]
    assert (code, rows[0][1] == rows[1][1], len(rows[0][1]) <= 40, rows[2][1]) == (3, True, True, "")
    assert "empty.txt: the file has no text" in err
    assert "latin.txt: not UTF-8" in err or "latin.txt: latin.txt is not UTF-8" in err
    found = shorten(tmp_path, "--whole", "--length", "40", "--faithful", "--json")[1]
    assert [json.loads(line)["file"] for line in found.splitlines()] == [name for name, _ in rows]


def test_an_error_names_the_only_file(shorten, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    code, out, err = shorten(tmp_path / "empty.txt", "--whole", "--length", "40", "--faithful")
    assert (code, out) == (3, "\n")
    assert "empty.txt: the file has no text" in err
    assert "line 1" not in err


def test_whole_is_for_files(shorten, tmp_path):
    for place, says in ((TEXT, "--whole is for a file, a folder or stdin"), (tmp_path, "has no .txt and no .md file")):
        code, _, err = shorten(place, "--whole", "--length", "40")
        assert (code, says in err) == (2, True)
    (tmp_path / "a.txt").write_text(TEXT)
    code, out, err = shorten(tmp_path, "--whole", "--length", "40", "--explain")
    assert (code, out, "--explain is for one text and a --length" in err) == (2, "", True)


def test_a_line_that_cannot_be_read_is_an_error(shorten, tmp_path):
    (tmp_path / "lines.txt").write_bytes(b"Go.\ncaf\xe9\n")
    code, out, err = shorten(tmp_path / "lines.txt", "--length", "40", "--faithful")
    assert (code, out.splitlines(), "line 2: not UTF-8" in err) == (3, ["Go.", ""], True)


def test_each_line_of_a_tsv_file_has_its_length(shorten, tmp_path):
    file = tmp_path / "strings.tsv"
    file.write_text(f"text\tnote\tlength\n{TEXT}\tx\tat most 6 words\n{TEXT}\tx\t40\n{TEXT}\t\t\nA\t\tbad\n")
    code, out, err = shorten(file, "--faithful")
    head, words, chars, none, bad = out.splitlines()
    assert (code, head, none, bad) == (3, "text", "", "")
    assert (len(words.split()) <= 6, len(chars) <= 40) == (True, True)
    assert "line 4: the line has no length; give --length for such lines" in err
    assert "line 5: cannot read 'bad' as a budget" in err
    assert "of 4 texts, 0 do not fit or lost a placeholder, and 2 could not be shortened" in err
    rows = [json.loads(line) for line in shorten(file, "--faithful", "--length", "30,50", "--json")[1].splitlines()]
    assert [row["budget"] for row in rows[:5]] == ["at most 6 words"] * 2 + ["at most 40 chars"] * 2 + [
        "at most 30 chars"
    ]


def test_texts_that_may_not_be_english_are_counted_once(shorten, tmp_path):
    file = tmp_path / "texts.txt"
    german = "Die Datei konnte nicht auf der Platte gespeichert werden."
    file.write_text(f"{german}\n{german}\n{TEXT}\n")
    for options in ([], ["--json"]):
        _, _, err = shorten(file, "--length", "40", "--faithful", *options)
        assert err.count("of 3 texts, 2 may not be English, for which shorten is made") == 1
    assert "the text may not be English" in shorten(german, "--length", "40", "--faithful")[2]


def test_torn_texts_are_counted(shorten, tmp_path, monkeypatch):
    monkeypatch.setattr("lengthwise.shortening.notes.torn", lambda *_: ["{n} and"])
    (tmp_path / "texts.txt").write_text(f"{TEXT}\n{TEXT}\n")
    message = "of 2 texts, 2 may be ungrammatical (--json says where: check)"
    assert message in shorten(tmp_path / "texts.txt", "--length", "40", "--faithful")[2]
    assert "check: {n} and" in shorten(TEXT, "--length", "40", "--faithful")[2]
