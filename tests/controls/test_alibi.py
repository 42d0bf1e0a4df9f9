"""ALiBi: the paper's slopes and biases, and the same scores in training, in decoding and in a padded batch."""

from pathlib import Path
from typing import Any

import pytest
import torch

from controls.attention_checks import decoded_as_trained, given_masks_are_enough
from families import ABSOLUTE, ENCODER_DECODERS, tiny
from lengthwise import EncodingControl, attach, detach
from lengthwise.controls import Alibi, LengthAwareAttention
from lengthwise.controls.alibi import slopes
from lengthwise.controls.attached import controls_of
from lengthwise.controls.attention import controlled_attention
from lengthwise.engines.base import LengthInputs
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.models.checkpoint import load_model, save
from lengthwise.training import train
from toy_corpora import corpus
from toy_training import losses, mute, small

TEXTS = ["The dog.", "A longer question: where is the fox, and why?", "x"]


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (8, [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]),  # the paper's section 3
        (4, [2**-2, 2**-4, 2**-6, 2**-8]),
        (16, [2 ** (-n / 2) for n in range(1, 17)]),
        (12, [2**-n for n in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),  # `get_slopes` of the paper's code
        (1, [2**-8]),
    ],
)
def test_slopes(heads: int, expected: list[float]) -> None:
    assert slopes(heads).tolist() == pytest.approx(expected)


def test_biases() -> None:
    query, key = torch.zeros(1, 8, 2, 4), torch.zeros(1, 8, 4, 4)
    cached = Alibi().attention_bias("decoder", query, key)  # two columns are in the cache
    assert cached[0].tolist() == [[-1.0, -0.5, 0.0, -0.5], [-1.5, -1.0, -0.5, 0.0]]
    both = Alibi().attention_bias("encoder", key, key)
    assert both[1].tolist() == [
        [0, -0.25, -0.5, -0.75],
        [-0.25, 0, -0.25, -0.5],
        [-0.5, -0.25, 0, -0.25],
        [-0.75, -0.5, -0.25, 0],
    ]
    assert Alibi().attention_bias("cross", query, key) is None


def engine_of(family: str, byte_bpe: Any, sp_unigram: Any, *controls: Any) -> TransformersEngine:
    tokenizer = sp_unigram if family in ENCODER_DECODERS else byte_bpe
    model = tiny(family, tokenizer)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2 if weight.requires_grad else 1)  # so that attention is not flat
    return TransformersEngine(attach(model, controls, tokenizer) if controls else model, tokenizer)


@pytest.mark.parametrize("form", ["none", "booleans", "numbers"])
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_attention_by_hand(side: str, form: str, byte_bpe: Any, sp_unigram: Any) -> None:
    module = getattr(engine_of("bart", byte_bpe, sp_unigram, Alibi()).model.model, side).layers[0].self_attn
    query, key, value = torch.randn(3, 2, 4, 7, 8, generator=torch.Generator().manual_seed(0))
    seen = torch.ones(2, 1, 7, 7, dtype=torch.bool)
    if side == "decoder":
        seen = seen.tril()
    if form != "none":
        seen[1, ..., 5:] = False
    lowest = torch.finfo(torch.float32).min
    mask = {"none": None, "booleans": seen, "numbers": torch.zeros(seen.shape).masked_fill(~seen, lowest)}[form]
    found, _ = controlled_attention(module, query, key, value, mask, scaling=8**-0.5)
    distance = (torch.arange(7)[:, None] - torch.arange(7)).abs()
    logits = query @ key.transpose(2, 3) * 8**-0.5 - slopes(4)[:, None, None] * distance
    expected = logits.masked_fill(~seen, -torch.inf).softmax(-1) @ value
    torch.testing.assert_close(found, expected.transpose(1, 2))


@pytest.mark.parametrize("more", [[], [LengthAwareAttention(average={"encoder": 6, "cross": 6, "decoder": 4})]])
@pytest.mark.parametrize("family", ABSOLUTE)
def test_training_and_cached_decoding_agree(family: str, more: Any, byte_bpe: Any, sp_unigram: Any) -> None:
    engine = engine_of(family, byte_bpe, sp_unigram, Alibi(), *more)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    texts, together = decoded_as_trained(engine, prompts)
    for other in ([], more, [Alibi()] if more else []):  # the plain model, and each control alone
        if other or not more:
            without = torch.from_numpy(
                engine_of(family, byte_bpe, sp_unigram, *other).score(prompts, texts.tolist()).token
            )
            assert (without - together).abs().max() > 1e-3


