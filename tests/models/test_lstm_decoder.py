"""The LSTM decoder of LenInit: generation, scoring and loading agree with one teacher-forced pass."""

from pathlib import Path
from typing import Any

import pytest
import torch

from families import tiny
from lengthwise.controls import EncodingControl, InitialCell
from lengthwise.controls.attach import attach
from lengthwise.engines.base import LengthInputs
from lengthwise.engines.rows import TokenLogProbs
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.models.checkpoint import load_model, save
from lengthwise.training.fresh_model import fresh_model
from lengthwise.training.recipe import Fresh

TEXTS = ["The quick brown fox jumps.", "A title", "x"]
STEPS = 6
LENGTHS = LengthInputs(length=[5, 30, 12], unit=[0] * 3, at_most=[False] * 3, written=[0] * 3)


@pytest.fixture
def tokenizer(sp_unigram: Any) -> Any:
    return sp_unigram


@pytest.fixture
def engine(tokenizer: Any) -> TransformersEngine:
    torch.manual_seed(0)
    model = attach(fresh_model(Fresh(size="tiny", lstm=2, dropout=0.0), tokenizer), InitialCell(), tokenizer)
    [control] = model.length_control.controls
    torch.nn.init.normal_(control.vector, std=0.3)
    return TransformersEngine(model, tokenizer, "lstm")


def test_cached_steps_search_and_scores_agree(engine: TransformersEngine) -> None:
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    options = {"min_new_tokens": STEPS}
    rows = engine.prefill(prompts, LENGTHS, options)
    taken, chosen = [], []
    for _ in range(STEPS):
        log_probs = rows.scores.log_softmax(-1)
        taken.append(rows.scores.argmax(1))
        chosen.append(log_probs.gather(1, taken[-1][:, None])[:, 0])
        rows.step(taken[-1])
    ids = torch.stack(taken, 1).tolist()
    assert engine.search(prompts, LENGTHS, max_new_tokens=STEPS, options=options).ids == ids
    scored = TokenLogProbs(*map(torch.from_numpy, engine.score(prompts, ids, LENGTHS)))
    # `min_new_tokens` has excluded the end, which has some probability in the scores.
    ends = scored.end.exp()
    torch.testing.assert_close(scored.token - (1 - ends).log(), torch.stack(chosen, 1), atol=1e-4, rtol=1e-4)


def test_beams_and_padding(engine: TransformersEngine) -> None:
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    together = engine.search(prompts, LENGTHS, max_new_tokens=STEPS, beams=3, sequences=2, scores=True)
    for n, prompt in enumerate(prompts):
        own = LengthInputs(LENGTHS.length[n : n + 1], [0], [False], [0])
        alone = engine.search([prompt], own, max_new_tokens=STEPS, beams=3, sequences=2, scores=True)
        assert alone.scores == pytest.approx(together.scores[2 * n : 2 * n + 2], abs=1e-4)


def test_the_length_reaches_every_step_and_not_other_rows(engine: TransformersEngine) -> None:
    prompts, texts = [engine.prompt_ids(text) for text in TEXTS], [[9, 10, 11]] * 3
    before = torch.from_numpy(engine.score(prompts, texts, LENGTHS).token)
    changed = LengthInputs(length=[5, 31, 12], unit=[0] * 3, at_most=[False] * 3, written=[0] * 3)
    moved = (torch.from_numpy(engine.score(prompts, texts, changed).token) - before).abs() > 1e-6
    assert moved.tolist() == [[False] * 3, [True] * 3, [False] * 3]
    without = torch.from_numpy(engine.score(prompts, texts).token)
    zero = engine.controls[0]
    torch.nn.init.zeros_(zero.vector)
    torch.testing.assert_close(torch.from_numpy(engine.score(prompts, texts, LENGTHS).token), without)


def test_saved_and_loaded(engine: TransformersEngine, tokenizer: Any, tmp_path: Path) -> None:
    prompts, texts = [engine.prompt_ids(text) for text in TEXTS], [[9, 10, 11]] * 3
    save(engine.model, tokenizer, tmp_path / "model")
    loaded = TransformersEngine(*load_model(tmp_path / "model"))
    assert [control.name for control in loaded.controls] == ["initial_cell"]
    before, after = (torch.from_numpy(one.score(prompts, texts, LENGTHS).token) for one in (engine, loaded))
    torch.testing.assert_close(before, after)
    assert not loaded.model.generation_config.use_cache


def test_other_controls_work_with_it(tokenizer: Any) -> None:
    model = attach(fresh_model(Fresh(size="tiny", lstm=1), tokenizer), EncodingControl(scale=1.0), tokenizer)
    engine = TransformersEngine(model, tokenizer, "lstm")
    assert len(engine.search([engine.prompt_ids("x")], None, max_new_tokens=3).ids) == 1


def test_a_transformer_has_no_cell(tokenizer: Any) -> None:
    with pytest.raises(ValueError, match="needs an LSTM decoder; MarianMTModel has none"):
        attach(tiny("marian", tokenizer), InitialCell(), tokenizer)
