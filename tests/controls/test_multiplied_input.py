"""LC: the decoder's embeddings are multiplied by the length, row by row, in training and in generation."""

from typing import Any

import pytest
import torch

from controlled_models import LENGTHS, world_of
from lengthwise.controls import MultipliedInput, Signal


def test_the_sum_is_the_product() -> None:
    inputs = torch.randn(2, 3, 4)
    length, live = torch.tensor([75, 200]), torch.tensor([[True] * 3, [True, True, False]])
    signal = Signal(torch.zeros(2, 3, dtype=torch.long), length, torch.arange(-1, 2).expand(2, 3), live)
    multiplied = inputs + MultipliedInput(scale=0.01).encode(signal, inputs)
    torch.testing.assert_close(multiplied[0], 0.75 * inputs[0])
    torch.testing.assert_close(multiplied[1, :2], 2 * inputs[1, :2])
    torch.testing.assert_close(multiplied[1, 2], inputs[1, 2])  # padding


@pytest.mark.parametrize("family", ["marian", "t5", "llama"])
def test_cached_steps_equal_one_pass(family: str, sp_unigram: Any) -> None:
    world = world_of(family, sp_unigram, [MultipliedInput(scale=0.05)])
    written, logits = world.write()
    torch.testing.assert_close(world.forced(written), logits, atol=1e-5, rtol=1e-5)
    changed = world.forced(written, lengths=[LENGTHS[0], LENGTHS[1] + 9, LENGTHS[2]])
    moved = (changed - world.forced(written)).abs().amax((1, 2)) > 1e-4
    assert moved.tolist() == [False, True, False]


def test_a_scale_is_positive() -> None:
    with pytest.raises(ValueError, match="scale must be above 0; got 0"):
        MultipliedInput(scale=0)
