"""Rows in a KV cache of fixed size have the scores of the usual rows, whatever happens to them."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, CohereConfig, GPTNeoConfig, GPTNeoXConfig, Qwen2Config, StableLmConfig

from families import CONTROLS, DECODERS, ENCODER_DECODERS, FAMILIES, tiny
from lengthwise import CountdownHead, Writer, attach
from lengthwise.engines import recorded_rows
from lengthwise.engines.base import LengthInputs
from lengthwise.engines.recorded_rows import RecordedRows
from lengthwise.engines.transformers import TransformersEngine

TEXTS = ["The dog.", "A longer question: where is the fox, and why?", "x"]
COUNTING = [("llama", name) for name in CONTROLS if name != "replace"] + [("marian", name) for name in CONTROLS]
RECORDED = (*DECODERS, "marian", "bart")
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # with CUDA graphs only there


@pytest.fixture
def tokenizers(byte_bpe, sp_unigram):
    """The tokenizer of each family."""
    return {family: sp_unigram if family in ENCODER_DECODERS else byte_bpe for family in FAMILIES}


def both(family, tokenizer, control=None):
    """The same model in two engines, without and with the cache of fixed size."""
    model = tiny(family, tokenizer).to(DEVICE)
    if control is not None:
        attach(model, CONTROLS[control](), tokenizer)
    return [TransformersEngine(model, tokenizer, fixed_cache=fixed) for fixed in (False, True)]


def assert_alike(usual, fixed, actions):
    """Compare the scores after each action: a number of greedy steps, or rows to select."""
    assert isinstance(fixed, RecordedRows)
    assert not isinstance(usual, RecordedRows)
    assert (fixed.hidden is None) == (usual.hidden is None)
    for action in actions:
        if isinstance(action, list):
            for rows in (usual, fixed):
                rows.select(torch.tensor(action))
        else:
            for _ in range(action):
                tokens = usual.scores.argmax(1)
                for rows in (usual, fixed):
                    rows.step(tokens)
        torch.testing.assert_close(fixed.scores, usual.scores, atol=2e-5, rtol=0)
        if usual.hidden is not None:
            torch.testing.assert_close(fixed.hidden, usual.hidden, atol=2e-5, rtol=0)


@pytest.mark.parametrize("family", RECORDED)
def test_rows_grow_fork_and_shrink(family, tokenizers, monkeypatch):
    monkeypatch.setattr(recorded_rows, "_COLUMNS", 24)  # soon full
    engines = both(family, tokenizers[family])
    usual, fixed = (engine.prefill([engine.prompt_ids(text) for text in TEXTS]) for engine in engines)
    assert_alike(usual, fixed, [3, [2, 0, 0, 1, 1, 1, 2], 9, [6, 0], 20, [1], 30, [0, 0, 0], 2])


@pytest.mark.parametrize(("family", "control"), [("llama", "countdown_head"), ("gpt2", None), ("marian", None)])
def test_hidden_states_are_those_before_controls_edit_them(family, control, tokenizers):
    engines = both(family, tokenizers[family], control)
    lengths = LengthInputs([9, 30, 17], [0, 1, 2], [False, True, False], [0, 0, 0]) if control else None
    prompts = [engines[0].prompt_ids(text) for text in TEXTS]
    usual, fixed = (engine.prefill(prompts, lengths, hidden=True) for engine in engines)
    assert_alike(usual, fixed, [3, [2, 0, 0, 1], 4, [1], 2])


@pytest.mark.parametrize("family", RECORDED)
@pytest.mark.parametrize("options", [{}, {"length_penalty": 0.0, "renormalize_logits": False}])
def test_beams_are_those_of_transformers(family, options, tokenizers):
    usual, fixed = both(family, tokenizers[family])
    prompts = [usual.prompt_ids(text) for text in TEXTS]
    how = {"max_new_tokens": 12, "beams": 4, "sequences": 3, "scores": True, "options": options}

    def short(ids, scores):  # texts end at different steps, and some tokens are never allowed
        scores = scores + 0
        scores[:, 2] += 2.0 * ids.shape[1] - 4
        scores[:, 7::3] = -torch.inf
        return scores

    one, other = (engine.search(prompts, processors=[short], **how) for engine in (usual, fixed))
    longest = max(len(ids) for ids in one.ids + other.ids)
    padded = [[[*ids, *[2] * (longest - len(ids))] for ids in found.ids] for found in (one, other)]
    assert padded[0] == padded[1]
    assert other.scores == pytest.approx(one.scores, abs=1e-4)


def test_rows_with_sources_of_other_lengths_reuse_a_step(tokenizers):
    usual, fixed = both("marian", tokenizers["marian"])
    for texts in (TEXTS, ["One.", "And two, with some more words.", "Three"]):
        prompts = [usual.prompt_ids(text) for text in texts]
        assert_alike(usual.prefill(prompts, each=2), fixed.prefill(prompts, each=2), [2, [1, 0, 2, 2, 5, 4], 3])
    assert len(fixed._steps._known) == 1


@pytest.mark.parametrize(("family", "control"), COUNTING)
def test_controls_receive_their_lengths(family, control, tokenizers):
    engines = both(family, tokenizers[family], control)
    units = len(engines[0].units)
    lengths = LengthInputs([9, 30, 17], [n % units for n in range(3)], [False, True, False], [0, 2, 0])
    usual, fixed = (engine.prefill([engine.prompt_ids(text) for text in TEXTS], lengths) for engine in engines)
    assert_alike(usual, fixed, [4, [1, 1, 0, 2], 12, [3], 2])


def test_two_batches_of_one_size_do_not_share_their_texts(byte_bpe):
    engine = both("llama", byte_bpe)[1]
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    alone = [_written(engine.prefill([prompt])) for prompt in prompts[:2]]
    one, other = (engine.prefill([prompt]) for prompt in prompts[:2])
    for rows in (one, other) * 6:
        rows.step(rows.scores.argmax(1))
    assert [rows.ids[0, -6:].tolist() for rows in (one, other)] == alone
    assert _written(engine.prefill(prompts[:1])) == alone[0]  # in a step that was used before


def _written(rows):
    for _ in range(6):
        rows.step(rows.scores.argmax(1))
    return rows.ids[0, -6:].tolist()


def test_a_switched_off_adapter_is_not_part_of_an_earlier_step(byte_bpe):
    torch.manual_seed(1)
    lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    model = get_peft_model(tiny("llama", byte_bpe).to(DEVICE), lora)
    usual, fixed = (TransformersEngine(model, byte_bpe, fixed_cache=fixed) for fixed in (False, True))
    prompts = [usual.prompt_ids(text) for text in TEXTS]
    assert_alike(usual.prefill(prompts), fixed.prefill(prompts), [4])
    kept = len(fixed._steps._known)
    with model.disable_adapter():
        assert_alike(usual.prefill(prompts), fixed.prefill(prompts), [4])
    assert len(fixed._steps._known) == 2 * kept == 2  # a graph would still have the adapter in it


@pytest.mark.parametrize("budget", ["exactly 30 chars", "at most 60 chars", "8-12 words"])
@pytest.mark.parametrize("how", [{}, {"candidates": 3, "seed": 1}, {"temperature": 1.1, "seed": 1}])
def test_a_writer_writes_the_same_texts(budget, how, byte_bpe):
    model = attach(tiny("llama", byte_bpe).to(DEVICE), CountdownHead(("chars", "words"), hidden=8), byte_bpe)
    usual, fixed = (Writer(TransformersEngine(model, byte_bpe, fixed_cache=fixed)) for fixed in (False, True))
    found = [writer.write(TEXTS, budget, **how) for writer in (usual, fixed)]
    assert [one.text for one in found[0]] == [one.text for one in found[1]]
    assert all(one.fits for one in found[1])


def test_what_cannot_be_recorded_is_decoded_as_usual(byte_bpe, sp_unigram):
    for family, tokenizer in (("t5", sp_unigram), ("llama", byte_bpe)):
        engine = TransformersEngine(tiny(family, tokenizer), tokenizer, fixed_cache=True)
        options = {"use_cache": False} if family == "llama" else {}
        rows = engine.prefill([engine.prompt_ids("The dog.")], None, options)
        assert not isinstance(rows, RecordedRows)
        rows.step(rows.scores.argmax(1))


@pytest.mark.parametrize(
    ("config", "recorded"),
    [
        (GPTNeoConfig(hidden_size=16, num_layers=1, num_heads=2, attention_types=[[["global"], 1]]), False),
        (CohereConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2), True),
        (GPTNeoXConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2), True),
        (StableLmConfig(hidden_size=32, intermediate_size=32, num_hidden_layers=2, **HEADS), True),
        (Qwen2Config(hidden_size=16, intermediate_size=32, num_hidden_layers=2, **HEADS), True),
    ],
)
def test_models_with_an_attention_or_norms_of_their_own(config, recorded, byte_bpe):
    torch.manual_seed(0)
    config.vocab_size = len(byte_bpe)
    config.bos_token_id, config.eos_token_id, config.pad_token_id = 1, byte_bpe.eos_token_id, byte_bpe.pad_token_id
    model = AutoModelForCausalLM.from_config(config).to(DEVICE)
    usual, fixed = (TransformersEngine(model, byte_bpe, fixed_cache=one) for one in (False, True))
    rows, others = (one.prefill([one.prompt_ids("The dog.")]) for one in (usual, fixed))
    assert isinstance(others, RecordedRows) is recorded
    for _ in range(3):
        token = rows.scores.argmax(1)
        rows.step(token)
        others.step(token)
        torch.testing.assert_close(others.scores, rows.scores, atol=1e-5, rtol=1e-5)
