"""The hard budget in transformers' own `generate`: every search, rows that begin in different columns, beams."""

import pytest
import torch

from families import tiny
from length_cases import byte_words, limits, noise, text_and_length
from lengthwise.constraint.mask import LengthConstraint
from lengthwise.engines.logits_processor import LengthBudgetLogitsProcessor
from lengthwise.length.budget import Budget
from lengthwise.length.meter import Meter


@pytest.mark.parametrize(
    "search",
    [{}, {"do_sample": True, "num_return_sequences": 3}, {"num_beams": 4}, {"num_beams": 4, "do_sample": True}],
)
@pytest.mark.parametrize("unit", ["tokens", "chars", "words", "bytes"])
def test_every_search_of_generate(byte_bpe, unit, search):
    torch.manual_seed(0)
    budgets = [f"exactly 25 {unit}", f"at most 9 {unit}", f"12-15 {unit}"]
    prompts = byte_bpe(["A text.", "Another, longer text", "x"], padding=True, return_tensors="pt")
    start = prompts["input_ids"].shape[1]
    processor = LengthBudgetLogitsProcessor(
        Meter(byte_bpe, unit), **limits(budgets), start=start, eos=[2], limit=[300] * 3
    )
    search = {"do_sample": False} | search
    ids = tiny("llama", byte_bpe).generate(
        **prompts, logits_processor=[processor], max_new_tokens=300, eos_token_id=2, pad_token_id=0, **search
    )
    repeats = len(ids) // 3
    for n, row in enumerate(ids[:, start:]):
        text, length = text_and_length(byte_bpe, unit, row)
        assert Budget.parse(budgets[n // repeats]).fits(length), (budgets[n // repeats], length, text)


@pytest.mark.parametrize("unit", ["tokens", "words", "chars", "graphemes"])
def test_rows_are_masked_as_by_the_constraint(byte_bpe, unit):
    """Texts begin in different columns and have one row, three or two; before the start nothing is masked."""
    meter, generator = Meter(byte_bpe, unit), torch.Generator().manual_seed(0)
    begun = [byte_bpe(text)["input_ids"] for text in ("The dog", "", "Über 👍🏽 it", "It is. The fox is")]
    budgets = limits([f"exactly 40 {unit}", f"at most 25 {unit}", f"30-33 {unit}", f"at least 27 {unit}"])
    limit, new = [60] * 4, torch.tensor([byte_words(meter, 3)] * 4)
    ids = torch.cat([torch.zeros(4, 3, dtype=torch.long), new], 1)
    processor = LengthBudgetLogitsProcessor(meter, **budgets, start=3, written=begun, eos=[2], limit=limit)
    scores = noise(generator, 4, len(byte_bpe))
    assert processor(ids[:, :2], scores) is scores
    for each in (1, 3, 2):
        scores = noise(generator, 4 * each, len(byte_bpe))
        written = [[*row, *more] for row, more in zip(begun, new.tolist(), strict=True)]
        constraint = LengthConstraint(meter, **budgets, eos=[2], limit=limit, written=written)
        constraint.select([n for n in range(4) for _ in range(each)])
        assert torch.equal(processor(ids.repeat_interleave(each, 0), scores), constraint.apply(scores))
