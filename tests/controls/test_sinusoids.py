"""The formulas against independently computed float64 values (golden.json), and the errors."""

import json
import math
from pathlib import Path

import pytest
import torch

from lengthwise.controls.sinusoids import difference, progress, ratio, step_reached, tag

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/formulas.json").read_text("utf-8"))
OPTIONS = {"paper": {}, "lakew": {"cosine": "lakew"}, "fairseq": {"layout": "fairseq"}}


def close(vector: torch.Tensor, expected: list[float]) -> None:
    torch.testing.assert_close(vector, torch.tensor(expected, dtype=torch.float32), atol=1e-6, rtol=0)


def cases(*tables: str) -> list[tuple[dict, list[float]]]:
    return [(case["in"], case["out"]) for table in tables for case in GOLDEN[table]]


@pytest.mark.parametrize(("given", "expected"), cases("PE"))
def test_sinusoid(given: dict, expected: list[float]) -> None:
    close(difference(given["x"], given["d"], **OPTIONS[given["conv"]]), expected)


@pytest.mark.parametrize(("given", "expected"), cases("LDPE", "LEabs"))
def test_difference(given: dict, expected: list[float]) -> None:
    close(difference(given["len"] - given["pos"], given["d"], **OPTIONS[given["conv"]]), expected)


@pytest.mark.parametrize(("given", "expected"), cases("LRPE"))
def test_ratio(given: dict, expected: list[float]) -> None:
    close(ratio(given["pos"], given["len"], given["d"], **OPTIONS[given["conv"]]), expected)


def test_ratio_properties() -> None:
    golden = iter(GOLDEN["LRPE_properties"].values())
    rows = [ratio(5, 10, 8, layout="fairseq")[3], ratio(10, 20, 8, layout="fairseq")[3]]
    close(torch.stack(rows), next(golden)[:2])  # in fairseq's layout the last sine reads position / length
    close(torch.stack([ratio(5, 10, 8)[6], ratio(10, 20, 8)[6]]), next(golden))
    close(ratio(3, 1, 8), next(golden))


@pytest.mark.parametrize(("given", "expected"), cases("LErel"))
def test_progress(given: dict, expected: list[float]) -> None:
    close(progress(given["pos"], given["len"], given["d"], given["N"], **OPTIONS[given["conv"]]), expected)


@pytest.mark.parametrize(("given", "expected"), cases("qN"))
def test_steps(given: dict, expected: list[int]) -> None:
    assert step_reached(torch.tensor(given["pos"]), given["len"], given["N"]).tolist() == expected


@pytest.mark.parametrize("kind", ["examples float64 (pos,len,N)", "examples float32"])
def test_steps_are_floored_in_whole_numbers(kind: str) -> None:
    for position, length, steps in GOLDEN["qN_float_trap"][kind]:
        assert step_reached(position, length, steps) == position * steps // length


@pytest.mark.parametrize("given", [case["out"] for case in GOLDEN["char_positions"]])
def test_positions_of_lakew_examples(given: dict) -> None:
    position = torch.tensor(given["pos"])
    assert (given["len"] - position).tolist() == given["LEabs_index(len-pos)"]
    assert step_reached(position, given["len"]).tolist() == given["LErel_index(N=5)"]


def test_large_counts_are_as_exact_as_small_ones() -> None:
    remaining = torch.tensor([0, 1, 999, 65_537, 99_999, 1_000_003])
    frequency = 10000 ** (-torch.arange(0, 64, 2, dtype=torch.float64) / 64)
    angle = remaining.double()[:, None] * frequency
    expected = torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)
    assert (difference(remaining, 64) - expected).abs().max() < 1e-6
    angle = remaining.double()[1:, None] / 70_000 ** (torch.arange(0, 64, 2, dtype=torch.float64) / 64)
    assert (ratio(remaining[1:], 70_000, 64)[:, ::2] - angle.sin()).abs().max() < 1e-6


def test_shapes_and_a_length_of_its_own_for_each_row() -> None:
    position, length = torch.arange(6).expand(3, 6), torch.tensor([5, 10, 20])
    for encode in (ratio, progress):
        rows = encode(position, length, 16)
        assert rows.shape == (3, 6, 16)
        assert rows.dtype == torch.float32
        for row, one in zip(rows, length, strict=True):
            assert torch.equal(row, encode(position[0], one, 16))
    assert difference(position, 16).shape == (3, 6, 16)
    assert difference(3, 16).shape == (16,)


def test_a_pair_has_norm_one() -> None:
    assert math.isclose(difference(torch.arange(9), 8).norm().item(), math.sqrt(9 * 8 / 2), rel_tol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: difference(1, 7), "even dimension of at least 4; got 7"),
        (lambda: difference(1, 2), "even dimension of at least 4; got 2"),
        (lambda: ratio(1, 0, 8), "length must be at least 1; got 0 for row 0"),
        (lambda: ratio(torch.ones(4, 2), torch.tensor([3, 1, 2, 0]), 8), "length must be at least 1; got 0 for row 3"),
        (lambda: progress(torch.ones(2, 2).long(), torch.tensor([3, -1]), 8), "got -1 for row 1"),
        (lambda: difference(1, 8, layout="fairseq", cosine="lakew"), "no encoding has layout 'fairseq'"),
        (lambda: difference(1, 8, layout="concat"), "no encoding has layout 'concat'"),
    ],
)
def test_errors(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_progress_refuses_fractions() -> None:
    with pytest.raises(TypeError, match="whole units"):
        progress(2.5, 5, 8)


def test_tags_are_orthogonal_and_as_large_as_a_sinusoid() -> None:
    tags = tag(torch.arange(6), 64)
    assert torch.allclose(tags @ tags.T, 32 * torch.eye(6), atol=1e-3)
