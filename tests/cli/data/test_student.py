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


@pytest.mark.parametrize("given", ["-0.1", "a", ""])
def test_costs_that_are_none_are_refused_before_a_model_is_loaded(cli, tmp_path, given):
    (tmp_path / "s.txt").write_text("One is here.\n")
    code, _, err = cli(
        "data", "student", tmp_path / "s.txt", tmp_path / "o.jsonl", "--model", "no/where", "--char-cost", given
    )
    assert code == 2
    assert "--char-cost" in err
