"""Marian on onnxruntime: rows that end, cache columns that are removed, sources that are encoded once, refusals."""

import numpy as np
import pytest
from test_conformance import TEXTS, greedy
from test_onnx import pair

from lengthwise import EncodingControl
from lengthwise.engines import beam_cache


def until(end, ids):
    """The ids before the first end, or before padding, which ends a text of transformers."""
    return ids[: min([*ids, one].index(one) for one in (end, 0))]


@pytest.mark.parametrize("beams", [1, 4])
def test_a_free_search_whose_rows_end_at_different_steps(beams, sp_unigram):
    reference, engine = pair("marian", sp_unigram)
    prompts = [engine.prompt_ids(text) for text in (*TEXTS, "The fox.", "Why?", "It is late, and the dog is at home.")]
    texts = reference.search(prompts, max_new_tokens=20, options={"min_new_tokens": 20}).ids
    reach = {token: {(*ids, token).index(token) for ids in texts} for token in texts[0]}
    end = max(reach, key=lambda token: len(reach[token]))  # a token that rows write at different steps ends them
    reference.model.generation_config.eos_token_id, engine.eos = end, [end]
    how = {"max_new_tokens": 20, "beams": beams, "sequences": beams}
    expected, found = (one.search(prompts, **how).ids for one in (reference, engine))
    assert [until(end, ids) for ids in found] == [until(end, ids) for ids in expected]
    assert len(reach[end]) > 1


def test_columns_that_no_row_sees_are_removed(sp_unigram, monkeypatch):
    monkeypatch.setattr(beam_cache.BeamCache.__init__, "__defaults__", (4,))
    reference, engine = pair("marian", sp_unigram)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    how = {"max_new_tokens": 60, "beams": 6, "sequences": 3, "options": {"min_new_tokens": 40}, "scores": True}
    expected, found = (one.search(prompts, **how) for one in (reference, engine))
    assert found.ids == expected.ids
    rows = engine.prefill(prompts, each=2)
    for _ in range(30):
        rows.select(np.array([1, 0, 2, 3, 4, 4]))
        rows.step(np.asarray(rows.scores.argmax(1)))
    assert rows._cache.used < 120  # of 180 that were appended
    assert greedy(engine.prefill(prompts), 60).tolist() == greedy(reference.prefill(prompts), 60).tolist()


def test_equal_sources_are_encoded_once(sp_unigram):
    _, engine = pair("marian", sp_unigram)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    runs, encode = [], engine.graphs._encode
    engine.graphs._encode = lambda prompts: (runs.append(len(prompts)), encode(prompts))
    engine.score(prompts * 3, [[5, 9]] * 9)
    engine.search(prompts, max_new_tokens=3, beams=2)
    assert runs == [3]


def test_a_text_is_scored_up_to_its_end(sp_unigram):
    _, engine = pair("marian", sp_unigram)
    prompts, end = [engine.prompt_ids(text) for text in TEXTS], engine.eos[0]
    texts, read, sizes = [[5, 9, end], [7, 8, 11, 6, 10, end], [12, end]], engine.graphs.read, []
    engine.graphs.read = lambda sources, inputs, steps: (sizes.extend(inputs.sizes), read(sources, inputs, steps))[1]
    expected = engine.score(prompts, texts)
    found = engine.score(prompts, [[*text, *[end] * (9 - len(text))] for text in texts])  # as a search pads them
    assert sizes == [2, 3, 6] * 2  # the start token in place of the end
    assert found.token.shape == (3, 9)
    for padded, alone in zip(found, expected, strict=True):
        for row, text in enumerate(texts):
            np.testing.assert_array_equal(padded[row, : len(text)], alone[row, : len(text)])


def test_what_it_refuses(sp_unigram):
    with pytest.raises(ValueError, match="with kind difference; this one has ratio; use the engine transformers"):
        pair("marian", sp_unigram, EncodingControl("ratio"))
    with pytest.raises(ValueError, match="no encoding with scale frobenius"):
        pair("marian", sp_unigram, EncodingControl(scale="frobenius"))
    _, engine = pair("marian", sp_unigram)
    with pytest.raises(ValueError, match="no option 'repetition_penalty'"):
        engine.search([[5, 2]], max_new_tokens=3, beams=2, options={"repetition_penalty": 1.2})
