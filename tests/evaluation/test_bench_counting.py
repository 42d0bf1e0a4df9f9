"""bench/counting.py: what a model is trained on, and where its texts end."""

import json
import sys
from pathlib import Path
from runpy import run_path
from typing import Any

import torch

BENCH = Path(__file__).parents[2] / "bench" / "counting.py"


class EndsAt:
    """A model that is sure of the end `late` steps after the length, and of nothing else."""

    def __init__(self, late: int) -> None:
        self.late = late

    def __call__(self, letters: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        ends = torch.arange(letters.shape[1] + 1) == lengths[:, None] + self.late
        found = torch.full((*ends.shape, 27), -1e9)
        found[:, :, 26] = torch.where(ends, 0.0, -1e9)
        return found


def test_variance_and_exact_lengths() -> None:
    measured = run_path(str(BENCH))["measured"]
    assert measured(EndsAt(0))["50"] == {"exact": 1.0, "variance": 0.0}
    assert measured(EndsAt(-2))["50"] == {"exact": 0.0, "variance": 4.0}
    assert measured(EndsAt(1000))["50"]["variance"] == 60.0**2


def test_a_model_is_trained_and_measured(tmp_path: Path, monkeypatch: Any) -> None:
    out = tmp_path / "counting.json"
    few = ["--kinds", "ratio", "--numbers", "bf16", "--steps", "1", "--texts", "2"]
    monkeypatch.setattr(sys, "argv", ["counting.py", *few, "--out", str(out)])
    run_path(str(BENCH))["main"]()
    [row] = json.loads(out.read_text())
    assert (row["kind"], row["numbers"], row["steps"]) == ("ratio", "bf16", 1)
    assert set(row["targets"]) == {"20", "30", "50", "75", "100"}
