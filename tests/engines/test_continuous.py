"""A batch that is refilled writes what each prompt would be given alone."""

from collections import Counter

import pytest
import torch

from families import DECODERS, tiny
from lengthwise.engines import continuous
from lengthwise.engines.continuous import SamplingParams, SeededPrompt, generate_continuous

TEXTS = ["Tell me about the dog.", "x", "A longer question: where is the fox, and why?", "Où est-il ?", "The quick"]


def requests_of(tokenizer, count=20):
    """Prompts of many lengths, none twice."""
    return [SeededPrompt([*tokenizer(TEXTS[n % len(TEXTS)])["input_ids"], 5 + n], seed=n) for n in range(count)]


def rolled(model, requests, *, eos=(2,), max_tokens=30, top_p=0.0, temperature=0.8, rows=4):
    done = generate_continuous(model, requests, SamplingParams(list(eos), 0, max_tokens, temperature, top_p), rows=rows)
    return {one.place: (one.ids, one.ended) for one in done}


@pytest.mark.parametrize(("family", "stride"), [*((family, 7) for family in DECODERS), ("llama", 1)])
def test_the_likeliest_tokens_are_those_of_generate(family, stride, byte_bpe, monkeypatch):
    monkeypatch.setattr(continuous, "STRIDE", stride)
    model, requests = tiny(family, byte_bpe), requests_of(byte_bpe, 10)
    eos = [2, *range(40, 100)]  # many ends, so that rows end at all times
    expected = {}
    for place, request in enumerate(requests):
        inputs = {
            "input_ids": torch.tensor([request.prompt]),
            "attention_mask": torch.ones(1, len(request.prompt), dtype=int),
        }
        written = model.generate(**inputs, do_sample=False, max_new_tokens=20, eos_token_id=eos, pad_token_id=0)
        ids = written[0, len(request.prompt) :].tolist()
        ended = ids[-1] in eos
        expected[place] = (ids[: len(ids) - ended], ended)
    assert rolled(model, requests, eos=eos, max_tokens=20, rows=3) == expected
    assert len({len(ids) for ids, ended in expected.values() if ended}) > 1  # rows do end, and not all at once


def test_no_text_is_over_before_its_time(byte_bpe):
    model, requests, eos = tiny("llama", byte_bpe), requests_of(byte_bpe, 10), [2, *range(40, 100)]
    free = rolled(model, requests, eos=eos, max_tokens=20)
    assert min(len(ids) for ids, _ in free.values()) < 9
    done = generate_continuous(
        model, requests, SamplingParams(eos, 0, max_tokens=20, temperature=0.8, top_p=0.0, min_tokens=9), rows=4
    )
    for one in done:
        assert 9 <= len(one.ids) <= 20
        assert not set(one.ids[:9]) & set(eos)


def test_a_seed_draws_the_same_text_whatever_else_is_written(byte_bpe):
    model, requests = tiny("llama", byte_bpe), requests_of(byte_bpe)
    together = rolled(model, requests, top_p=0.95, rows=7)
    assert together == rolled(model, requests, top_p=0.95, rows=3)
    assert rolled(model, requests[11:12], top_p=0.95) == {0: together[11]}
    other = [SeededPrompt(request.prompt, request.seed + 1000) for request in requests]
    assert together != rolled(model, other, top_p=0.95, rows=7)


def test_tokens_are_drawn_by_their_probability(byte_bpe):
    model = tiny("llama", byte_bpe)
    prompt = byte_bpe("The dog")["input_ids"]
    with torch.no_grad():
        best = (model(torch.tensor([prompt])).logits[0, -1] / 0.5).topk(50)
    shares = best.values.softmax(0)
    keep = int((shares.cumsum(0) < 0.6).sum()) + 1  # the fewest that make up 0.6
    assert 3 <= keep < 50
    drawn = rolled(
        model,
        [SeededPrompt(prompt, n) for n in range(2000)],
        max_tokens=1,
        top_p=0.6,
        temperature=0.5,
        rows=500,
        eos=[10**6],
    )
    counts = Counter(ids[0] for ids, _ in drawn.values())
    assert set(counts) <= set(best.indices[:keep].tolist())
    for token, share in zip(best.indices[:3].tolist(), shares[:3] / shares[:keep].sum(), strict=True):
        assert counts[token] / 2000 == pytest.approx(float(share), abs=0.03)


def test_the_model_is_left_as_it_was_even_if_nobody_waits_for_the_end(byte_bpe):
    model = tiny("llama", byte_bpe)
    before = model.config._attn_implementation
    texts = generate_continuous(
        model, requests_of(byte_bpe), SamplingParams([2], 0, max_tokens=3, temperature=1.0, top_p=1.0), rows=2
    )
    next(texts)
    texts.close()
    assert model.config._attn_implementation == before
    assert rolled(model, []) == {}


def test_what_is_not_known_is_refused(byte_bpe):
    narrow = tiny("mistral", byte_bpe)
    narrow.config.sliding_window = 16
    with pytest.raises(ValueError, match="attends to 16 tokens"):
        rolled(narrow, requests_of(byte_bpe))
    llama = tiny("llama", byte_bpe)
    with pytest.raises(ValueError, match="temperature above 0"):
        rolled(llama, requests_of(byte_bpe), temperature=0)
    with pytest.raises(ValueError, match="at least one token"):
        rolled(llama, [SeededPrompt([], 0)])
