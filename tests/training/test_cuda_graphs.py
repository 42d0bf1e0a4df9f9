"""Batches in the shape of a recorded step, and the recording itself where there is a GPU."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from torch.utils._python_dispatch import TorchDispatchMode

from families import CONTROLS, tiny
from lengthwise.controls import CountdownHead
from lengthwise.controls.attach import attach
from lengthwise.training import loop, train
from lengthwise.training.batches import Batch, collate, up
from lengthwise.training.cuda_graphs import Graphs, fill, widened
from lengthwise.training.loss import response_logits, summed_loss
from lengthwise.training.recipe import parse_recipe
from training.test_batches import examples_for, layout_for
from training.test_loop import values


@given(some.integers(1, 100_000), some.sampled_from([1, 8, 12, 16]))
def test_few_sizes_and_little_padding(count: int, multiple: int) -> None:
    found = up(count, multiple)
    assert count <= found < count + count / 8 + multiple + 1
    assert found % multiple == 0
    assert multiple == 12 or up(found, multiple) == found


def test_eight_sizes_an_octave() -> None:
    assert len({up(count, 1) for count in range(256, 512)}) == 9  # the ends of the octave included
    assert [up(count, 8) for count in (3, 100, 200, 390)] == [8, 104, 208, 416]


def learnt(model: Any, batch: Batch) -> tuple[float, dict[str, torch.Tensor]]:
    model.zero_grad()
    loss = summed_loss(response_logits(model, batch), batch.labels)
    loss.backward()
    return float(loss.detach()), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("family", ["llama", "marian"])
def test_what_is_added_teaches_nothing(byte_bpe: Any, family: str) -> None:
    model = attach(tiny(family, byte_bpe), CONTROLS["difference"](), byte_bpe).eval()
    examples = examples_for(model, byte_bpe, "chars", count=30)[::5]
    several, few = collate(examples, layout_for(model)), collate(examples[:2], layout_for(model))
    few = replace(few, inputs={key: padded(value, several.inputs[key]) for key, value in few.inputs.items()})
    width = several.inputs["decoder_input_ids" if family == "marian" else "input_ids"].shape[1]
    few = replace(few, rows=several.rows[: len(few.rows)])  # of the same first rows, in batches of one width
    still = widened(several, len(several.names) + 3, len(several.labels) + 5)
    assert int(still.rows.max()) < len(several.names) * width
    for batch in (several, few, several):
        fill(still, batch)
        (loss, gradients), (wanted, plain) = learnt(model, still), learnt(model, batch)
        assert loss == pytest.approx(wanted, rel=1e-5)
        for name, gradient in plain.items():
            assert torch.allclose(gradients[name], gradient, rtol=1e-4, atol=1e-5), name


def padded(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """As wide as `like`, on the right."""
    missing = like.shape[1] - tensor.shape[1] if tensor.dim() > 1 else 0
    return torch.nn.functional.pad(tensor, (0, missing)) if missing else tensor


class Unasked(TorchDispatchMode):
    """Fails where the processor would wait for an answer of the device: a step that does cannot be recorded."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().split(".")[0]
        assert name not in {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal"}, name
        picks = args[1] if name in {"aten::index", "aten::index_put_"} else []
        assert torch.bool not in {pick.dtype for pick in picks if pick is not None}, name
        return func(*args, **(kwargs or {}))


PLANNER = {"planner": lambda: [CountdownHead(("tokens", "words", "chars"), at_most=True, hidden=8)]}


@pytest.mark.parametrize("control", ["difference", "ratio", "progress+tokens", "whole", "units", "planner"])
@pytest.mark.parametrize("family", ["llama", "marian"])
def test_a_step_asks_the_device_nothing(byte_bpe: Any, family: str, control: str) -> None:
    """But for LayerDrop, which asks the processor: a training with it is not recorded."""
    model = attach(tiny(family, byte_bpe), (CONTROLS | PLANNER)[control](), byte_bpe).eval()
    unit = {"units": "tokens", "planner": "tokens", "ratio": "bytes", "progress+tokens": "words", "whole": "tokens"}
    batch = collate(examples_for(model, byte_bpe, unit.get(control, "chars"), count=10), layout_for(model))
    with Unasked():
        summed_loss(response_logits(model, batch), batch.labels).backward()


class Played(Graphs):
    """As on a GPU, but what is recorded is the step itself."""

    def capture(self, batch: Batch, factor: torch.Tensor) -> Any:
        loss = torch.zeros((), device=batch.labels.device)
        return lambda: loss.copy_(self.learn(batch, factor)), loss


def played(run: Any, sharded: bool) -> Graphs:
    for parameter in run.trained:
        parameter.grad = torch.zeros_like(parameter)
    made.append(Played(run._learn, run.recipe.batch.tokens, run.device, run.say))
    return made[-1]


made: list[Graphs] = []
STILL = {"fresh": {"size": "tiny", "vocabulary": 360, "dropout": 0.0, "attention_dropout": 0.0}}


def losses_in(folder: Path) -> list[float]:
    return [row["loss"] for row in map(json.loads, (folder / "metrics.jsonl").open()) if "loss" in row]


def test_a_run_learns_the_same_by_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes come again, two batches make a step, and the run is stopped and goes on in between."""
    settings = values(tmp_path, model=STILL, train={"steps": 24, "save_every": 1}, batch={"accumulate": 2})
    train(parse_recipe(settings))
    monkeypatch.setattr(loop._Run, "_graphs", played)
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
    assert made[-1].recorded
    train(by_graphs)
    assert made[-1].recorded
    assert losses_in(tmp_path / "graphs") == pytest.approx(losses_in(tmp_path / "run"), rel=1e-3)


def test_the_first_batch_of_a_shape_is_learnt_from_in_the_shape_of_the_graph(byte_bpe: Any) -> None:
    model = attach(tiny("llama", byte_bpe), CONTROLS["difference"](), byte_bpe)
    batch = collate(examples_for(model, byte_bpe, "chars", count=30)[:2], layout_for(model))
    seen: list[tuple[int, int]] = []

    def learn(given: Batch, factor: torch.Tensor) -> torch.Tensor:
        seen.append((len(given.inputs["input_ids"]), int((given.labels >= 0).sum())))
        return torch.zeros(())

    graphs = Played(learn, 20 * batch.padded, torch.device("cpu"), print)
    for _ in range(3):
        graphs(batch, 1.0)
    assert seen == [(40, len(batch.labels))] * 3


def test_a_model_that_cannot_be_recorded_is_trained_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any, *args: Any) -> Any:
        raise RuntimeError("not while capturing")

    monkeypatch.setattr(loop._Run, "_graphs", played)
    monkeypatch.setattr(Played, "capture", refuse)
    said: list[str] = []
    train(parse_recipe(values(tmp_path, model=STILL, train={"steps": 24})), say=said.append)
    assert [text for text in said if "not while capturing" in text]
    assert made[-1].broken


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
def test_played_back_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = values(tmp_path, model=STILL, train={"steps": 40, "compile": True, "precision": "no"})
    recorded: list[Graphs] = []
    record = Graphs._record
    monkeypatch.setattr(Graphs, "_record", lambda self, *args: (recorded.append(self), record(self, *args))[1])
    train(parse_recipe(settings))
    assert recorded[-1].recorded
    assert not recorded[-1].broken
    monkeypatch.setattr(Graphs, "_record", lambda self, key, batch: None)
    train(parse_recipe(settings | {"out": str(tmp_path / "plain")}))
    assert losses_in(tmp_path / "run") == pytest.approx(losses_in(tmp_path / "plain"), rel=1e-3)
