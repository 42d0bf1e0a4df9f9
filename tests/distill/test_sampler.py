"""Sampling translations: seeds, lengths, the cost of characters, and texts that do not end."""

import copy

import numpy as np
import pytest
import torch

from families import ENCODER_DECODERS, tiny
from lengthwise import EncodingControl, LengthTokens, Writer, attach
from lengthwise.distill.sampler import Sampler
from lengthwise.engines.transformers import TransformersEngine

TEXTS = ["The quick brown fox jumps.", "A line on a small screen", "It was a bright cold day in April, and more."]


def greedy(engine, text, max_tokens, **lengths):
    """Return the tokens of `generate` for one text."""
    ids = engine.tokenizer(text, return_tensors="pt")
    with torch.inference_mode():
        found = engine.model.generate(**ids, **lengths, num_beams=1, do_sample=False, max_new_tokens=max_tokens)
    return found[0, 1:].tolist()


def decoded(engine, ids):
    return engine.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False).strip()


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_with_top_p_0_the_best_token_is_drawn(family, sp_unigram, monkeypatch):
    """Nothing is random then, and the other rows of the batch do not matter."""
    engine = TransformersEngine(tiny(family, sp_unigram), sp_unigram)
    first = len(engine.forced_start)
    monkeypatch.setattr(Sampler, "_decoded", lambda self, written, limits: written[:, :9].tolist())
    expected = [greedy(engine, text, 9 + first)[first:] for text in TEXTS]
    sampler = Sampler(Writer(engine), top_p=0.0)
    drawn = sampler.draw(TEXTS * 2, [1] * 6, [0.0] * 6, list(range(6)))
    assert drawn[:3] == drawn[3:] == sampler.best(TEXTS, 1)
    for found, known in zip(drawn, expected, strict=False):
        assert found[: len(known)] == known


def test_a_draw_depends_on_its_seed_alone(sp_unigram):
    model = tiny("marian", sp_unigram)
    model.final_logits_bias[0, 2] = 3.0  # or it would never come to an end
    sampler = Sampler(Writer(model, sp_unigram), temperature=2.0)
    together = sampler.draw([TEXTS[0]] * 5 + TEXTS[1:], [1] * 7, [0.0] * 7, [3, 4, 3, 5, 6, 7, 8])
    assert together[0] == together[2]
    assert len(set(together[:5])) > 2
    assert sampler.draw([TEXTS[2]], [1], [0.0], [8]) == together[6:]


def ending_soon(sp_unigram):
    """A model whose texts end by themselves: its end token has a chance at every step."""
    model = tiny("marian", sp_unigram)
    torch.nn.init.zeros_(model.get_output_embeddings().weight)  # tied: all tokens are alike to it …
    model.final_logits_bias[0, 2] = 2.5  # … but the end
    return TransformersEngine(model, sp_unigram, name="soon")


def test_the_cost_of_a_character_shortens_texts(sp_unigram):
    sampler = Sampler(Writer(ending_soon(sp_unigram)), temperature=1.0, top_p=1.0)
    sizes = []
    for cost in (0.0, 1.0):
        drawn = sampler.draw([TEXTS[2]] * 60, [1] * 60, [cost] * 60, list(range(60)))
        sizes.append(np.mean([len(text) for text in drawn if text is not None]))
    assert sizes[1] < 0.5 * sizes[0]


def test_a_text_that_does_not_end_is_none(sp_unigram):
    model = tiny("marian", sp_unigram)
    model.generation_config.forced_eos_token_id = 2  # a forced end does not count
    model.final_logits_bias[0, 2] = -100.0
    sampler = Sampler(Writer(model, sp_unigram))
    assert sampler.draw(TEXTS, [1] * 3, [0.0] * 3, [1, 2, 3]) == [None] * 3
    assert sampler.best(TEXTS, 2) == [None] * 3


def test_a_model_receives_a_length_for_each_draw(sp_unigram):
    model = attach(tiny("marian", sp_unigram), EncodingControl(unit=("words", "chars"), scale=4.0), sp_unigram)
    engine = TransformersEngine(model, sp_unigram)
    alone = {n: greedy(engine, TEXTS[0], 9, decoder_length=[n], decoder_unit=[1]) for n in (30, 9)}
    assert alone[30] != alone[9]
    last = alone[30][-1], alone[9][-1]
    model.generation_config.eos_token_id = [2, *last]
    sampler = Sampler(Writer(engine), top_p=0.0)
    assert sampler.receives_length
    drawn = sampler.draw([TEXTS[0]] * 3, [30, 9, 30], [0.0] * 3, [1, 2, 3])
    ends = {n: min(ids.index(token) for token in last if token in ids) for n, ids in alone.items()}
    assert drawn == [decoded(engine, alone[n][: ends[n]]) for n in (30, 9, 30)]


def test_a_length_token_precedes_the_source(sp_unigram):
    tokenizer = copy.deepcopy(sp_unigram)
    engine = TransformersEngine(attach(tiny("marian", tokenizer), LengthTokens(), tokenizer), tokenizer)
    asked = []
    engine.tokenizer = SpyOn(tokenizer, asked)
    Sampler(Writer(engine)).draw([TEXTS[2]] * 3, [5, 90, 6], [0.0] * 3, [1, 2, 3])
    assert asked == [[f"<len:short> {TEXTS[2]}", f"<len:long> {TEXTS[2]}"]]  # the encoder reads each once


class SpyOn:
    """A tokenizer that records the lists of texts it is given."""

    def __init__(self, tokenizer, asked):
        self._tokenizer, self._asked = tokenizer, asked

    def __call__(self, texts, **options):
        self._asked.append(texts)
        return self._tokenizer(texts, **options)

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def __len__(self):
        return len(self._tokenizer)


def test_models_that_cannot_draw_are_refused(byte_bpe, sp_unigram):
    with pytest.raises(ValueError, match="gpt is a decoder-only model"):
        Sampler(Writer(tiny("llama", byte_bpe), byte_bpe, name="gpt"))
    model = attach(tiny("marian", sp_unigram), EncodingControl(unit="words"), sp_unigram)
    with pytest.raises(ValueError, match="counts words; lengths are given in chars"):
        Sampler(Writer(model, sp_unigram, name="wordy"))
