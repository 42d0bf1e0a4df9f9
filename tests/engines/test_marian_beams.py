"""Beam search for many sentences: the same translations as transformers' own, batch by batch."""

import pytest
import torch

from families import tiny
from lengthwise.engines.marian_beams import MarianBeams
from lengthwise.engines.torch_largest import largest

SOURCES = [[5, 9, 30, 2], [7, 8, 9, 10, 11, 12, 2], [33, 34, 35, 2], [21, 22, 23, 24, 25, 2]]
LIMIT = 96


@pytest.fixture
def model():
    """Return a random model that writes no padding, and that becomes the likelier to end a text the longer it is."""
    found = tiny("marian", range(60))
    positions = found.model.decoder.embed_positions.weight
    with torch.no_grad():
        found.final_logits_bias[0, found.config.pad_token_id] = -1e4
        positions += torch.arange(len(positions))[:, None] / 2 * found.lm_head.weight[found.config.eos_token_id]
    return found


def reference(model, source, beams):
    """Return the best translation of transformers and its score."""
    found = model.generate(
        torch.tensor([source]),
        num_beams=beams,
        max_new_tokens=LIMIT,
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
    )
    ids = found.sequences[0, 1:].tolist()
    return ids[: ids.index(model.config.eos_token_id)], float(found.sequences_scores[0])


@pytest.mark.parametrize("beams", [2, 4])
def test_the_best_translation_is_that_of_transformers(model, beams):
    found = MarianBeams(model, beams).translate(SOURCES, LIMIT)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        ids, score = reference(model, source, beams)
        assert len(ids) > 3
        assert hypotheses[0].ids == ids
        assert hypotheses[0].score == pytest.approx(score, abs=1e-5)


def test_translations_do_not_depend_on_other_rows_or_empty_ones(model):
    search = MarianBeams(model, 3)
    together = search.translate(SOURCES, LIMIT, rows=7)
    alone = [search.translate([source], LIMIT)[0] for source in SOURCES]
    assert [[one.ids for one in some] for some in together] == [[one.ids for one in some] for some in alone]


def test_a_batch_starts_from_nothing(model):
    search = MarianBeams(model, 3)
    first = search.translate(SOURCES, LIMIT)
    search.translate(SOURCES[::-1], LIMIT)
    assert search.translate(SOURCES, LIMIT) == first


def test_a_cost_per_character_makes_translations_shorter(model):
    chars = torch.ones(model.config.vocab_size)
    search = MarianBeams(model, 4, chars)
    free = search.translate(SOURCES, LIMIT)
    short = search.translate(SOURCES, LIMIT, char_costs=[1.0] * len(SOURCES))
    assert sum(len(some[0].ids) for some in short) < sum(len(some[0].ids) for some in free if some)


def test_a_limit_of_characters_is_kept_and_a_wide_one_changes_nothing(model):
    chars = torch.arange(model.config.vocab_size) % 5 + 1.0
    chars[model.config.eos_token_id] = 0
    search = MarianBeams(model, 4, chars)
    free = search.translate(SOURCES, LIMIT)
    used = [int(chars[some[0].ids].sum()) for some in free]
    assert search.translate(SOURCES, LIMIT, max_chars=[10_000] * len(SOURCES)) == free
    limits = [size - 1 for size in used]
    for some, limit in zip(search.translate(SOURCES, LIMIT, max_chars=limits), limits, strict=True):
        assert all(chars[one.ids].sum() <= limit for one in some)
    assert all(not one.ids for one in search.translate(SOURCES[:1], LIMIT, max_chars=[0])[0])


def test_a_score_with_a_cost_is_that_of_the_tokens_and_the_costs(model):
    chars = torch.ones(model.config.vocab_size)
    chars[model.config.eos_token_id] = 0
    search = MarianBeams(model, 4, chars)
    [[best, *_]] = search.translate(SOURCES[:1], LIMIT, char_costs=[0.01])
    [[free, *_]] = search.translate(SOURCES[:1], LIMIT)
    assert best.ids == free.ids
    assert search.mean_log_prob(best, 0.01) == pytest.approx(free.score, abs=1e-4)


def test_only_marian_models():
    with pytest.raises(ValueError, match="Marian models; got BartForConditionalGeneration"):
        MarianBeams(tiny("bart", range(60)), 4)


@pytest.mark.parametrize("size", [60, 5_000, 8_192, 9_001])
def test_the_largest_values_are_those_of_topk(size):
    torch.manual_seed(size)
    scores = torch.randn(2, 3, size)
    scores[..., -1] = 9.0  # in the last, partial block
    values, places = largest(scores, 8)
    assert torch.equal(values.sort().values, scores.topk(8).values.sort().values)
    assert torch.equal(scores.gather(-1, places), values)


def test_batches_of_different_shapes_share_memory(model):
    search = MarianBeams(model, 3)
    alone = [search.translate([source], LIMIT)[0] for source in SOURCES]
    search.translate([[9] * 40 + [2]] * 5, LIMIT)  # larger
    assert [search.translate([source], LIMIT)[0] for source in SOURCES] == alone
    assert len(search.buffers) == 2
