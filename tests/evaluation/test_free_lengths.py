"""Texts of a model without a budget, for --explain."""

from dataclasses import dataclass

import pytest

from families import tiny
from lengthwise import Writer
from lengthwise.evaluation import free_lengths


@pytest.mark.parametrize("tokens", [1, 6])
def test_an_answer_that_does_not_end_counts_as_far_as_it_was_written(byte_bpe, monkeypatch, tokens):
    monkeypatch.setattr(free_lengths, "MAX_TOKENS", tokens)
    model = tiny("llama", byte_bpe)
    model.generation_config.eos_token_id = model.config.eos_token_id = len(byte_bpe) - 1
    found, _ = free_lengths.answers(Writer(model, byte_bpe, name="tiny"), ["One?", "Two?"])
    assert [prompt for prompt, _ in found] == ["One?", "Two?"]
    assert all(0 < len(text) <= 12 * tokens for _, text in found)  # a token has a few letters


def test_the_shortest_answers_are_complete_ones(monkeypatch):
    """A writer that completes short prompts within 20 characters, long ones within 40, and others never."""

    class Short:
        def __init__(self, *args, **options):
            pass

        def write(self, prompts, budget):
            limit = int(budget.split()[2])
            needs = {"short": 20, "longer": 40}
            return [Toy(f"{limit}", limit >= needs.get(prompt, 999)) for prompt in prompts]

    monkeypatch.setattr(free_lengths, "UnconstrainedWriter", Short)
    _, shortest = free_lengths.answers(Short(), ["never", "longer", "short"])
    assert shortest == [("short", "20"), ("longer", "40")]


@dataclass
class Toy:
    text: str
    complete: bool
    error: str | None = None
