"""`lengthwise train` as a user runs it: output, files, errors, Ctrl-C."""

import json
import os
import re
import signal
import threading
import time
from contextlib import contextmanager

import pytest
import torch

from fresh_process import fresh_process
from lengthwise.cli import main
from lengthwise.training import loop
from lengthwise.training.run_state import checkpoints, read_progress, read_weights, step_of

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
    assert re.match(r"time from \d steps of [\d,]+ tokens on this machine", cost["basis"])
    assert "dev set" not in cost["basis"]
    with_dev = cli("train", recipe, "--dry-run", "--set", f"data.dev={tmp_path / 'train.jsonl'}", "--json")[1]
    assert "without the dev set" in json.loads(with_dev)["basis"]
    assert cost["warning"] == ""
    out = cli("train", recipe, "--dry-run", "--set", "train.steps=7", "--set", "train.warmup=7")[1]
    assert re.search(r"^  steps +7; train.warmup = 7 is not over", out, re.MULTILINE)
    longer = json.loads(cli("train", recipe, "--dry-run", "--set", "train.steps=7000", "--json")[1])
    assert longer["seconds"] > 10 * cost["seconds"]  # a thousand times as many steps, on a noisy machine
    assert not (tmp_path / "run").exists()


def test_trains_a_model_that_writes(cli, recipe, tmp_path):
    code, out, err = cli("train", recipe, "--out", tmp_path / "other")
    assert (code, out) == (0, f"{tmp_path / 'other' / 'model'}\n")
    assert not (tmp_path / "run").exists()
    ask = ["write", "The cat sleeps.", "--length", "at most 9 chars", "--model", out.strip(), "--beams", "5"]
    assert cli(*ask)[0] == 0
    made = (tmp_path / "other" / "model" / "model.safetensors").stat().st_mtime_ns
    code, again, err = cli("train", recipe, "--out", tmp_path / "other", "--json")  # all of it is done
    assert (code, json.loads(again)) == (0, {"model": out.strip()})
    assert err.startswith(f"this run is finished: the model is in {out}to start again, or to train longer, ")
    assert "resuming from" not in err
    assert (tmp_path / "other" / "model" / "model.safetensors").stat().st_mtime_ns == made
    code, _, err = cli("train", recipe, "--out", tmp_path / "other", "--no-resume")
    assert code == 2
    assert re.search(r"^lengthwise: .+ has a run already", err, re.MULTILINE)


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


def test_data_that_are_not_there_send_the_reader_to_the_recipe(cli, recipe):
    code, _, err = cli("train", recipe, "--dry-run", "--set", "data.train=nowhere.jsonl")
    assert code == 2
    assert "no file 'nowhere.jsonl'" in err
    assert err.endswith(f"; comments at the top of {recipe} may say how its data are made\n")


@pytest.mark.parametrize("only_plan", [["--dry-run"], []])
def test_all_data_that_are_not_there_are_named_at_once(cli, recipe, tmp_path, monkeypatch, only_plan):
    monkeypatch.chdir(tmp_path)
    files = "[a.jsonl, train.jsonl, b.en, {files: [train.jsonl, 'c*.tsv', 'd.en,d.it'], weight: 2}]"
    code, _, err = cli("train", recipe, *only_plan, "--set", f"data.train={files}", "--set", "data.dev=a.jsonl")
    assert (code, f"no files 'a.jsonl', 'b.en', 'c*.tsv', 'd.en', 'd.it' (looked from {tmp_path});" in err) == (2, True)


def test_no_such_recipe(cli):
    code, _, err = cli("train", "nowhere.yaml")
    assert (code, "cannot read the recipe nowhere.yaml" in err) == (2, True)


# ---- Ctrl-C


HANGS = 1200  # seconds; only a program that hangs takes so long


