"""Batches in the shape of a captured step, and the capture itself where there is a GPU."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from families import CONTROLS, tiny
from lengthwise.controls.attach import attach
from lengthwise.training import loop, train
from lengthwise.training.batches import Batch, collate
from lengthwise.training.cuda_graphs import Graphs, fill, widened
from lengthwise.training.loss import summed_loss
from lengthwise.training.recipe import parse_recipe
from toy_training import NO_DROPOUT, examples_for, layout_for, losses, response_logits, values


def loss_and_gradients(model: Any, batch: Batch) -> tuple[float, dict[str, torch.Tensor]]:
    model.zero_grad()
    loss = summed_loss(response_logits(model, batch), batch.labels)
    loss.backward()
    return float(loss.detach()), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("family", ["llama", "marian"])
def test_added_rows_and_labels_change_nothing(byte_bpe: Any, family: str) -> None:
    model = attach(tiny(family, byte_bpe), CONTROLS["difference"](), byte_bpe).eval()
    examples = examples_for(model, byte_bpe, "chars", count=30)[::5]
    several, few = collate(examples, layout_for(model)), collate(examples[:2], layout_for(model))
    few = replace(few, inputs={key: padded(value, several.inputs[key]) for key, value in few.inputs.items()})
    width = several.inputs["decoder_input_ids" if family == "marian" else "input_ids"].shape[1]
    few = replace(few, rows=several.rows[: len(few.rows)])  # of the same first rows, in batches of one width
    static = widened(several, len(several.names) + 3, len(several.labels) + 5)
    assert int(static.rows.max()) < len(several.names) * width
    for batch in (several, few, several):
        fill(static, batch)
        (loss, gradients), (wanted, plain) = loss_and_gradients(model, static), loss_and_gradients(model, batch)
        assert loss == pytest.approx(wanted, rel=1e-5)
        for name, gradient in plain.items():
            assert torch.allclose(gradients[name], gradient, rtol=1e-4, atol=1e-5), name


def padded(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """As wide as `like`, on the right."""
    missing = like.shape[1] - tensor.shape[1] if tensor.dim() > 1 else 0
    return torch.nn.functional.pad(tensor, (0, missing)) if missing else tensor


class NoSynchronisation(TorchDispatchMode):
    """Fails where the processor would wait for a value of the device: such a step cannot be captured."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().split(".")[0]
        assert name not in {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal"}, name
        picks = args[1] if name in {"aten::index", "aten::index_put_"} else []
        assert torch.bool not in {pick.dtype for pick in picks if pick is not None}, name
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("control", ["difference", "ratio", "progress+tokens", "whole", "units", "countdown_head"])
@pytest.mark.parametrize("family", ["llama", "marian"])
def test_a_step_does_not_wait_for_the_device(byte_bpe: Any, family: str, control: str) -> None:
    """Except with LayerDrop, which is drawn in Python: such a training is not captured."""
    model = attach(tiny(family, byte_bpe), CONTROLS[control](), byte_bpe).eval()
    unit = {
        "units": "tokens",
        "countdown_head": "tokens",
        "ratio": "bytes",
        "progress+tokens": "words",
        "whole": "tokens",
    }
    batch = collate(examples_for(model, byte_bpe, unit.get(control, "chars"), count=10), layout_for(model))
    with NoSynchronisation():
        summed_loss(response_logits(model, batch), batch.labels).backward()


class EagerGraphs(Graphs):
    """As on a GPU, but a replay is the eager step."""

    def capture(self, batch: Batch, factor: torch.Tensor) -> Any:
        loss = torch.zeros((), device=batch.labels.device)
        return lambda: loss.copy_(self.step(batch, factor)), loss


def eager_graphs(run: Any, sharded: bool) -> Graphs:
    for parameter in run.trained:
        parameter.grad = torch.zeros_like(parameter)
    made.append(EagerGraphs(run._graph_step, run.recipe.batch.tokens, run.device, run.say))
    return made[-1]


made: list[Graphs] = []


def test_a_run_with_graphs_learns_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes recur, two batches make a step, and the run is stopped and resumed in between."""
    settings = values(tmp_path, model=NO_DROPOUT, train={"steps": 24, "save_every": 1}, batch={"accumulate": 2})
    train(parse_recipe(settings))
    monkeypatch.setattr(loop._Run, "_make_graphs", eager_graphs)
    by_graphs = parse_recipe(settings | {"out": str(tmp_path / "graphs")})
    step = loop._Run._step

    def stopped(self: Any, *args: Any) -> None:
        if self.progress.step == 14:
            raise RuntimeError("stopped")
        step(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(loop._Run, "_step", stopped)
        with pytest.raises(RuntimeError, match="stopped"):
            train(by_graphs)
    assert made[-1].captured
    train(by_graphs)
    assert made[-1].captured
    assert losses(tmp_path / "graphs") == pytest.approx(losses(tmp_path / "run"), rel=1e-3)


def test_the_first_batch_of_a_shape_has_the_shape_of_the_graph(byte_bpe: Any) -> None:
    model = attach(tiny("llama", byte_bpe), CONTROLS["difference"](), byte_bpe)
    batch = collate(examples_for(model, byte_bpe, "chars", count=30)[:2], layout_for(model))
    seen: list[tuple[int, int]] = []

    def step(given: Batch, factor: torch.Tensor) -> torch.Tensor:
        seen.append((len(given.inputs["input_ids"]), int((given.labels >= 0).sum())))
        return torch.zeros(())

    graphs = EagerGraphs(step, 20 * batch.padded, torch.device("cpu"), print)
    for _ in range(3):
        graphs(batch, 1.0)
    assert seen == [(40, len(batch.labels))] * 3


def test_a_model_that_cannot_be_captured_is_trained_without_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any, *args: Any) -> Any:
        raise RuntimeError("not while capturing")

    monkeypatch.setattr(loop._Run, "_make_graphs", eager_graphs)
    monkeypatch.setattr(EagerGraphs, "capture", refuse)
    said: list[str] = []
    train(parse_recipe(values(tmp_path, model=NO_DROPOUT, train={"steps": 24})), say=said.append)
    assert [text for text in said if "not while capturing" in text]
    assert made[-1].failed


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
def test_replayed_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = values(tmp_path, model=NO_DROPOUT, train={"steps": 40, "compile": True, "precision": "no"})
    recorded: list[Graphs] = []
    record = Graphs._capture
    monkeypatch.setattr(Graphs, "_capture", lambda self, *args: (recorded.append(self), record(self, *args))[1])
    train(parse_recipe(settings))
    assert recorded[-1].captured
    assert not recorded[-1].failed
    monkeypatch.setattr(Graphs, "_capture", lambda self, key, batch: None)
    train(parse_recipe(settings | {"out": str(tmp_path / "plain")}))
    assert losses(tmp_path / "run") == pytest.approx(losses(tmp_path / "plain"), rel=1e-3)
