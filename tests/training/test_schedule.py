"""Learning rates."""

import pytest

from lengthwise.training.recipe import TrainSection
from lengthwise.training.schedule import learning_rate


def test_learning_rates() -> None:
    noam = TrainSection(steps=9, lr=1e-3, schedule="inverse_sqrt", warmup=4000, warmup_from=1e-7)
    rates = [learning_rate(noam, step, 0.0) for step in (0, 2000, 4000, 16000)]
    assert rates == pytest.approx([1e-7, (1e-3 + 1e-7) / 2, 1e-3, 5e-4])
    linear = TrainSection(steps=100, lr=3e-4)
    assert [learning_rate(linear, n, n / 100) for n in (0, 50, 100)] == pytest.approx([3e-4, 1.5e-4, 0])