def waiting_command(endless, args):
    """Run a command whose third step does not end: until Ctrl-C is pressed, or ever."""
    step, steps = loop._Run._step, []

    def waiting_step(*given):
        step(*given)
        steps.append(1)
        if len(steps) == 3:
            os.write(
                2, b"waiting\n"
            )  # not by print: Ctrl-C would find it still at work, and no message could be printed
            while endless or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
                time.sleep(0.01)

    loop._Run._step = waiting_step
    return main(list(args))


class Running:
    """A command in a process of its own: its number, what it prints and how it ends."""

    def __init__(self, *args, endless, folder):
        self.out = folder / "stdout"
        reader, writer = os.pipe()
        with open(self.out, "w") as out:
            self.process = fresh_process(waiting_command, endless, args, stdout=out.fileno(), stderr=writer)
        os.close(writer)
        self.stderr = os.fdopen(reader)

    def wait_for(self, word):
        """Return when the program prints a line that starts with this word."""
        said = []
        while not (line := self.stderr.readline()).startswith(word):
            assert line, f"it ended before it printed {word!r}: {''.join(said)}"
            said.append(line)

    def press_ctrl_c(self):
        os.killpg(self.process.pid, signal.SIGINT)  # a terminal sends it to the workers as well

    def ended(self):
        """Return the exit code, stdout, and the rest of stderr."""
        err = self.stderr.read()
        self.process.join()
        return self.process.exitcode, self.out.read_text(), err


@contextmanager
def started(*args, endless, folder):
    running = Running(*args, endless=endless, folder=folder)
    watchdog = threading.Timer(HANGS, running.process.kill)
    watchdog.start()
    try:
        yield running
    finally:
        watchdog.cancel()
        running.process.kill()
        running.stderr.close()


@pytest.mark.parametrize("workers", [0, 1])
def test_ctrl_c_leaves_a_checkpoint_to_resume_from(cli, recipe, tmp_path, workers):
    """The resumed run ends as if it had never been stopped."""
    settings = [
        "train.steps=8",
        "train.log_every=1",
        "train.average=2",
        "train.save_every=5",
        f"batch.workers={workers}",
    ]
    settings += ["model.fresh.dropout=0.3", "model.fresh.attention_dropout=0.3"]
    ask = ["train", str(recipe), *(word for setting in settings for word in ("--set", setting))]
    run, whole = tmp_path / "run", tmp_path / "whole"
    with started(*ask, endless=False, folder=tmp_path) as running:
        running.wait_for("waiting")
        running.press_ctrl_c()
        code, out, err = running.ended()
    assert (code, out) == (130, "")
    assert [step_of(left) for left in checkpoints(run)] == [3]
    first, last = err.splitlines()[-2:]
    assert first == "stopping: the current step is completed and a checkpoint written; Ctrl-C again quits at once"
    assert last.startswith(f"lengthwise: stopped after step 3, with a checkpoint in {run}; ")
    code, _, err = cli(*ask)
    assert (code, "resuming from step 3\n" in err) == (0, True)
    assert cli(*ask, "--out", whole)[0] == 0
    assert [step_of(path) for path in checkpoints(run)] == [step_of(path) for path in checkpoints(whole)] == [5, 8]
    for mine, other in zip(checkpoints(run), checkpoints(whole), strict=True):
        assert not read_progress(mine).interrupted
        weights, others = read_weights(mine), read_weights(other)
        assert all(torch.equal(weights[name], others[name]) for name in others)
    models = [(folder / "model" / "model.safetensors").read_bytes() for folder in (run, whole)]
    assert models[0] == models[1]


def test_a_second_ctrl_c_quits_at_once(recipe, tmp_path):
    """In the middle of a step that would never end."""
    with started("train", str(recipe), endless=True, folder=tmp_path) as running:
        for word in ("waiting", "stopping"):
            running.wait_for(word)
            running.press_ctrl_c()
        code, out, err = running.ended()
    assert (code, out) == (130, "")
    assert "stopped at once; the same command resumes from the last checkpoint" in err
    assert checkpoints(tmp_path / "run") == []
