"""Scores of tokens: agreement by hand, scores against plain calls, and who judges full stops."""

import math

import numpy as np
import pytest

from families import tiny
from lengthwise import CountdownHead, EncodingControl, attach
from lengthwise.engines.base import LengthInputs
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.scoring.completeness import (
    TokenScores,
    agreement,
    can_judge_without_length,
    judged_without_length,
    neutral_lengths,
    score_tokens,
    without_bent_words,
)


@pytest.mark.parametrize(
    ("own", "made", "best", "top", "expected"),
    [
        (-1.0, -1.0, -1.0, -1.0, 1.0),  # the model's best token, left as it is
        (-3.0, -3.0, -1.0, -1.0, 1.0),  # sampled, and not its best: nothing was changed
        (-3.0, -3.0, -1.0, -3.0, math.exp(-2)),  # better tokens were banned
        (-3.0, 1.0, -1.0, 1.0, math.exp(-2)),  # its score was raised
        (-1.0, -3.0, -1.0, -1.0, 1.0),  # its score was lowered: never more than 1
        (-5.0, 0.0, -1.0, 0.0, math.exp(-4)),  # all were banned: the end was allowed with 0
    ],
)
def test_agreement(own, made, best, top, expected):
    found = agreement(*(np.array([value]) for value in (own, made, best, top)))
    assert found.item() == pytest.approx(expected)


@pytest.mark.parametrize("family", ["llama", "marian"])
def test_scores_are_relative_to_the_best_token(family, byte_bpe, sp_unigram):
    tokenizer = byte_bpe if family == "llama" else sp_unigram
    engine = TransformersEngine(tiny(family, tokenizer), tokenizer)
    prompts = [engine.prompt_ids("The quick brown fox"), engine.prompt_ids("It was")]
    found = engine.search(prompts, max_new_tokens=6).ids
    greedy = score_tokens(engine, prompts, found)
    np.testing.assert_allclose(greedy.score, np.zeros((2, 6)), atol=1e-4)
    other = [[ids[0], (ids[1] + 1) % len(tokenizer), *ids[2:]] for ids in found]
    changed = score_tokens(engine, prompts, other)
    assert (changed.score[:, 1] < 0).all()
    np.testing.assert_allclose(changed.agreement, np.exp(changed.score), rtol=1e-5)
    np.testing.assert_allclose(
        changed.end_ratio[:, :2], greedy.end_ratio[:, :2], rtol=1e-5
    )  # up to there nothing has changed


def test_full_stops_and_ends_are_judged_without_the_length():
    def scores(value):
        return TokenScores(*(np.array([[value, value]]) for _ in range(3)))

    for with_length, without, at_stop in ((0.9, 0.1, 0.1), (0.1, 0.9, 0.1)):
        found = judged_without_length(scores(with_length), scores(without), np.array([[False, True]]))
        assert found.agreement.tolist() == [pytest.approx([with_length, at_stop])]
        assert (found.end_ratio == without).all()
        assert (found.score == without).all()


@pytest.mark.parametrize(
    ("family", "control", "can", "expected"),
    [
        ("llama", CountdownHead("chars", hidden=8), True, None),  # it is the plain model without a length
        ("llama", EncodingControl(unit="chars"), True, ([80], [False])),  # an answer can always continue
        ("marian", EncodingControl(unit="chars", at_most=True), True, ([80], [True])),
        ("marian", EncodingControl(unit="chars"), False, None),  # always received a length that it must meet
    ],
)
def test_lengths_that_do_not_limit_the_text(family, control, can, expected, byte_bpe, sp_unigram):
    tokenizer = byte_bpe if family == "llama" else sp_unigram
    engine = TransformersEngine(attach(tiny(family, tokenizer), control, tokenizer), tokenizer)
    assert can_judge_without_length(engine, "chars") is can
    if can:
        found = neutral_lengths(engine, LengthInputs([30], [0], [False], [0]))
        assert (found and (found.length, found.at_most)) == expected


def test_unlikely_tokens_inside_a_word_count_as_forced():
    score = np.array([[-9.0, -9.0, -0.5]])
    found = without_bent_words(TokenScores(np.exp(score), score, score), np.array([[False, True, True]]))
    assert found.agreement.tolist() == [[math.exp(-9.0), 0.0, math.exp(-0.5)]]
