"""Scores of tokens: agreement by hand, scores against plain calls, and who judges full stops."""

import math

import pytest
import torch

from families import tiny
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.scoring.completeness import (
    TokenScores,
    agreement,
    distant_limit_inputs,
    judged_without_length,
    score_tokens,
    without_length_inputs,
)

INF = torch.inf


@pytest.mark.parametrize(
    ("own", "made", "best", "top", "expected"),
    [
        (-1.0, -1.0, -1.0, -1.0, 1.0),  # the model's best token, left as it is
        (-3.0, -3.0, -1.0, -1.0, 1.0),  # sampled, and not its best: nothing was changed
        (-3.0, -3.0, -1.0, -3.0, math.exp(-2)),  # better tokens were banned
        (-3.0, 1.0, -1.0, 1.0, math.exp(-2)),  # its score was raised
        (-1.0, -3.0, -1.0, -1.0, 1.0),  # its score was lowered: never more than 1
        (-5.0, 0.0, -1.0, -INF, math.exp(-4)),  # all were banned: the end was allowed with 0
    ],
)
def test_agreement(own, made, best, top, expected):
    found = agreement(*(torch.tensor([value]) for value in (own, made, best, top)))
    assert found.item() == pytest.approx(expected)


@pytest.mark.parametrize("family", ["llama", "marian"])
def test_scores_are_relative_to_the_best_token(family, byte_bpe, sp_unigram):
    tokenizer = byte_bpe if family == "llama" else sp_unigram
    engine = TransformersEngine(tiny(family, tokenizer), tokenizer)
    inputs = engine.inputs([engine.prompt_ids("The quick brown fox"), engine.prompt_ids("It was")])
    found = engine.search(inputs, max_new_tokens=6).sequences
    start = engine.text_start if engine.encoder_decoder else inputs["input_ids"].shape[1]
    greedy = score_tokens(engine, inputs, found, start)
    torch.testing.assert_close(greedy.score, torch.zeros(2, found.shape[1] - start), atol=1e-4, rtol=0)
    other = found.clone()
    other[:, start + 1] = (found[:, start + 1] + 1) % len(tokenizer)
    changed = score_tokens(engine, inputs, other, start)
    assert (changed.score[:, 1] < 0).all()
    torch.testing.assert_close(changed.agreement, changed.score.exp())
    torch.testing.assert_close(changed.end_ratio[:, :2], greedy.end_ratio[:, :2])  # up to there nothing has changed


def test_full_stops_and_ends_are_judged_without_the_length():
    def scores(value):
        return TokenScores(*(torch.tensor([[value, value]]) for _ in range(3)))

    for with_length, without, at_stop in ((0.9, 0.1, 0.1), (0.1, 0.9, 0.1)):
        found = judged_without_length(scores(with_length), scores(without), torch.tensor([[False, True]]))
        assert found.agreement.tolist() == [pytest.approx([with_length, at_stop])]
        assert (found.end_ratio == without).all()
        assert (found.score == without).all()


def test_inputs_without_a_length_or_with_a_distant_one():
    inputs = {"input_ids": torch.ones(1, 2), "decoder_length": torch.tensor([30])}
    assert without_length_inputs(inputs).keys() == {"input_ids"}
    distant = distant_limit_inputs(inputs["decoder_length"])
    assert {name: value.tolist() for name, value in distant.items()} == {
        "decoder_length": [80],
        "decoder_at_most": [True],
    }
