"""Max New Tokens++ against golden values."""

import json
from pathlib import Path

import pytest
import torch

from lengthwise.controls import EncodingControl, Signal
from lengthwise.training.max_new_tokens_pp import shifts, sigma, truncated_half_normal

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/train.json").read_text())


def test_sigma() -> None:
    for case in GOLDEN["sigma_t"]:
        asked = case["in"]
        found = sigma(asked["t"] / asked["T"], asked["sigma0"], asked["sigma_max"])
        assert found == pytest.approx(case["out"]["sigma"], rel=1e-8)


def test_truncated_half_normal() -> None:
    for case in GOLDEN["truncated_halfnormal_inverse_cdf"]:
        asked = case["in"]
        found = truncated_half_normal(
            torch.tensor([asked["u"]], dtype=torch.float64), asked["sigma"], asked["max_shift"]
        )
        assert found.item() == pytest.approx(case["out"], abs=1e-5)


def test_shifts_are_truncated_not_clipped() -> None:
    drawn = shifts(torch.rand(20_000, generator=torch.Generator().manual_seed(0)), 1.0, 0.1, 2048, 1024)
    assert drawn.dtype == torch.long
    assert int(drawn.min()) >= 0
    assert int(drawn.max()) <= 1024
    assert (drawn == 1024).float().mean() < 0.01
    assert int(shifts(torch.rand(1000), 0.0, 0.1, 2048, 1024).max()) == 0


def test_shifted_index() -> None:
    for case in GOLDEN["i_shift"]:
        asked = case["in"]
        size = asked["L"]  # the prompt's tokens and the response's
        position = torch.arange(size).unsqueeze(0)
        control = EncodingControl(unit="tokens", placement="whole", end_index=1)
        # In `whole` the last token of all reads 1: one more than what remains.
        signal = Signal(position, torch.tensor([size - 1 + asked["shift"]]), position, torch.ones(1, size).bool())
        assert control.index(signal)[0].tolist() == case["out"]
