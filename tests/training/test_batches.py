"""Batches: bounded, complete, little padding, and labels where they belong."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from families import tiny
from lengthwise.training.batches import Layout, batches, collate, pack, round_up
from lengthwise.training.examples import Example
from toy_training import examples_for, layout_for


def test_batches_are_bounded_and_complete(byte_bpe: Any) -> None:
    model = tiny("llama", byte_bpe)
    examples = examples_for(model, byte_bpe, count=40)
    found = batches(examples, layout_for(model), Random(0))
    assert sorted(name for batch in found for name in batch.names) == sorted(e.name for e in examples)
    for batch in found:
        assert batch.padded == batch.inputs["input_ids"].numel()
        assert batch.padded <= 256 or len(batch.names) == 1
        assert batch.inputs["input_ids"].shape[1] % 8 == 0
    padding = 1 - sum(b.tokens for b in found) / sum(b.padded for b in found)
    assert padding < 0.25


def test_both_sides_of_an_encoder_decoder_are_of_similar_length() -> None:
    random = Random(0)
    sizes = [(5 + int(60 * random.random()), 5 + int(120 * random.random())) for _ in range(4000)]
    examples = [
        Example(str(n), [7] * source, [7] * target, list(range(target + 1)), [0] * source)
        for n, (source, target) in enumerate(sizes)
    ]
    found = batches(examples, Layout(8192, 8, True, pad=0, end=1, first=0), Random(0))
    assert sum(len(batch.names) for batch in found) == len(examples)
    assert all(batch.padded <= 8192 for batch in found)
    assert 1 - sum(b.tokens for b in found) / sum(b.padded for b in found) < 0.15  # sorted by the source alone: 0.37


def test_packed_shift(byte_bpe: Any) -> None:
    model = tiny("llama", byte_bpe)
    examples = examples_for(model, byte_bpe)[:3]
    batch = pack([examples], layout_for(model, signal=True, packing=160))
    moved = batch.shifted(torch.full_like(batch.uniform, 5).long())
    assert torch.equal(moved.packed["length"], batch.packed["length"] + 5)


@pytest.mark.parametrize("family", ["llama", "marian"])
def test_the_last_tokens_and_a_share_of_the_others_have_a_loss(byte_bpe: Any, family: str) -> None:
    model = tiny(family, byte_bpe)
    examples = examples_for(model, byte_bpe, count=40)
    layout = layout_for(model, tokens=100_000)
    whole, part = collate(examples, layout), collate(examples, replace(layout, last=5, before=0.25))
    trained = dict(zip(whole.rows.tolist(), whole.labels.tolist(), strict=True))
    kept = dict(zip(part.rows.tolist(), part.labels.tolist(), strict=True))
    assert kept.items() <= trained.items()
    ends, at = set(), -1
    for example in examples:
        at += len(example.target) + 1
        ends |= set(whole.rows[max(at - 4, at - len(example.target)) : at + 1].tolist())
    assert ends <= set(kept)
    assert 0.15 < len(set(kept) - ends) / len(set(trained) - ends) < 0.35
    assert part.responses == len(kept)


@given(some.integers(1, 100_000), some.sampled_from([1, 8, 12, 16]))
def test_few_sizes_and_little_padding(count: int, multiple: int) -> None:
    found = round_up(count, multiple)
    assert count <= found < count + count / 8 + multiple + 1
    assert found % multiple == 0
    assert multiple == 12 or round_up(found, multiple) == found


def test_eight_sizes_an_octave() -> None:
    assert len({round_up(count, 1) for count in range(256, 512)}) == 9  # the ends of the octave included
    assert [round_up(count, 8) for count in (3, 100, 200, 390)] == [8, 104, 208, 416]
