"""The reverse model against plain calls, text by text."""

import math

import numpy as np
import pytest
import torch

from by_hand import HYPS, SRCS, back_by_hand, log_prob_by_hand, log_probs_by_hand
from families import ENCODER_DECODERS, tiny
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.scoring.reverse import ReverseModel


@pytest.fixture(scope="module")
def model(sp_unigram):
    return tiny("marian", sp_unigram)


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_each_text_as_if_it_were_alone(family, sp_unigram):
    model = tiny(family, sp_unigram)
    reverse = ReverseModel(TransformersEngine(model, sp_unigram))
    assert reverse.translate(HYPS) == [back_by_hand(model, sp_unigram, hyp) if hyp else "" for hyp in HYPS]
    found = reverse.likelihood(SRCS, HYPS)  # of unlike length, so there is padding
    for row, pair in enumerate(zip(SRCS, HYPS, strict=True)):
        assert found[row] == pytest.approx(log_prob_by_hand(model, sp_unigram, *pair), rel=1e-4)


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_the_mean_is_over_all_tokens_but_the_end(family, sp_unigram):
    model = tiny(family, sp_unigram)
    reverse = ReverseModel(TransformersEngine(model, sp_unigram))
    srcs = [*SRCS, SRCS[0]]
    found = reverse.mean_log_prob(srcs, HYPS + HYPS[1:2])
    assert found.shape == (5,)
    for row, (source, output) in enumerate(zip(srcs, HYPS + HYPS[1:2], strict=True)):
        total, _ = log_prob_by_hand(model, sp_unigram, source, output)
        tokens = log_probs_by_hand(model, sp_unigram, source, output)
        assert sum(tokens) == pytest.approx(total, rel=1e-4)
        assert found[row] == pytest.approx(np.mean(tokens[:-1]), rel=1e-3)
    assert reverse.mean_log_prob([], []).shape == (0,)


def test_a_model_without_preferences_gives_each_token_an_equal_share(sp_unigram):
    model = tiny("marian", sp_unigram)
    torch.nn.init.zeros_(model.get_output_embeddings().weight)
    log_prob, tokens = ReverseModel(TransformersEngine(model, sp_unigram)).likelihood(["The sea"], ["Il mare"])[0]
    assert log_prob / tokens == pytest.approx(-math.log(len(sp_unigram)), rel=1e-5)
    model.generation_config.bad_words_ids = [[0], [5, 6]]  # one token that is never written; a pair is no token
    log_prob, tokens = ReverseModel(TransformersEngine(model, sp_unigram)).likelihood(["The sea"], ["Il mare"])[0]
    assert log_prob / tokens == pytest.approx(-math.log(len(sp_unigram) - 1), rel=1e-5)


def test_progress_counts_outputs(model, sp_unigram):
    seen = []
    ReverseModel(TransformersEngine(model, sp_unigram)).translate(
        [*HYPS, HYPS[0]], lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (3, 3)  # an empty one and one that is there twice take no time


def test_texts_are_cut_to_the_window(model, sp_unigram):
    reverse, long = ReverseModel(TransformersEngine(model, sp_unigram)), "Il mare è bello. " * 60
    assert len(sp_unigram(long)["input_ids"]) > model.config.max_position_embeddings
    assert len(reverse.translate([long])) == 1
    assert reverse.likelihood([long], [long])[0, 1] == model.config.max_position_embeddings
