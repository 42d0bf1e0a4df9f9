"""The stream of batches: complete, resumable anywhere, the same with any number of workers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from families import tiny
from lengthwise.training.batches import Batch
from lengthwise.training.data_stream import Place, Stream, count_documents, with_thresholds
from lengthwise.training.recipe import parse_recipe
from toy_corpora import corpus, rows
from toy_training import layout_for, maker_for


def stream_for(path: Path, tokenizer: Any, workers: int = 0) -> Stream:
    values: dict[str, Any] = {"name": "s", "out": "unused", "model": {"base": "none"}, "train": {"epochs": 1}}
    values |= {"data": {"train": corpus(path, 60), "max_tokens": 256, "shuffle": 20}}
    values |= {"batch": {"pool": 16, "tokens": 512, "workers": workers}}
    recipe = parse_recipe(values)
    model = tiny("llama", tokenizer)
    maker = maker_for(tokenizer, max_tokens=256)
    return Stream(recipe, maker, layout_for(model, tokens=512), count_documents(recipe)[0])


def first_epoch(stream: Stream, place: Place) -> list[tuple[Batch, Place]]:
    found = []
    for batch, after in stream.from_(place):
        if after.epoch > 1:
            return found
        found.append((batch, after))
    raise AssertionError("a stream does not end")


def test_every_example_comes_once(tmp_path: Path, byte_bpe: Any) -> None:
    found = first_epoch(stream_for(tmp_path / "a.jsonl", byte_bpe), Place())
    names = [name for batch, _ in found for name in batch.names]
    assert len(names) == len(set(names)) == sum(len(row["segs"]) for row in rows(60))
    assert found[-1][1].share == 1.0


def test_stream_resumes_anywhere(tmp_path: Path, byte_bpe: Any) -> None:
    stream = stream_for(tmp_path / "a.jsonl", byte_bpe)
    whole = first_epoch(stream, Place())
    for number in (0, 3, len(whole) // 2, len(whole) - 2):
        rest = first_epoch(stream, whole[number][1])
        assert [b.names for b, _ in rest] == [b.names for b, _ in whole[number + 1 :]]
        assert [p for _, p in rest] == [p for _, p in whole[number + 1 :]]


def test_workers_change_nothing(tmp_path: Path, byte_bpe: Any) -> None:
    alone = first_epoch(stream_for(tmp_path / "a.jsonl", byte_bpe), Place())
    helped = first_epoch(stream_for(tmp_path / "a.jsonl", byte_bpe, workers=2), Place())
    assert [p for _, p in alone] == [p for _, p in helped]
    for (a, _), (b, _) in zip(alone, helped, strict=True):
        assert a.names == b.names
        assert torch.equal(a.inputs["input_ids"], b.inputs["input_ids"])
        assert torch.equal(a.rows, b.rows)


def test_epochs_differ(tmp_path: Path, byte_bpe: Any) -> None:
    stream = stream_for(tmp_path / "a.jsonl", byte_bpe)
    epochs: dict[int, list[str]] = {1: [], 2: []}
    for batch, place in stream.from_(Place()):
        if place.epoch > 2:
            break
        epochs[place.epoch] += batch.names
    assert sorted(epochs[1]) == sorted(epochs[2])
    assert epochs[1] != epochs[2]


def test_length_classes_of_equal_size_by_the_corpus(tmp_path: Path) -> None:
    pairs = [{"id": str(n), "source": "x" * 100, "target": "y" * (50 + n)} for n in range(90)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    recipe = parse_recipe(
        {
            "name": "quantiles",
            "out": str(tmp_path / "out"),
            "model": {"fresh": {}},
            "controls": [{"control": "length_tokens", "thresholds": "quantiles"}, {"control": "encoding"}],
            "data": {"train": str(tmp_path / "pairs.jsonl")},
            "train": {"epochs": 1},
        }
    )
    tokens, encoding = with_thresholds(recipe).build_controls()
    assert tokens.thresholds == pytest.approx((0.80, 1.09), abs=0.02)
    assert encoding.config() == recipe.build_controls()[1].config()
