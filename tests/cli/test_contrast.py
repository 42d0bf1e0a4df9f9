"""`lengthwise contrast`: a table, JSON, ContraPro's files, and bad usage."""

import json
from pathlib import Path

import pytest

from families import tiny

OURS = Path(__file__).parents[1] / "golden/contrasts.en-fr.jsonl"


@pytest.fixture(scope="module")
def marian(sp_unigram, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "marian"
    tiny("marian", sp_unigram).save_pretrained(folder)
    sp_unigram.save_pretrained(folder)
    return str(folder)


def test_table_and_json(cli, marian):
    code, out, _ = cli("contrast", OURS, "--model", marian, "--context", 2)
    assert code == 0
    assert "| contrastive phenomenon formality |" in out
    code, out, _ = cli("contrast", OURS, "--model", marian, "--context", 2, "--json")
    found = {one["name"]: one for one in json.loads(out)}
    assert set(found) == {
        "contrastive",
        *(f"contrastive phenomenon {name}" for name in ("cohesion", "formality", "pronoun")),
        *(f"contrastive distance {name}" for name in (1, 2)),
    }
    right = found["contrastive"]["per_item"]
    assert len(right) == 32
    assert found["contrastive"]["value"] == sum(right) / 32
    assert "context:2|sep:space" in found["contrastive"]["signature"]


def test_contrapro(cli, marian, tmp_path):
    item = {"src segment": "It fell.", "ref segment": "Er fiel.", "errors": [{"contrastive": "Es fiel."}]}
    item |= {"src pronoun": "it", "ref pronoun": "er", "ante distance": 0}
    (tmp_path / "contrapro.json").write_text(json.dumps([item]))
    for name, text in (("en", "A hat.\n\n"), ("de", "Ein Hut.\n\n")):
        (tmp_path / f"context.{name}").write_text(text)
    files = ["--context-source", tmp_path / "context.en", "--context-target", tmp_path / "context.de"]
    code, out, err = cli("contrast", tmp_path / "contrapro.json", "--model", marian, "--context", 1, *files)
    assert code == 0, err
    assert "contrastive pronoun it:er" in out
    code, _, err = cli("contrast", tmp_path / "contrapro.json", "--model", marian, "--context", 1)
    assert (code, "no item has any" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([OURS], "--model is missing"),
        ([OURS, "--model", "x", "--context-source", "a"], "give both"),
        (["none.jsonl", "--model", "x"], "cannot read none.jsonl"),
    ],
)
def test_bad_usage(cli, arguments, says):
    code, _, err = cli("contrast", *arguments)
    assert code == 2
    assert says in err
