"""Beam search for many sentences: the same translations as transformers' own, batch by batch."""

import pytest
import torch

from families import tiny
from lengthwise.engines.marian_beams import MarianBeams

SOURCES = [[5, 9, 30, 2], [7, 8, 9, 10, 11, 12, 2], [40, 2], [21, 22, 23, 24, 25, 2]]


@pytest.fixture
def model():
    torch.manual_seed(3)
    found = tiny("marian", range(60))
    with torch.no_grad():  # a random model writes padding, and hardly ever ends a text
        found.final_logits_bias[0, found.config.eos_token_id] += 1.5
        found.final_logits_bias[0, found.config.pad_token_id] = -1e4
    return found


def reference(model, source, beams, limit):
    """Return the best translation of transformers and its score."""
    found = model.generate(
        torch.tensor([source]),
        num_beams=beams,
        max_new_tokens=limit,
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
    )
    ids = found.sequences[0, 1:].tolist()
    return ids[: ids.index(model.config.eos_token_id)], float(found.sequences_scores[0])


@pytest.mark.parametrize("beams", [2, 4])
def test_the_best_translation_is_that_of_transformers(model, beams):
    found = MarianBeams(model, beams).translate(SOURCES, limit=64)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        ids, score = reference(model, source, beams, 64)
        assert hypotheses[0].ids == ids
        assert hypotheses[0].score == pytest.approx(score, abs=1e-5)


def test_translations_do_not_depend_on_other_rows_or_empty_ones(model):
    search = MarianBeams(model, 3)
    together = search.translate(SOURCES, limit=64, rows=7)
    alone = [search.translate([source], limit=64)[0] for source in SOURCES]
    assert [[one.ids for one in some] for some in together] == [[one.ids for one in some] for some in alone]


def test_a_batch_starts_from_nothing(model):
    search = MarianBeams(model, 3)
    first = search.translate(SOURCES, limit=64)
    search.translate(SOURCES[::-1], limit=64)
    assert search.translate(SOURCES, limit=64) == first


def test_a_cost_per_character_makes_translations_shorter(model):
    chars = torch.ones(model.config.vocab_size)
    search = MarianBeams(model, 4, chars)
    free = search.translate(SOURCES, limit=64)
    short = search.translate(SOURCES, limit=64, char_costs=[1.0] * len(SOURCES))
    assert sum(len(some[0].ids) for some in short) < sum(len(some[0].ids) for some in free if some)


def test_only_marian_models():
    with pytest.raises(ValueError, match="Marian models; got BartForConditionalGeneration"):
        MarianBeams(tiny("bart", range(60)), 4)
