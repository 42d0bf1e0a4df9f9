"""What every engine must do, on eight tiny model families. A new engine adds a line to `ENGINES`."""

import pytest
import torch

from families import ENCODER_DECODERS, FAMILIES, tiny
from lengthwise import EncodingControl, Writer, attach
from lengthwise.engines.base import LengthInputs
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.scoring.log_likelihood import token_log_probs

ENGINES = {"transformers": TransformersEngine}
TEXTS = ["The dog.", "A longer question: where is the fox, and why?", "x"]
STEPS = 8


@pytest.fixture(params=ENGINES)
def make(request, byte_bpe, sp_unigram):
    """A function from a family's name to an engine."""

    def engine(family, control=None):
        tokenizer = sp_unigram if family in ENCODER_DECODERS else byte_bpe
        model = tiny(family, tokenizer)
        if control is not None:
            attach(model, control, tokenizer)
        return ENGINES[request.param](model, tokenizer, "tiny")

    return engine


def greedy(rows, steps=STEPS):
    """The ids (rows, steps) of a greedy continuation."""
    taken = []
    for _ in range(steps):
        taken.append(rows.scores.argmax(1))
        rows.step(taken[-1])
    return torch.stack(taken, 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_steps_write_what_the_engines_own_search_writes(make, family):
    engine = make(family)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    inputs = engine.inputs(prompts)
    start = engine.text_start if engine.encoder_decoder else inputs["input_ids"].shape[1]
    found = engine.search(inputs, max_new_tokens=STEPS, options={"min_new_tokens": STEPS}).sequences[:, start:]
    rows = engine.prefill(prompts, None, {"min_new_tokens": STEPS})
    assert greedy(rows, found.shape[1]).tolist() == found.tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_those_of_one_forward_pass(make, family):
    engine = make(family)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    rows = engine.prefill(prompts)
    start, seen = rows.ids.shape[1], []
    for _ in range(STEPS):
        token = rows.scores.argmax(1)
        seen.append(rows.scores.log_softmax(1).gather(1, token[:, None]).squeeze(1))
        rows.step(token)
    scored = token_log_probs(engine, engine.inputs(prompts), rows.ids, start).token
    torch.testing.assert_close(torch.stack(seen, 1), scored, atol=2e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_forked_dropped_and_reordered(make, family):
    engine = make(family)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    alone = greedy(engine.prefill(prompts))
    rows = engine.prefill(prompts)
    first = greedy(rows, 3)
    rows.select(torch.tensor([2, 0, 0]))
    rest = greedy(rows, STEPS - 3)
    assert torch.cat([first[[2, 0, 0]], rest], 1).tolist() == alone[[2, 0, 0]].tolist()
    assert len(rows.ids) == len(rows.scores) == len(rows.hidden) == 3


@pytest.mark.parametrize("family", FAMILIES)
def test_the_hidden_state_is_what_the_output_layer_reads(make, family):
    engine = make(family)
    assert engine.can.hidden
    rows = engine.prefill([engine.prompt_ids(text) for text in TEXTS])
    with torch.inference_mode():
        logits = engine.model.get_output_embeddings()(rows.hidden)
    torch.testing.assert_close(logits, rows.scores, atol=1e-4, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_length_inputs_reach_the_control(make, family):
    engine = make(family, EncodingControl("difference", unit="tokens", scale=2.0))
    assert engine.can.lengths
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    far, near = (LengthInputs([n] * 3, [0] * 3, [False] * 3, [0] * 3) for n in (500, 3))
    plain, one, other = (engine.prefill(prompts, lengths).scores for lengths in (None, far, near))
    assert not torch.allclose(plain, one)
    assert not torch.allclose(one, other)


def test_a_writer_takes_an_engine(make):
    [written] = Writer(make("llama")).write("The dog.", "at most 40 chars")
    assert (written.fits, written.model) == (True, "tiny")