@pytest.mark.parametrize("family", ABSOLUTE)
def test_positions_are_relative(family: str, byte_bpe: Any, sp_unigram: Any) -> None:
    """A longer text than the model has positions can be read, and columns of padding before it change nothing."""
    engine = engine_of(family, byte_bpe, sp_unigram, Alibi())
    limit = engine.model.config.max_position_embeddings
    ids = torch.arange(limit + 9).remainder(50).add(5)[None]
    inputs = {"input_ids": ids} | ({"decoder_input_ids": ids} if engine.encoder_decoder else {})
    with torch.inference_mode():
        assert engine.model(**inputs).logits.isfinite().all()
        few = dict.fromkeys(inputs, ids[:, :7])
        padded = {name: torch.cat([torch.full((1, 3), 9), row], 1) for name, row in few.items()}
        mask = torch.tensor([[0, 0, 0, *[1] * 7]])
        masks = {"attention_mask": mask} | ({"decoder_attention_mask": mask} if engine.encoder_decoder else {})
        found = engine.model(**padded, **masks).logits[:, 3:]
        torch.testing.assert_close(found, engine.model(**few).logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("options", [{}, {"cache_implementation": "static"}, {"use_cache": False}])
@pytest.mark.parametrize("family", ABSOLUTE)
def test_beams(family: str, options: dict[str, Any], byte_bpe: Any, sp_unigram: Any) -> None:
    """The score of a beam is that of its text, read at once."""
    engine = engine_of(family, byte_bpe, sp_unigram, Alibi())
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    plain = {"length_penalty": 0.0}
    found = engine.search(prompts, max_new_tokens=6, beams=3, scores=True, options=plain | options)
    assert found.ids == engine.search(prompts, max_new_tokens=6, beams=3, scores=True, options=plain).ids
    for prompt, text, score in zip(prompts, found.ids, found.scores, strict=True):
        text = text[: text.index(2) + 1] if 2 in text else text
        assert float(torch.from_numpy(engine.score([prompt], [text]).token).sum()) == pytest.approx(score, abs=1e-3)


def test_a_length_on_top_and_from_a_folder(byte_bpe: Any, sp_unigram: Any, tmp_path: Path) -> None:
    engine = engine_of("marian", byte_bpe, sp_unigram, Alibi(), EncodingControl(scale=0.5, positions="replace"))
    model, tokenizer = load_model(save(engine.model, engine.tokenizer, tmp_path / "model"))
    assert [control.name for control in controls_of(model)] == ["alibi", "encoding"]
    prompts, texts = [engine.prompt_ids(text) for text in TEXTS], [[5, 9, 7]] * 3
    lengths = [LengthInputs([n] * 3, [0] * 3, [False] * 3, [0] * 3) for n in (5, 50)]
    there = TransformersEngine(model, tokenizer)
    here = [torch.from_numpy(engine.score(prompts, texts, length).token) for length in lengths]
    assert (here[0] - here[1]).abs().max() > 1e-3
    for length, expected in zip(lengths, here, strict=True):
        torch.testing.assert_close(torch.from_numpy(there.score(prompts, texts, length).token), expected)


@pytest.mark.parametrize("family", ABSOLUTE)
def test_detaching_restores_the_plain_model(family: str, byte_bpe: Any, sp_unigram: Any) -> None:
    plain = engine_of(family, byte_bpe, sp_unigram)
    prompts = [plain.prompt_ids(text) for text in TEXTS]
    expected = plain.prefill(prompts).scores
    engine = engine_of(family, byte_bpe, sp_unigram, Alibi())
    assert not torch.equal(engine.prefill(prompts).scores, expected)
    detach(engine.model)
    assert torch.equal(engine.prefill(prompts).scores, expected)


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_models_without_absolute_positions_are_refused(family: str, byte_bpe: Any, sp_unigram: Any) -> None:
    with pytest.raises(ValueError, match=r"'alibi' takes the place of absolute positions, which .* does not have"):
        engine_of(family, byte_bpe, sp_unigram, Alibi())


@pytest.mark.parametrize("family", ["marian", "bart", "m2m100"])
def test_the_masks_of_a_batch_are_enough(family: str, byte_bpe: Any, sp_unigram: Any) -> None:
    """In training transformers builds no masks: rows are padded on the right."""
    engine = engine_of(family, byte_bpe, sp_unigram, Alibi())
    ids = torch.tensor([[5, 9, 7, 8, 11], [6, 10, 12, 0, 0]])
    given_masks_are_enough(engine.model, ids)


def test_a_recipe_is_trained_with_it(tmp_path: Path) -> None:
    dev = {"dev": corpus(tmp_path / "dev.jsonl", 10, seed=1), "dev_texts": 2}
    controls = [{"control": "alibi"}, {"control": "length_aware_attention"}, {"control": "encoding", "scale": 1.0}]
    model, _ = load_model(train(small(tmp_path, data=dev, controls=controls, train={"lr": 1e-2}), say=mute))
    found = losses(tmp_path / "run")
    assert found[12] < 0.9 * found[1]
    assert [control.name for control in controls_of(model)] == ["alibi", "length_aware_attention", "encoding"]
