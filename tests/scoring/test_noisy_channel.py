"""The noisy channel: the sum of both directions, and which translators can score their own outputs."""

import pytest

from by_hand import HYPS, SRCS
from families import CONTROLS, tiny
from lengthwise import EncodingControl, attach
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.scoring.noisy_channel import FORWARD_WEIGHT, NoisyChannel, forward_model
from lengthwise.scoring.reverse import ReverseModel


def test_both_directions_are_added(sp_unigram):
    there, back = (
        ReverseModel(TransformersEngine(tiny(family, sp_unigram), sp_unigram)) for family in ("marian", "bart")
    )
    one, other = back.mean_log_prob(SRCS, HYPS), there.mean_log_prob(HYPS, SRCS)
    for channel, expected in (
        (NoisyChannel(back, there), one + FORWARD_WEIGHT * other),
        (NoisyChannel(back, None), one),
        (NoisyChannel(None, there), FORWARD_WEIGHT * other),
    ):
        assert channel.scores(SRCS, HYPS) == pytest.approx(expected)


def test_a_translator_scores_without_a_length_or_with_a_distant_limit(sp_unigram):
    plain = TransformersEngine(tiny("marian", sp_unigram), sp_unigram)
    assert forward_model(plain, "").lengths is None
    limited = TransformersEngine(attach(tiny("marian", sp_unigram), CONTROLS["units"](), sp_unigram), sp_unigram)
    [prompt] = [limited.prompt_ids("The sea")]
    lengths = forward_model(limited, "").lengths([prompt])
    assert (lengths.length, lengths.at_most) == ([2 * len("The sea") + 20], [True])
    assert limited.units[lengths.unit[0]] == "chars"
    exact = TransformersEngine(attach(tiny("marian", sp_unigram), EncodingControl(scale=0.5), sp_unigram), sp_unigram)
    assert forward_model(exact, "") is None
    plain.model.generation_config.forced_bos_token_id = 5
    assert forward_model(plain, "") is None
