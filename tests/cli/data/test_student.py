"""`lengthwise data sentences` and `data student`: from corpora to the training data of a smaller translator."""

import json

import pytest


def test_sentences_of_corpora_without_those_of_the_test_set(cli, tmp_path):
    train, test, out = tmp_path / "train.jsonl", tmp_path / "test.txt", tmp_path / "out.txt"
    train.write_text(json.dumps({"source": "One is here. Two is here. Three is here.", "target": "…"}) + "\n")
    test.write_text("Two is here.\n")
    code, printed, err = cli("data", "sentences", train, "--out", out, "--without", test)
    assert (code, err) == (0, "")
    assert printed == f"{out}: 2 sentences\n"
    assert sorted(out.read_text().splitlines()) == ["One is here.", "Three is here."]


def test_sentences_of_the_other_side(cli, tmp_path):
    train, test, out = tmp_path / "train.jsonl", tmp_path / "test.jsonl", tmp_path / "out.txt"
    pairs = [["One is here.", "Un est ici."], ["Two is here.", "Deux est ici."]]
    train.write_text(json.dumps({"id": "1", "segs": pairs}) + "\n")
    test.write_text(json.dumps({"id": "2", "segs": pairs[1:]}) + "\n")
    code, _, err = cli("data", "sentences", train, "--fields", "target,source", "--without", test, "--out", out)
    assert (code, err) == (0, "")
    assert out.read_text() == "Un est ici.\n"
    code, _, err = cli("data", "sentences", train, "--fields", "target", "--out", out)
    assert code == 2
    assert "--fields takes two names" in err


@pytest.mark.parametrize("given", ["-0.1", "a", ""])
def test_costs_that_are_none_are_refused_before_a_model_is_loaded(cli, tmp_path, given):
    (tmp_path / "s.txt").write_text("One is here.\n")
    code, _, err = cli(
        "data", "student", tmp_path / "s.txt", tmp_path / "o.jsonl", "--model", "no/where", "--char-cost", given
    )
    assert code == 2
    assert "--char-cost" in err
