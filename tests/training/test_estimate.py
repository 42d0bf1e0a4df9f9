"""The estimate of a recipe's cost, against the run itself."""

from pathlib import Path

import pytest

from lengthwise.training import plan, train
from lengthwise.training.run_state import checkpoints
from toy_training import mute, toy_recipe

RECIPE = Path(__file__).parents[2] / "recipes" / "smollm2-ldpe.yaml"


def test_plan(tmp_path: Path, toy_base: Path) -> None:
    small = toy_recipe(
        RECIPE, tmp_path, str(toy_base), ["train.steps=null", "train.epochs=2", "data.documents_per_epoch=null"]
    )
    cost = plan(small)
    assert 0 < cost.trainable < cost.parameters
    assert cost.documents == 180  # of three corpora
    train(small, say=mute)
    steps = int(checkpoints(tmp_path / "run")[-1].name.removeprefix("step-"))
    assert cost.steps == pytest.approx(steps, abs=1)
    assert cost.memory > 4 * cost.parameters
    for word in ("parameters", "steps", "tokens", "memory", "on this machine"):
        assert word in str(cost)
