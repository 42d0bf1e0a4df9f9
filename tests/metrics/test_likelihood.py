"""NLL: the metric is the scorer's numbers over all tokens together. (The scorer is tested in tests/scoring.)"""

import pytest

from families import tiny
from lengthwise import save
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.metrics import Texts, compare, score
from lengthwise.scoring.log_likelihood import CausalScorer

PROMPTS = ["Where is the house?", "The sea", "Yes or no?", "What is rain?"]
TEXTS = ["Over there.", "It is cold and deep at night, and nobody swims in it.", "", "Water"]


def test_the_metric_is_of_all_tokens_together(byte_bpe, tmp_path):
    model = tiny("llama", byte_bpe)
    folder = str(save(model, byte_bpe, tmp_path / "judge"))
    [found] = score(TEXTS, srcs=PROMPTS, metrics=[f"nll:{folder}"])
    sums, tokens = CausalScorer(TransformersEngine(model, byte_bpe)).likelihood(TEXTS, PROMPTS).T
    assert found.value == pytest.approx(-sums.sum() / tokens.sum(), rel=1e-4)
    assert found.per_item[0] == pytest.approx(-sums[0] / tokens[0], rel=1e-4)
    assert found.per_item[2] == 0
    assert found.signature.startswith("nll|per:token|end:no|given:source|model:judge|v1")
    same = compare(Texts(TEXTS, srcs=PROMPTS), Texts(TEXTS, srcs=PROMPTS), metric=f"nll:{folder}")
    assert (same.delta, same.p) == (0, 1)


def test_what_the_likelihood_needs():
    with pytest.raises(ValueError, match="nll:smollm2"):
        score(TEXTS, srcs=PROMPTS, metrics=["nll"])
    with pytest.raises(ValueError, match="srcs"):
        score(TEXTS, metrics=["nll:smollm2"])
    assert "nll" not in {found.name for found in score(TEXTS, srcs=PROMPTS, bootstrap=0)}  # only if named
