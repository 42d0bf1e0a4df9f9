"""Log-probabilities against plain calls, text by text: every family, padded, chunked, cached, with length inputs."""

import math

import pytest
import torch

from families import CONTROLS, DECODERS, ENCODER_DECODERS, FAMILIES, tiny
from lengthwise import attach
from lengthwise.engines import transformers as transformers_engine
from lengthwise.engines.base import LengthInputs
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.scoring.log_likelihood import CausalScorer, log_probs

PROMPTS = ["Where is the house?", "The sea", "Yes or no?", "What is rain?"]
TEXTS = ["Over there.", "It is cold and deep at night, and nobody swims in it.", "", "Water"]


@pytest.fixture(scope="module")
def engine(byte_bpe):
    return TransformersEngine(tiny("llama", byte_bpe), byte_bpe)


def engine_of(family, request, control=None):
    tokenizer = request.getfixturevalue("sp_unigram" if family in ENCODER_DECODERS else "byte_bpe")
    model = tiny(family, tokenizer)
    return TransformersEngine(attach(model, CONTROLS[control](), tokenizer) if control else model, tokenizer)


def ids_of(engine):
    prompts = [engine.prompt_ids(prompt) for prompt in PROMPTS]
    return prompts, [engine.tokenizer(text, add_special_tokens=False)["input_ids"] for text in TEXTS]


def by_hand(engine, prompt, text, length=None):
    """The log-probabilities (time, vocabulary) where a text is predicted, from one plain call."""
    model = engine.model
    more = {} if length is None else {"decoder_length": torch.tensor([length])}
    with torch.inference_mode():
        if engine.encoder_decoder:
            read = torch.tensor([[model.config.decoder_start_token_id, *text[:-1]]])
            logits = model(input_ids=torch.tensor([prompt]), decoder_input_ids=read, **more).logits[0]
        else:
            more |= {} if length is None else {"decoder_start": torch.tensor([len(prompt)])}
            logits = model(input_ids=torch.tensor([[*prompt, *text]]), **more).logits[0, len(prompt) - 1 : -1]
    return logits.double().log_softmax(-1)


@pytest.mark.parametrize("tokens", [4096, 40])  # one batch, and one of few rows
@pytest.mark.parametrize("family", FAMILIES)
def test_each_text_as_if_it_were_alone(family, tokens, request, monkeypatch):
    monkeypatch.setattr(TransformersEngine, "batch_tokens", tokens)
    engine = engine_of(family, request)
    prompts, texts = ids_of(engine)
    found = dict(log_probs(engine, prompts, texts))
    assert found.keys() == {0, 1, 3}  # the empty text has no tokens
    for row, values in found.items():
        expected = by_hand(engine, prompts[row], texts[row])
        torch.testing.assert_close(
            torch.from_numpy(values.token),
            expected.gather(1, torch.tensor(texts[row])[:, None])[:, 0],
            atol=1e-4,
            rtol=1e-4,
        )
        torch.testing.assert_close(torch.from_numpy(values.best), expected.amax(1), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(torch.from_numpy(values.end), expected[:, 2], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", ["llama", "gpt2", "marian", "t5"])
@pytest.mark.parametrize("control", ["difference", "whole"])
def test_attached_controls_receive_lengths(family, control, request):
    engine = engine_of(family, request, control)
    prompts, texts = ids_of(engine)
    lengths = LengthInputs([9, 40, 1, 5], [0] * 4, [False] * 4, [0] * 4)
    for row, values in log_probs(engine, prompts, texts, lengths):
        expected = by_hand(engine, prompts[row], texts[row], lengths.length[row])
        expected = expected.gather(1, torch.tensor(texts[row])[:, None])[:, 0]
        torch.testing.assert_close(torch.from_numpy(values.token), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", DECODERS)
def test_after_a_cache_of_the_prompt(family, request, monkeypatch):
    monkeypatch.setattr(transformers_engine, "_COLUMNS", 3)
    engine = engine_of(family, request)
    prompts = [engine.prompt_ids(prompt) for prompt in PROMPTS]
    texts = torch.randint(3, 400, (4, 8)).tolist()
    plain, cache = engine.score(prompts, texts), engine.prompt_cache(prompts)
    engine.score(prompts, [text[:5] for text in texts], None, cache)  # a cache can be used again
    cached = engine.score(prompts, texts, None, cache)
    for one, other in zip(plain, cached, strict=True):
        assert one.shape == (4, 8)
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_tokens_that_are_never_written_get_no_probability(engine, monkeypatch):
    prompts, texts = ids_of(engine)
    [(_, plain)] = log_probs(engine, prompts[:1], texts[:1])
    never = [0, 1, 7]
    monkeypatch.setattr(engine.model.generation_config, "bad_words_ids", [[one] for one in never] + [[4, 5]])
    [(_, banned)] = log_probs(engine, prompts[:1], texts[:1])
    expected = by_hand(engine, prompts[0], texts[0])
    lost = (1 - expected[:, never].exp().sum(1)).log()
    torch.testing.assert_close(
        torch.from_numpy(banned.token), torch.from_numpy(plain.token) - lost, atol=1e-4, rtol=1e-4
    )


# ---- answers to prompts


def test_likelihood_is_the_sum_over_the_text(engine):
    found = CausalScorer(engine).likelihood(TEXTS, PROMPTS)
    for row, (prompt, text) in enumerate(zip(*ids_of(engine), strict=True)):
        total = by_hand(engine, prompt, text).gather(1, torch.tensor(text)[:, None]).sum() if text else 0.0
        assert found[row] == pytest.approx((float(total), len(text)), abs=1e-3)


def test_a_text_without_a_prompt_is_scored_from_its_second_token(engine):
    [found] = CausalScorer(engine).likelihood(["Water falls."], [""])
    _, *rest = ids = engine.tokenizer("Water falls.")["input_ids"]
    expected = by_hand(engine, ids[:1], rest).gather(1, torch.tensor(rest)[:, None]).sum()
    assert found == pytest.approx((float(expected), len(ids)), abs=1e-3)


def test_a_model_without_preferences_gives_each_token_an_equal_share(byte_bpe):
    model = tiny("llama", byte_bpe)
    torch.nn.init.zeros_(model.lm_head.weight)
    log_prob, tokens = CausalScorer(TransformersEngine(model, byte_bpe)).likelihood(["is cold"], ["The sea"])[0]
    assert log_prob / tokens == pytest.approx(-math.log(model.config.vocab_size), rel=1e-5)


def test_what_a_causal_scorer_refuses(engine, byte_bpe):
    with pytest.raises(ValueError, match="also has an encoder"):
        CausalScorer(TransformersEngine(tiny("bart", byte_bpe), byte_bpe))
    with pytest.raises(ValueError, match="got 1 for 4 texts"):
        CausalScorer(engine).likelihood(TEXTS, PROMPTS[:1])
    with pytest.raises(ValueError, match=r"row 1 has .* tokens with its source; .* allows 128"):
        CausalScorer(engine).likelihood(["a", "word " * 100], ["b", "c"])
