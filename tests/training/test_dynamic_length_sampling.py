"""Dynamic length sampling against golden values and the figures of the paper."""

import json
from itertools import chain, islice, repeat
from pathlib import Path
from random import Random

import pytest
import torch

from lengthwise.training import dynamic_length_sampling as lengths

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/train.json").read_text())


def test_length_probabilities() -> None:
    for case in GOLDEN["DLS_fig2"]:
        asked = case["in"]
        found = lengths.length_probabilities(asked["L"], lengths.temperature(asked["epoch"], asked["gamma"]))
        assert found.tolist() == pytest.approx(case["out"], abs=1e-9)


def test_mean_lengths() -> None:
    for case in GOLDEN["DLS_mean_length_L512"]:
        asked = case["in"]
        found = lengths.length_probabilities(asked["L"], lengths.temperature(asked["epoch_minus_gamma"], 0))
        mean = (found * torch.arange(1, asked["L"] + 1)).sum().item()
        assert mean == pytest.approx(case["out"]["mean sampled l"], abs=1e-3)
        assert found[256:].sum().item() == pytest.approx(case["out"]["P(l>256)"], abs=1e-7)


def test_long_lengths_do_not_underflow() -> None:
    trap = GOLDEN["DLS_naive_trap"]
    found = lengths.length_probabilities(1024, lengths.temperature(8, 0))
    # Its "l >= 710" counts from 0: these are the lengths from 711 on.
    assert found[710:].sum().item() == pytest.approx(trap["stable P(l>=710)"], abs=1e-6)


def test_drawn_lengths_follow_the_probabilities() -> None:
    drawn = torch.tensor(list(islice(lengths.drawn_lengths(8, 1.0, Random(0)), 20_000)))
    shares = torch.bincount(drawn, minlength=9)[1:] / len(drawn)
    assert shares.tolist() == pytest.approx(lengths.length_probabilities(8, 1.0).tolist(), abs=0.01)


def test_cuts() -> None:
    figure = GOLDEN["DLS_fig3"]
    sentences = figure["in"]["sentences"]
    found = lengths.cut(sentences, sentences, iter(figure["in"]["sampled"]))
    assert [list(segment) for segment in found] == figure["out"]["segments"]
    for case in GOLDEN["DLS_segment"]:
        asked = case["in"]
        found = lengths.cut(asked["src"], asked["tgt"], chain(asked["sampled"], repeat(1)))
        assert [list(segment) for segment in found] == case["out"]["<= (paper)"]


def test_resolutions() -> None:
    found = lengths.resolutions([1] * 4, [1] * 4, 100)
    assert [list(s) for s in found] == [[0, 1, 2, 3], [0, 1], [2, 3], [0], [1], [2], [3]]
    assert [list(s) for s in lengths.resolutions([9, 9, 9], [1, 1, 1], 18)] == [[0], [1, 2], [1], [2]]
    assert lengths.resolutions([99], [99], 5) == [range(1)]


def test_a_prefix_ends_at_a_sentence() -> None:
    assert [lengths.prefix("One. Two. Three.", uniform) for uniform in (0.57, 0.58, 0.82)] == [
        "One.",
        "One. Two.",
        "One. Two. Three.",
    ]
    assert lengths.prefix("no end at all", 0.5) == "no end at all"
