"""Checkpoints: a run that is killed resumes to the same result, and checkpoints are averaged."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from lengthwise.training.run_state import average, checkpoints, read_progress, read_weights
from toy_corpora import corpus
from toy_training import losses, values

# Trains the recipe in the first argument. In the second one: the step at which the process kills itself, in the middle
# of the step, or while it saves the checkpoint of that step.
SCRIPT = """
import json, os, signal, sys
import torch
torch.set_num_threads(1)
from lengthwise.training import loop, run_state, train
from lengthwise.training.recipe import parse_recipe

recipe, (where, step) = json.loads(sys.argv[1]), json.loads(sys.argv[2])
backward, save = loop._Run._backward, run_state.atomic.replace_folder

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def in_step(run, *arguments):
    backward(run, *arguments)
    if where == "step" and run.progress.step == step:
        kill()

def in_save(place, *arguments):
    if where == "save" and place.name == f"step-{step:08d}":
        kill()
    save(place, *arguments)

loop._Run._backward, run_state.atomic.replace_folder = in_step, in_save
train(parse_recipe(recipe))
"""


def trained(recipe: dict[str, Any], where: str = "", step: int = 0) -> int:
    """Train in a fresh process, the same environment for all, and return its exit code.

    Not in this process: earlier tests can have changed its arithmetic. On an ARM CPU without bfloat16 instructions, the
    first product in bfloat16 makes PyTorch disable oneDNN, and sums in float32 then differ in the last digit.
    """
    command = [sys.executable, "-c", SCRIPT, json.dumps(recipe), json.dumps([where, step])]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_and_resumed_is_uninterrupted(tmp_path: Path) -> None:
    data = {"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1), "dev_texts": 2}
    schedule = {"steps": 20, "log_every": 2, "save_every": 5, "evaluate_every": 7}
    killed = values(tmp_path, data=data, train=schedule)
    whole = killed | {"out": str(tmp_path / "whole")}
    run = Path(killed["out"])
    assert trained(killed, "step", 8) == -signal.SIGKILL
    assert read_progress(checkpoints(run)[-1]).step == 7  # the best on dev
    assert trained(killed, "save", 15) == -signal.SIGKILL
    assert list((run / "checkpoints").glob(".step-00000015*"))
    assert trained(killed) == trained(whole) == 0
    assert len(losses(run)) > 10
    assert losses(run) == losses(tmp_path / "whole")
    assert losses(run, "dev_loss") == losses(tmp_path / "whole", "dev_loss")
    resumed, uninterrupted = (read_weights(checkpoints(folder)[-1]) for folder in (run, tmp_path / "whole"))
    assert resumed.keys() == uninterrupted.keys()
    assert all(torch.equal(weight, uninterrupted[name]) for name, weight in resumed.items())
    assert not list((run / "checkpoints").glob(".step*"))


def test_average() -> None:
    first = {"w": torch.tensor([1.0, 3.0]), "n": torch.tensor(4), "still": torch.tensor(float("nan"))}
    second = {"w": torch.tensor([3.0, 5.0]), "n": torch.tensor(5), "still": torch.tensor(float("nan"))}
    mean = average([first, second])
    assert mean["w"].tolist() == [2.0, 4.0]
    assert int(mean["n"]) == 5
    assert average([first])["w"].tolist() == [1.0, 3.0]
