"""`score` and `evaluate` with a reverse model, as a user runs them."""

import json

import pytest

from by_hand import HYPS, SRCS, back_by_hand
from families import tiny
from lengthwise import save
from lengthwise.cli import main
from lengthwise.metrics.models import reverse_model
from lengthwise.scoring.reverse import ReverseModel


@pytest.fixture(scope="module")
def model(sp_unigram):
    return tiny("marian", sp_unigram)


@pytest.fixture(scope="module")
def folder(model, sp_unigram, tmp_path_factory):
    return str(save(model, sp_unigram, tmp_path_factory.mktemp("models") / "backwards"))


@pytest.fixture(scope="module")
def decoder(byte_bpe, tmp_path_factory):
    return str(save(tiny("llama", byte_bpe), byte_bpe, tmp_path_factory.mktemp("models") / "decoder"))


@pytest.fixture
def cli(capfd):
    def run(*args):
        return main([str(arg) for arg in args]), *capfd.readouterr()

    return run


def values(shown):
    return {one["name"]: one["value"] for one in json.loads(shown)["scores"]}


def test_score_with_a_reverse_model(cli, folder, decoder, tmp_path):
    for name, lines in {"hyp": HYPS, "src": SRCS}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    ask = ["score", "--hyp", tmp_path / "hyp", "--src", tmp_path / "src", "--json"]
    names = {f"{name}:{folder}" for name in ("coverage", "tail", "reverse")}
    code, shown, err = cli(*ask, "--metrics", "lr-src", "--reverse", folder, "--against", tmp_path / "src")
    assert (code, err) == (0, "")
    assert values(shown).keys() == {"lr-src", *names}
    assert {one["name"] for one in json.loads(shown)["against"]["comparisons"]} == {"lr-src", *names}
    assert names < values(cli(*ask, "--reverse", folder)[1]).keys()  # beside the usual ones
    assert values(cli(*ask, "--metrics", f"tail:{folder}", "--reverse", folder)[1]).keys() == names  # none twice
    code, _, err = cli("score", "--hyp", tmp_path / "hyp", "--reverse", folder)
    assert (code, "--src" in err) == (2, True)
    code, _, err = cli(*ask, "--reverse", decoder)
    assert (code, "only a decoder" in err, err.count("\n")) == (2, True, 1)


def test_evaluate_keeps_the_back_translations(cli, model, sp_unigram, folder, decoder, tmp_path, monkeypatch):
    data, out = tmp_path / "test.jsonl", tmp_path / "out"
    pairs = zip(SRCS, ["Dove?", "Il mare", "Una luce", "No."], strict=True)
    data.write_text("".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in pairs))
    ask = ["evaluate", folder, data, "--length", "at most 30 chars", "--out", out, "--json", "--metrics", "mae"]
    code, _, err = cli(*ask, "--reverse", decoder)
    assert (code, "only a decoder" in err) == (2, True)
    assert not out.exists()  # refused before anything is decoded
    code, shown, _ = cli(*ask, "--reverse", folder)
    assert code == 0
    rows = [json.loads(line) for line in (out / "outputs.jsonl").read_text().splitlines()]
    for row in rows:
        [(name, back)] = row["back"].items()
        assert name.startswith("backwards ")
        assert back == (back_by_hand(model, sp_unigram, row["text"]) if row["text"] else "")
    # A later run finds them there.
    reverse_model.cache_clear()
    asked, generate = [], ReverseModel._generate
    monkeypatch.setattr(
        ReverseModel, "_generate", lambda self, heads: asked.append(len(heads)) or generate(self, heads)
    )
    again = cli(*ask, "--reverse", folder, "--against", out)[1]
    assert sum(asked) <= 1  # one reference, before anything is decoded
    assert values(again) == values(shown)
