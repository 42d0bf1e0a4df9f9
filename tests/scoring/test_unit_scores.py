"""Scores of words: their sums are those of the texts, and words are tokenized as in their texts."""

import numpy as np
import pytest

from families import tiny
from lengthwise import Writer, load
from lengthwise.scoring.log_likelihood import log_probs
from lengthwise.scoring.unit_scores import UnitScorer, split_units

TEXTS = ["The disk is full.", "Save 3 files, then close it", "Why not?"]


@pytest.mark.parametrize(
    ("text", "units"),
    [("It works.", (["It", "works"], ".")), ("Save as", (["Save", "as"], "")), ("", ([], "")), (".", (["."], ""))],
)
def test_split_units(text, units):
    assert split_units(text) == units


def test_scores_of_a_causal_model_add_up_to_those_of_the_text(byte_bpe):
    engine = Writer(tiny("llama", byte_bpe), byte_bpe, name="tiny").engine
    prompt = engine.prompt_ids("Write.")
    ids = [[*byte_bpe(text, add_special_tokens=False)["input_ids"], engine.eos[0]] for text in TEXTS]
    wanted = {row: scored.token.sum() for row, scored in log_probs(engine, [prompt] * 3, ids)}
    found = UnitScorer(engine).scores(TEXTS, [prompt] * 3)
    assert [len(scores) for scores in found] == [5, 7, 3], "words and the end"
    assert [scores.sum() for scores in found] == pytest.approx([wanted[row] for row in range(3)])


def test_scores_of_a_translator_add_up_to_those_of_the_text():
    engine = load("en-it", engine="transformers", device="cpu").engine
    sources = engine.tokenizer(["The disk is full.", "Save the files."])["input_ids"]
    texts = ["Il disco è pieno.", "Salva i file"]
    ids = engine.tokenizer(text_target=texts)["input_ids"]
    wanted = {row: scored.token for row, scored in log_probs(engine, sources, ids)}
    found = UnitScorer(engine).scores(texts, sources)
    assert [scores.sum() for scores in found] == pytest.approx([wanted[row].sum() for row in range(2)], abs=1e-3)
    assert np.allclose(found[0][-1], wanted[0][-2:].sum(), atol=1e-3), "the full stop and the end"
