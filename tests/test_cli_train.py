"""`lengthwise train` as a user runs it: what it prints, what it leaves, how it fails."""

import json
import re

import pytest

from lengthwise.cli import main

RECIPE = """\
name: toy
out: {out}
model:
  fresh: {{size: tiny, vocabulary: 310, max_positions: 128}}
controls:
  - {{control: encoding, scale: 1.0}}
data:
  train: {data}
  max_tokens: 64
batch: {{tokens: 256, workers: 0}}
train: {{steps: 4, lr: 1.0e-3, warmup: 2}}
"""


@pytest.fixture
def cli(capfd):
    def run(*args):
        return main([str(arg) for arg in args]), *capfd.readouterr()

    return run


@pytest.fixture
def recipe(tmp_path):
    rows = [{"source": f"The cat number {n} sleeps.", "target": f"Il gatto numero {n} dorme."} for n in range(60)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE.format(out=tmp_path / "run", data=tmp_path / "train.jsonl"))
    return path


def test_a_dry_run_says_what_it_costs_and_writes_nothing(cli, recipe, tmp_path):
    code, out, _ = cli("train", recipe, "--dry-run")
    assert (code, out.startswith("toy\n  parameters ")) == (0, True)
    code, out, _ = cli("train", recipe, "--dry-run", "--set", "train.steps=7", "--json")
    cost = json.loads(out)
    assert (code, cost["steps"]) == (0, 7)
    assert re.match(r"time from \d steps of [\d,]+ tokens timed here", cost["basis"])
    longer = json.loads(cli("train", recipe, "--dry-run", "--set", "train.steps=7000", "--json")[1])
    assert 50 < longer["seconds"] / cost["seconds"] < 20_000  # a thousand times as many steps, on a noisy machine
    assert not (tmp_path / "run").exists()


def test_trains_a_model_that_writes(cli, recipe, tmp_path):
    code, out, err = cli("train", recipe, "--out", tmp_path / "other")
    assert (code, out) == (0, f"{tmp_path / 'other' / 'model'}\n")
    assert not (tmp_path / "run").exists()
    ask = ["write", "The cat sleeps.", "--length", "at most 9 chars", "--model", out.strip(), "--beams", "5"]
    assert cli(*ask)[0] == 0
    code, again, _ = cli("train", recipe, "--out", tmp_path / "other", "--json")  # all of it is done
    assert (code, json.loads(again)) == (0, {"model": out.strip()})
    code, _, err = cli("train", recipe, "--out", tmp_path / "other", "--no-resume")
    assert code == 2
    assert re.search(r"^lengthwise: .+ holds a run already", err, re.MULTILINE)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--set", "train.lrr=1"], "did you mean 'lr'?"),
        (["--set", "train.lr"], "section.key=value"),
        (["--set", "unit=ells"], "unknown unit 'ells'"),
    ],
)
def test_bad_usage_is_one_line(cli, recipe, args, says):
    code, out, err = cli("train", recipe, *args)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"lengthwise: .+\n", err)
    assert says in err


def test_no_such_recipe(cli):
    code, _, err = cli("train", "nowhere.yaml")
    assert (code, "cannot read the recipe nowhere.yaml" in err) == (2, True)
