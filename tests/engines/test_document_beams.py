"""Beam search over windows of documents: texts and scores of transformers' own search, with every attention control."""

import pytest
import torch

from families import tiny
from lengthwise import attach
from lengthwise.controls import Alibi, EncodingControl, GroupedAttention, LengthAwareAttention, SentenceSeparator
from lengthwise.engines.document_beams import DocumentBeams
from lengthwise.engines.transformers import TransformersEngine

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # with CUDA graphs only there
LAA = {"average": {"encoder": 5.0, "cross": 6.0, "decoder": 3.0}}
CONTROLS = {
    "none": lambda: [],
    "length-aware": lambda: [LengthAwareAttention(**LAA)],
    "alibi": lambda: [Alibi()],
    "grouped": lambda: [GroupedAttention(global_layers=1)],
    "alibi, length-aware": lambda: [Alibi(), LengthAwareAttention(**LAA)],
    "grouped, length-aware": lambda: [GroupedAttention(global_layers=1), LengthAwareAttention(**LAA)],
}


@pytest.fixture(params=CONTROLS)
def engine(request, sp_unigram):
    """Return an engine of a random model whose attention matters, and which ends its texts after some tokens."""
    torch.manual_seed(3)
    model = tiny("marian", sp_unigram)
    if controls := CONTROLS[request.param]():
        attach(model, controls, sp_unigram)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "gates" in name:
                weight.normal_(std=0.5)
            elif weight.dim() == 2 and "proj" in name:
                weight.mul_(8)
        model.final_logits_bias[0, model.config.pad_token_id] = -1e4
        model.final_logits_bias[0, model.config.eos_token_id] += 2
    return TransformersEngine(model.to(DEVICE), sp_unigram, "marian")


def windows(engine):
    """Return sources and prefixes of several sentences, of different lengths."""
    mark = engine.tokenizer.convert_tokens_to_ids("<sep>")
    [end] = engine.eos
    sources = [
        [9, 10, 11, mark, 12, 13, end],
        [20, 21, end],
        [14, mark, 15, 16, mark, 17, 18, 19, end],
        [30, 31, 32, end],
    ]
    prefixes = [[22, 23, mark], [], [24, mark, 25, 26, mark], [40, 41]]
    return [[*source, end] for source in sources], prefixes


def ended(ids, end):
    return ids[: ids.index(end) + 1] if end in ids else ids


def test_the_scores_are_those_of_the_whole_model_on_the_same_texts(engine):
    sources, prefixes = windows(engine)
    found = DocumentBeams(engine.model).search(sources, prefixes, 24, 3, 2)
    assert len(found.ids) == 2 * len(sources)
    for n, (ids, score) in enumerate(zip(found.ids, found.scores, strict=True)):
        text, prefix = ended(ids, engine.eos[0]), prefixes[n // 2]
        scored = engine.score([sources[n // 2]], [[*prefix, *text]]).token[0, len(prefix) : len(prefix) + len(text)]
        assert score == pytest.approx(scored.mean(), abs=1e-4)


def test_the_best_texts_are_those_of_transformers(engine):
    sources, prefixes = windows(engine)
    ours = DocumentBeams(engine.model).search(sources, prefixes, 64, 3, 1)
    engine._cannot_record = True  # on a GPU
    theirs = engine.search(sources, prefixes=prefixes, max_new_tokens=64, beams=3, scores=True)
    [end] = engine.eos
    assert sum(end in ids[:-1] for ids in theirs.ids) > 1
    for mine, other, score, best in zip(ours.ids, theirs.ids, ours.scores, theirs.scores, strict=True):
        if end in other[:-1]:  # at the limit transformers also takes texts that have not ended
            assert ended(mine, end) == ended(other, end)
            assert score == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("beams", [1, 3])
def test_sentences_without_a_prefix_are_searched_here_too(engine, beams):
    sources, _ = windows(engine)
    [end] = engine.eos
    found = [
        one.search(sources, max_new_tokens=64, beams=beams, scores=True)
        for one in (TransformersEngine(engine.model, engine.tokenizer, fixed_cache=fixed) for fixed in (True, False))
    ]
    assert sum(end in ids[:-1] for ids in found[1].ids) > 1
    for mine, other, score, best in zip(*(one.ids for one in found), *(one.scores for one in found), strict=True):
        if end in other[:-1]:
            assert ended(mine, end) == ended(other, end)
            assert score == pytest.approx(best, abs=1e-4) if beams > 1 else score == 0


def test_texts_do_not_depend_on_other_windows(engine):
    sources, prefixes = windows(engine)
    beams = DocumentBeams(engine.model)
    together = beams.search(sources, prefixes, 24, 3, 1)
    beams.search(sources[::-1], prefixes[::-1], 24, 3, 1)
    alone = [
        beams.search([source], [prefix], 24, 3, 1).ids[0] for source, prefix in zip(sources, prefixes, strict=True)
    ]
    end = engine.eos[0]
    assert [ended(ids, end) for ids in together.ids] == [ended(ids, end) for ids in alone]


def test_texts_have_at_most_as_many_tokens_as_asked_for(engine):
    sources, prefixes = windows(engine)
    engine.model.final_logits_bias[0, engine.eos[0]] = -1e4  # none ends
    found = DocumentBeams(engine.model).search(sources, prefixes, 5, 3, 1)
    assert [len(ids) for ids in found.ids] == [5] * len(sources)


def test_which_models_it_supports(sp_unigram):
    assert DocumentBeams.supports(attach(tiny("marian", sp_unigram), SentenceSeparator("<sep>", 64), sp_unigram))
    assert not DocumentBeams.supports(attach(tiny("marian", sp_unigram), EncodingControl(scale=1.0), sp_unigram))
    assert not DocumentBeams.supports(tiny("bart", sp_unigram))


@pytest.mark.parametrize(
    "settings",
    [
        {"suppress_tokens": [8]},
        {"bad_words_ids": [[8, 9]]},
        {"eos_token_id": [2, 31]},
        {"decoder_start_token_id": 7},
        {"sequence_bias": [[[8], -5.0]]},
        {"encoder_repetition_penalty": 1.2},
        {"length_penalty": 0.5},
    ],
)
def test_settings_that_change_a_search_are_left_to_transformers(settings, sp_unigram):
    model = tiny("marian", sp_unigram)
    assert DocumentBeams.supports(model)
    model.generation_config.update(**settings)
    assert not DocumentBeams.supports(model)


def test_a_text_ends_at_the_last_position(sp_unigram):
    model = tiny("marian", sp_unigram).to(DEVICE)
    model.final_logits_bias[0, model.config.eos_token_id] = -1e4  # none ends
    most = model.config.max_position_embeddings
    found = DocumentBeams(model).search([[9, 10, 2]], [[11, 12]], 2 * most, 2, 1)
    assert len(found.ids[0]) == most - 2
