"""Seeded sampling: by probability, by the seed alone, and from the tokens that top-k and top-p leave."""

import pytest
import torch
from transformers import TemperatureLogitsWarper, TopPLogitsWarper

from lengthwise.engines.sampling import SeededSampler, uniforms
from lengthwise.engines.torch_sampling import sample

SCORES = torch.tensor([[2.0, 1.0, 0.0, -1.0, -torch.inf]])


def draws(**options):
    """How often each of five tokens is drawn for uniforms spread over [0, 1)."""
    spread = (torch.arange(1000) + 0.5)[:, None] / 1000
    found = sample(SCORES.expand(1000, -1), spread.double(), **options).squeeze(1)
    return torch.bincount(found, minlength=5) / 1000


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("top_p", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("top_k", [None, 5])
def test_tokens_are_drawn_as_transformers_would(temperature, top_p, top_k):
    expected = TemperatureLogitsWarper(temperature)(None, SCORES) if temperature != 1 else SCORES
    expected = TopPLogitsWarper(top_p)(None, expected) if top_p < 1 else expected
    expected = expected.softmax(1)[0]
    torch.testing.assert_close(draws(temperature=temperature, top_p=top_p, top_k=top_k), expected, atol=2e-3, rtol=0)


def test_top_p_0_and_top_k_1_are_greedy():
    assert draws(top_p=0.0)[0] == draws(top_k=1)[0] == 1


def test_a_penalty_makes_tokens_less_likely():
    penalty = lambda tokens: 3.0 * (tokens == 0)  # noqa: E731
    assert draws(top_k=5, penalty=penalty)[0] < draws(top_k=5)[0]


def test_the_last_uniform_draws_a_token_that_has_a_share():
    top = torch.tensor([[1.0]], dtype=torch.float64)  # rounded up
    assert sample(SCORES, top).item() == 3
    assert sample(SCORES, top, top_k=5).item() == 3


def test_a_row_depends_on_its_seed_alone():
    together = uniforms([3, 8, 3], 6)
    assert (together[0] == together[2]).all()
    assert (uniforms([8], 6)[0] == together[1]).all()
    scores = torch.randn(2, 50, generator=torch.Generator().manual_seed(0))
    both, alone = SeededSampler([1, 2], 4, top_p=0.9), SeededSampler([2], 4, top_p=0.9)
    assert all(both(scores, step)[1] == alone(scores[1:], step)[0] for step in range(4))


@pytest.mark.parametrize("seed", [0, 7, 2**32 + 7, 2**63 - 1])
def test_uniform_numbers_are_those_of_torch(seed):
    expected = torch.rand(50, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    assert uniforms([seed], 50)[0].tolist() == expected.tolist()


@pytest.mark.parametrize("top_k", [None, 1, 40])
@pytest.mark.parametrize("top_p", [0.0, 0.6, 0.95, 1.0])
@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_numpy_arrays_are_sampled_as_torch_tensors_are(temperature, top_p, top_k):
    scores = 4 * torch.randn(50, 300, generator=torch.Generator().manual_seed(0))
    scores[::2, ::3] = -torch.inf
    sampler = SeededSampler(list(range(50)), 4, temperature=temperature, top_p=top_p, top_k=top_k)
    for step in range(4):
        assert sampler(scores.numpy(), step).tolist() == sampler(scores, step).tolist()


def test_the_last_uniform_draws_a_token_that_has_a_share_in_numpy_too():
    sampler = SeededSampler([0], 1)
    sampler.uniforms[:] = 1.0  # rounded up
    assert sampler(SCORES.numpy(), 0).tolist() == [3]
