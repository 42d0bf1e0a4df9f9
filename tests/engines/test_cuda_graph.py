"""Recorded functions. They need a GPU."""

import pytest
import torch

from lengthwise.engines.cuda_graph import record

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")


def test_a_recorded_step_does_what_the_step_does():
    total = torch.zeros(3, device="cuda")
    run, taken = record(lambda: total.add_(1))
    run()
    assert total.tolist() == [taken + 1] * 3


def test_a_step_that_cannot_be_recorded_is_run_as_it_is():
    total = torch.zeros(3, device="cuda")

    def step() -> None:
        total.add_(1)
        total.sum().item()  # waits for the GPU, which a graph cannot

    with pytest.warns(UserWarning, match="without CUDA graphs"):
        run, taken = record(step)
    run()
    assert total.tolist() == [taken + 1] * 3
    assert torch.ones(2, device="cuda").sum().item() == 2
