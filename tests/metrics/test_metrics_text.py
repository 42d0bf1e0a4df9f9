"""The likelihood of texts under a model, against plain calls for each text; and errors by target, read off a plot."""

import math

import pytest
import torch

from families import tiny
from lengthwise import Writer, save
from lengthwise.evaluation import plots
from lengthwise.metrics import Texts, compare, score
from lengthwise.metrics.perplexity import surprise

PROMPTS = ["Where is the house?", "The sea", "Yes or no?", "What is rain?"]
TEXTS = ["Over there.", "It is cold and deep at night, and nobody swims in it.", "", "Water"]


@pytest.fixture(scope="module")
def writer(byte_bpe):
    return Writer(tiny("llama", byte_bpe), byte_bpe)


def _by_hand(writer, prompt, text):
    """The model reads prompt and text in one row; each token of the text is looked up, one by one."""
    head, tail = (
        writer.tokenizer(part, add_special_tokens=first)["input_ids"] for part, first in ((prompt, True), (text, False))
    )
    with torch.inference_mode():
        logits = writer.model(input_ids=torch.tensor([[*head, *tail]])).logits[0]
    return -sum(logits[len(head) + n - 1].log_softmax(-1)[token].item() for n, token in enumerate(tail)), len(tail)


def test_each_text_as_if_it_were_alone(writer):
    found = surprise(writer, PROMPTS, TEXTS)  # of unlike length, so there is padding
    for row, (prompt, text) in enumerate(zip(PROMPTS, TEXTS, strict=True)):
        assert found[row] == pytest.approx(_by_hand(writer, prompt, text), abs=1e-3)
    assert found[2].tolist() == [0, 0]


def test_a_model_that_knows_nothing_is_surprised_by_the_log_of_its_vocabulary(byte_bpe):
    model = tiny("llama", byte_bpe)
    torch.nn.init.zeros_(model.lm_head.weight)
    nats, tokens = surprise(Writer(model, byte_bpe), ["The sea"], ["is cold"])[0]
    assert nats / tokens == pytest.approx(math.log(model.config.vocab_size), rel=1e-5)


def test_the_metric_is_of_all_tokens_together(writer, byte_bpe, tmp_path):
    folder = str(save(writer.model, byte_bpe, tmp_path / "judge"))
    [found] = score(TEXTS, srcs=PROMPTS, metrics=[f"nll:{folder}"])
    sums, tokens = zip(*(_by_hand(writer, p, t) for p, t in zip(PROMPTS, TEXTS, strict=True)), strict=True)
    assert found.value == pytest.approx(sum(sums) / sum(tokens), rel=1e-4)
    assert found.per_item[0] == pytest.approx(sums[0] / tokens[0], rel=1e-4)
    assert found.per_item[2] == 0
    assert found.signature.startswith("nll|per:token|end:no|given:source|model:judge|v1")
    same = compare(Texts(TEXTS, srcs=PROMPTS), Texts(TEXTS, srcs=PROMPTS), metric=f"nll:{folder}")
    assert (same.delta, same.p) == (0, 1)


def test_what_the_likelihood_needs(byte_bpe):
    with pytest.raises(ValueError, match="nll:smollm2"):
        score(TEXTS, srcs=PROMPTS, metrics=["nll"])
    with pytest.raises(ValueError, match="srcs"):
        score(TEXTS, metrics=["nll:smollm2"])
    assert "nll" not in {found.name for found in score(TEXTS, srcs=PROMPTS, bootstrap=0)}  # only when asked for
    with pytest.raises(ValueError, match="has an encoder"):
        surprise(Writer(tiny("bart", byte_bpe), byte_bpe), PROMPTS, TEXTS)


def test_errors_at_each_target():
    pytest.importorskip("matplotlib")
    systems = {"ours": ([100, 20, 20, 100], [101, 20, 22, 99]), "theirs": ([20, 50], [10, 90])}
    axes = plots.error_by_target(systems, unit="words").axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["20", "50", "100"]
    means = [container.lines[0].get_ydata().tolist() for container in axes.containers]
    assert means == [[1, 1], [10, 40]]
    assert "words" in axes.get_ylabel()
