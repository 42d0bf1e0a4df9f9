"""Checkpoints: a run that is killed resumes to the same result, and checkpoints are averaged."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from fresh_process import fresh_process
from lengthwise.training import loop, run_state, train
from lengthwise.training.recipe import parse_recipe
from lengthwise.training.run_state import average, checkpoints, read_progress, read_weights
from toy_corpora import corpus
from toy_training import losses, values


def killed_training(recipe: dict[str, Any], where: str, step: int) -> None:
    """Train, and kill this process at a step: in the middle of it, or while its checkpoint is saved."""
    backward, save = loop._Run._backward, run_state.atomic.replace_folder

    def in_step(run: Any, *arguments: Any) -> None:
        backward(run, *arguments)
        if where == "step" and run.progress.step == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def in_save(place: Path, *arguments: Any) -> None:
        if where == "save" and place.name == f"step-{step:08d}":
            os.kill(os.getpid(), signal.SIGKILL)
        save(place, *arguments)

    loop._Run._backward, run_state.atomic.replace_folder = in_step, in_save
    train(parse_recipe(recipe))


def trained(recipe: dict[str, Any], where: str = "", step: int = 0) -> int | None:
    """Train in a fresh process, the same environment for all, and return its exit code.

    Not in this process: earlier tests can have changed its arithmetic. On an ARM CPU without bfloat16 instructions, the
    first product in bfloat16 makes PyTorch disable oneDNN, and sums in float32 then differ in the last digit.
    """
    with open(os.devnull, "w") as nowhere:
        process = fresh_process(killed_training, recipe, where, step, stdout=nowhere.fileno(), stderr=2)
        process.join()
    return process.exitcode


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_and_resumed_is_uninterrupted(tmp_path: Path) -> None:
    data = {"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1), "dev_texts": 2}
    schedule = {"steps": 10, "log_every": 2, "save_every": 3, "evaluate_every": 4}
    killed = values(tmp_path, data=data, train=schedule)
    whole = killed | {"out": str(tmp_path / "whole")}
    run = Path(killed["out"])
    assert trained(killed, "step", 5) == -signal.SIGKILL
    assert read_progress(checkpoints(run)[-1]).step == 4  # the best on dev
    assert trained(killed, "save", 6) == -signal.SIGKILL
    assert list((run / "checkpoints").glob(".step-00000006*"))
    assert trained(killed) == trained(whole) == 0
    assert len(losses(run)) > 5
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
