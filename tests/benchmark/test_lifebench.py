"""bench/lifebench.py on a made-up benchmark and a bigram model: its measures, its table, and that it resumes."""

import json
import math
import sys
from pathlib import Path
from runpy import run_path

import pytest

from bigram_engine import BigramEngine
from length_cases import TEXTS
from lengthwise.generation import load as loading
from lengthwise.length.units import measure

BENCH = Path(__file__).parents[2] / "bench"
SMALL = ["--length", "4", "--length", "8", "--count", "2", "--only", "hard", "--only", "prompt"]
TASKS = {
    "en": "[Instruction] Answer {n}. [Requirement] It must be {{word_count_type}} {{word_count}} words long.",
    "cn": "[指令] 回答 {n}。[要求] 必须{{word_count_type}} {{word_count}}字。",
}


@pytest.fixture
def lifebench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    return run_path(str(BENCH / "lifebench.py"))


@pytest.fixture
def run(lifebench, byte_bpe, tmp_path, monkeypatch):
    """Return a function that runs the benchmark and returns the table; `.journal` is its journal."""
    kinds = [("en", "qa"), ("en", "qa"), ("en", "create"), ("cn", "qa"), ("en", "summarization")]
    items = [
        {"id": n, "lang": lang, "category": kind, "task": TASKS[lang].format(n=n)}
        for n, (lang, kind) in enumerate(kinds)
    ]
    items[-1]["task"] = "A long document. " * 200 + items[-1]["task"]
    (tmp_path / "data").mkdir()
    lines = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    (tmp_path / "data/data.jsonl").write_text(lines, encoding="utf-8")
    monkeypatch.setitem(loading.ENGINES, "bigrams", lambda name, **options: BigramEngine(byte_bpe))

    def run_with(*more):
        files = ["--data", str(tmp_path), "--out", str(run_with.journal), "--json", str(tmp_path / "table.json")]
        monkeypatch.setattr(sys, "argv", ["lifebench.py", *files, "--engine", "bigrams", *more])
        lifebench["main"]()
        return json.loads((tmp_path / "table.json").read_text())

    run_with.journal = tmp_path / "runs/lifebench.jsonl"
    return run_with


def test_texts_have_their_length_and_are_written_once(run):
    found = run(*SMALL)
    hard = [row for row in found if row["system"] == "hard"]
    cells = {(row["language"], row["method"], row["length"]) for row in hard}
    assert len(cells) == 2 * 3 * 3  # languages, methods, two lengths and their mean
    assert {row["score"] for row in hard if row["texts"]} == {row["within"] for row in hard if row["texts"]} == {100}
    assert {row["deviation"] for row in hard if row["method"] == "equal to"} == {0}
    assert any(row["score"] < 50 for row in found if row["system"] == "prompt")
    assert {row["texts"] + row["refused"] for row in hard if row["language"] == "en" and row["length"] == 8} == {2}

    before = run.journal.read_text("utf-8")
    rows = [json.loads(line) for line in before.splitlines()]
    assert {row["id"] for row in rows if row["language"] == "en"} == {0, 2}  # categories in turn; 4 is too long
    run.journal.write_text(before[:-20], encoding="utf-8")  # interrupted in the last line
    assert [row["score"] for row in run(*SMALL)] == [row["score"] for row in found]
    again = [json.loads(line) for line in run.journal.read_text("utf-8").splitlines()]
    assert again[:-1] == rows[:-1]
    assert again[-1]["text"] == rows[-1]["text"]


def test_a_length_beyond_the_window_is_left_out(run, capsys):
    found = run("--length", "8", "--length", "512", "--method", "at least", "--only", "sampled")
    assert {row["score"] for row in found} == {100}
    assert "512 words: no item and its text fit into the window of 512 tokens" in capsys.readouterr().err
    assert {json.loads(line)["length"] for line in run.journal.read_text("utf-8").splitlines()} == {8}


def test_a_folder_without_the_data_is_named(run, tmp_path):
    (tmp_path / "data/data.jsonl").unlink()
    with pytest.raises(SystemExit, match=r"data\.jsonl is not there; give a clone"):
        run()


@pytest.mark.parametrize(
    ("method", "words", "expected"),
    [
        ("equal to", 16, 100),
        ("equal to", 8, 100 * math.exp(-2.5)),
        ("equal to", 24, 100 * math.exp(-1)),
        ("at most", 8, 100),
        ("at most", 24, 100 * math.exp(-1)),
        ("at least", 24, 100),
        ("at least", 8, 100 * math.exp(-2.5)),
    ],
)
def test_the_score_is_that_of_the_benchmark(lifebench, method, words, expected):
    assert lifebench["score"](method, words, 16) == pytest.approx(expected)


@pytest.mark.parametrize("text", [*TEXTS, "It's 1,000.5 km — “far-off” and/or 2024年 in 北京."])
def test_the_unit_counts_as_the_benchmark(lifebench, text):
    assert measure(text, "words-cjk") == lifebench["count_words"](text)


def test_models_of_one_journal_are_compared_apart(run, capsys):
    asked = ["--length", "4", "--count", "1", "--only", "hard", "--method", "at most", "--language", "en"]
    run(*asked, "--model", "first")
    found = run(*asked, "--model", "second")
    assert [(row["model"], row["length"], row["texts"] + row.get("refused", 0)) for row in found] == [
        (model, length, 1) for model in ("first", "second") for length in (4, "mean")
    ]
    assert "\nfirst (bigrams)\n" in capsys.readouterr().out
