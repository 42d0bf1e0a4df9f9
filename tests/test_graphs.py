"""Batches in the shape of a recorded step, and the recording itself where there is a GPU."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from families import CONTROLS, tiny
from lengthwise.attachment import attach
from lengthwise.train import train
from lengthwise.train.batches import Batch, collate, up
from lengthwise.train.graphs import Graphs, fill, widened
from lengthwise.train.loss import response_logits, summed_loss
from lengthwise.train.recipe import parse_recipe
from test_batches import examples_for, layout_for
from test_train import values


@given(some.integers(1, 100_000), some.sampled_from([1, 8, 16]))
def test_few_sizes_and_little_padding(count: int, multiple: int) -> None:
    found = up(count, multiple)
    assert count <= found < count + max(multiple, count / 8 + 1)
    assert found % multiple == 0
    assert up(found, multiple) == found


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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
def test_played_back_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    still = {"fresh": {"size": "tiny", "vocabulary": 360, "dropout": 0.0, "attention_dropout": 0.0}}
    settings = values(tmp_path, model=still, train={"steps": 40, "compile": True, "precision": "no"})
    recorded: list[Graphs] = []
    record = Graphs._record
    monkeypatch.setattr(Graphs, "_record", lambda self, *args: (recorded.append(self), record(self, *args))[1])
    train(parse_recipe(settings))
    assert recorded[-1].recorded
    assert not recorded[-1].broken
    monkeypatch.setattr(Graphs, "_record", lambda self, key, batch: None)
    train(parse_recipe(settings | {"out": str(tmp_path / "plain")}))
    both = [
        [row["loss"] for row in map(json.loads, (tmp_path / name / "metrics.jsonl").open()) if "loss" in row]
        for name in ("run", "plain")
    ]
    assert both[0] == pytest.approx(both[1], rel=1e-3)
