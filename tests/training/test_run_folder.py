"""The folder of a run: who may write into it, and which checkpoints make the final model."""

from pathlib import Path

import pytest
import torch
import yaml

from lengthwise.models.checkpoint import load_model
from lengthwise.training import TrainingError, loop, train
from lengthwise.training.run_state import checkpoints, read_weights
from toy_corpora import corpus
from toy_training import losses, small


def test_resuming_another_recipe_is_refused(tmp_path: Path) -> None:
    train(small(tmp_path))
    with pytest.raises(TrainingError, match=r"train\.lr \(0\.002 → 0\.01\)"):
        train(small(tmp_path, train={"lr": 1e-2}))
    with pytest.raises(TrainingError, match="has a run already"):
        train(small(tmp_path), resume=False)
    train(small(tmp_path, batch={"workers": 0}, train={"log_every": 3}))  # changes no result


def test_a_run_of_an_earlier_version_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its recipe has the names that controls had then, and lacks keys that there were not."""
    recipe = small(tmp_path, controls=[{"control": "encoding", "scale": 1.0, "gain": 1.0}])
    with monkeypatch.context() as patch:
        patch.setattr(loop, "finish", lambda recipe: None)
        train(recipe)
    file = tmp_path / "run" / "recipe.yaml"
    values = yaml.safe_load(file.read_text())
    values["controls"] = [{"control": "encoding", "scale": 1.0, "volume": 1.0}]
    del values["train"]["half"]
    file.write_text(yaml.safe_dump(values))
    assert train(recipe).exists()


def test_final_model_is_the_average(tmp_path: Path) -> None:
    folder = train(small(tmp_path, train={"average": 3}))
    saved = checkpoints(tmp_path / "run")
    assert [path.name for path in saved] == ["step-00000004", "step-00000008", "step-00000012"]
    model, _ = load_model(folder)
    name = "model.decoder.layers.0.fc1.weight"
    expected = torch.stack([read_weights(path)[name] for path in saved]).mean(0)
    assert torch.allclose(model.state_dict()[name], expected, atol=1e-6)


@pytest.mark.parametrize(("average", "taken"), [(None, 0), (1, 1)])  # the best on dev, unless the last is asked for
def test_best_and_last_are_kept_and_patience_ends(tmp_path: Path, average: int | None, taken: int) -> None:
    dev = {"dev": corpus(tmp_path / "dev.jsonl", 20, seed=1)}
    rates = {
        "steps": 200,
        "lr": 1e-3,
        "warmup": 8,
        "schedule": "constant",
        "evaluate_every": 2,
        "keep": 1,
        "patience": 2,
        "average": average,
    }
    recipe = small(tmp_path, data=dev, train=rates)
    rate = loop.learning_rate
    loop.learning_rate = lambda train, step, share: 1e-3 if step < 8 else 0.5  # from there on it only gets worse
    try:
        folder = train(recipe)
    finally:
        loop.learning_rate = rate
    found = losses(tmp_path / "run", "dev_loss")
    best = min(found, key=lambda step: found[step])
    last = max(losses(tmp_path / "run"))
    assert best < last < 200
    assert [int(path.name.removeprefix("step-")) for path in checkpoints(tmp_path / "run")] == [best, last]
    model, _ = load_model(folder)
    name = "model.decoder.layers.0.fc1.weight"
    best_and_last = [read_weights(path)[name] for path in checkpoints(tmp_path / "run")]
    assert not torch.equal(*best_and_last)
    assert torch.equal(model.state_dict()[name], best_and_last[taken])
