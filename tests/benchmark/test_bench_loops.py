"""bench/loops.py on a bigram model: what it writes, and how it sets texts beside answers of any length."""

import json
import sys
from pathlib import Path
from runpy import run_path

import pytest

from bigram_engine import BigramEngine
from lengthwise.generation import generator
from lengthwise.generation import load as loading

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def run(byte_bpe, tmp_path, monkeypatch, capsys):
    """Return a function that runs the benchmark and returns the rows of its table, as lists of cells."""
    monkeypatch.setitem(loading.ENGINES, "bigrams", lambda name, **options: BigramEngine(byte_bpe))

    def run_with(*more):
        monkeypatch.setattr(sys, "argv", ["loops.py", "--engine", "bigrams", *map(str, more)])
        run_path(str(BENCH / "loops.py"))["main"]()
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
        return [line.strip("| ").split(" | ") for line in lines]

    return run_with


def test_texts_are_written_with_and_without_the_guard(run, tmp_path):
    texts = tmp_path / "texts.jsonl"
    head, *rows = run("--count", 3, "--budget", "exactly 5 words", "--json", texts)
    assert [[*row[:2], row[3]] for row in rows] == [["exactly 5 words", system, "3"] for system in ("off", "guard")]
    assert len(head) == len(rows[0])
    assert len(texts.read_text("utf-8").splitlines()) == 6


def test_texts_are_set_beside_answers_of_the_same_prompts_cut_to_as_many_tokens(run, tmp_path):
    answers, texts = tmp_path / "answers.jsonl", tmp_path / "texts.jsonl"
    run("--count", 3, "--only", "guard", "--budget", "at least 1 char", "--json", answers)
    rows = [json.loads(line) for line in answers.read_text("utf-8").splitlines()]
    # Words that this model never writes in a row are less probable than its own answers, and repeat nothing.
    for row in rows:
        row |= {"text": "zebra quilt vortex jumps", "tokens": 4}
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    [_, [budget, system, count, nats, of_answers, difference, *_]] = run("--compare", texts, "--against", "m")
    assert (budget, system, count) == ("at least 1 chars", "guard", "3")
    assert float(nats) > float(of_answers)
    assert difference.startswith(f"{float(nats) - float(of_answers):+.2f}"[:4])


def test_drafts_are_the_texts_that_are_complete_without_repair(run, monkeypatch):
    options = ("--count", 12, "--only", "guard", "--budget", "exactly 6 tokens")
    [_, [_, _, drafts, _, complete, *_]] = run(*options)
    monkeypatch.setattr(generator, "repair", lambda *args, **options: None)
    [_, [_, _, alone, _, unrepaired, *_]] = run(*options)
    assert drafts == alone == unrepaired
    assert int(drafts) < int(complete)
