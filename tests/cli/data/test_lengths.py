"""`data lengths`: lengths are measured, kept, and used by --explain."""

import json
from dataclasses import replace

import pytest

from lengthwise.shortening.records import Shortened
from lengthwise.shortening.shortener import Shortener


@pytest.fixture(autouse=True)
def answers(tmp_path, monkeypatch):
    """Answers that are twice as long as their prompts, or half as long at the shortest, in place of a model's."""
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("lengthwise.cli.data.lengths.load", lambda *args, **options: None)
    monkeypatch.setattr(
        "lengthwise.evaluation.free_lengths.answers",
        lambda writer, prompts: ([(one, one * 2) for one in prompts], [(one, one[::2]) for one in prompts]),
    )


def test_lengths_are_measured_for_explain(cli, tmp_path):
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("".join(f"The fox number {n}.\n" for n in range(10, 34)) + "\n")
    code, out, _ = cli("data", "lengths", prompts, "--model", "toy", "--json")
    assert (code, json.loads(out)) == (0, {"model": "toy", "texts": 24, "free": 24, "shortest": 24})
    code, out, _ = cli("write", "The fox", "--length", "at most 20 chars", "--model", "toy", "--explain")
    below = "below the 5th percentile of what toy writes for such a source (36 to 36 chars, 24 texts measured)"
    assert (code, f"{below}; the shortest found is 9" in out) == (0, True)


def test_lengths_can_be_kept_beside_a_model(cli, tmp_path):
    (tmp_path / "prompts.txt").write_text("A fox.\n")
    assert cli("data", "lengths", tmp_path / "prompts.txt", "--model", "toy", "--out", tmp_path)[0] == 0
    assert json.loads((tmp_path / "lengths.write.json").read_text())["free"]["chars"] == [[6, 12]]


def test_the_shortest_texts_of_a_shortener(cli, tmp_path, monkeypatch):
    def shorten(self, texts, budgets):
        found = [(16, True, True, 0.9), (12, True, True, 0.5), (8, False, True, 0.6), (6, True, False, 0.6)]
        found += [(4, True, True, 0.1)]
        results = []
        for text in texts:
            best, *others = (
                Shortened(
                    *(text[:n], n, "chars", budgets, False, complete, "toy", 1),
                    **{"source": text, "intact": intact, "coverage": coverage},
                )
                for n, complete, intact, coverage in found
            )
            results.append(replace(best, candidates=others))
        return results

    monkeypatch.setattr(Shortener, "__init__", lambda self, writer: None)
    monkeypatch.setattr(Shortener, "shorten", shorten)
    (tmp_path / "texts.txt").write_text("A fox that runs fast.\n" * 2)
    code, out, _ = cli("data", "lengths", tmp_path / "texts.txt", "--model", "toy", "--shorten", "--out", tmp_path)
    assert (code, out) == (0, "toy: lengths of 2 texts as short as possible, from 2 lines\n")
    assert json.loads((tmp_path / "lengths.shorten.json").read_text())["shortest"]["chars"] == [[21, 12], [21, 12]]


def test_two_tasks(cli, tmp_path):
    code, _, err = cli("data", "lengths", tmp_path / "texts.txt", "--shorten", "--to", "it")
    assert (code, "--shorten and --to are two tasks" in err) == (2, True)


def test_a_file_without_lines(cli, tmp_path):
    (tmp_path / "empty.txt").write_text("\n\n")
    code, _, err = cli("data", "lengths", tmp_path / "empty.txt")
    assert (code, "has no lines with text" in err) == (2, True)


def test_explain_is_for_one_text(cli):
    code, _, err = cli("translate", "-", "--to", "it", "--length", "at most 9 chars", "--explain")
    assert (code, "--explain is for one text and a --length" in err) == (2, True)
