"""What decoding observes of the model's own choices, and what a text is made of."""

import math

import pytest
import torch

from lengthwise.generation.decoding import _observed, spelled
from lengthwise.length.meter import Meter
from lengthwise.scoring.completeness import agreement


def test_a_banned_favourite_lowers_the_agreement_of_the_token_that_is_taken():
    scores = torch.tensor([[5.0, 3.0, 1.0], [5.0, 3.0, 1.0]])
    kept = scores.clone()
    kept[0, 0] = -torch.inf
    token = kept.argmax(1)
    own, made, best, top, end = _observed(scores, kept, token, torch.tensor([2]))
    assert agreement(own, made, best, top).tolist() == pytest.approx([math.exp(-2), 1.0])
    assert end.tolist() == [1.0, 1.0]


def test_a_forced_end_has_no_agreement_where_nothing_was_allowed():
    scores = torch.tensor([[5.0, -9.0]])
    kept = torch.tensor([[-torch.inf, 0.0]])  # the constraint allows the end with score 0
    own, made, best, top, _ = _observed(scores, kept, torch.tensor([1]), torch.tensor([1]))
    assert agreement(own, made, best, top).item() == pytest.approx(math.exp(-14))


def test_the_text_grows_with_its_tokens(byte_bpe):
    meter = Meter(byte_bpe, "chars")
    ids = byte_bpe(" Où est-il ? 日本")["input_ids"]
    text, reach = spelled(meter, ids)
    assert text == "Où est-il ? 日本"
    assert reach == sorted(reach)
    assert (len(reach), reach[-1]) == (len(ids), len(text))
