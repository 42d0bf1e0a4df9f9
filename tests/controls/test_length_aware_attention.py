"""Length-aware attention: the formula by hand, and the same scores in training, in decoding and in a padded batch."""

import math

import pytest
import torch
from peft import LoraConfig, get_peft_model

from controls.attention_checks import decoded_as_trained
from families import ENCODER_DECODERS, FAMILIES, tiny
from lengthwise import EncodingControl, Writer, attach, detach
from lengthwise.controls import LengthAwareAttention, control_from
from lengthwise.controls.attached import controls_of
from lengthwise.controls.attention import controlled_attention
from lengthwise.controls.masks import visible_keys
from lengthwise.engines.attention_masks import only_given_masks
from lengthwise.engines.continuous import SamplingParams, SeededPrompt, generate_continuous
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.models.checkpoint import load_model, save

AVERAGE = {"encoder": 6.0, "cross": 6.0, "decoder": 4.0}
TEXTS = ["The dog.", "A longer question: where is the fox, and why?", "x"]


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("ratio", [0.1 / math.log(32), math.log(8) / math.log(32), 1.0, 1.6]),
        ("log", [0.1, math.log(8), math.log(32), math.log(256)]),
        ("beyond", [1.0, 1.0, 1.0, 1.6]),
    ],
)
def test_formula(variant, expected):
    control = LengthAwareAttention(["cross"], variant, average={"cross": 32})
    found = control.query_scale("cross", torch.tensor([1, 8, 32, 256]))
    assert found.tolist() == pytest.approx(expected, rel=1e-5)
    assert control.query_scale("encoder", torch.tensor([8])) is None


def test_averages():
    control = LengthAwareAttention()
    assert control.query_scale("encoder", torch.tensor([8])).tolist() == [1.0]  # not known yet
    control.observe(source=20.0, target=30.0)
    assert control.lengths.tolist() == [20.0, 20.0, 15.0]
    control.observe(source=120.0, target=30.0)
    assert control.lengths.tolist() == [21.0, 21.0, 15.0]
    short = LengthAwareAttention()
    short.observe(source=1.0, target=1.0)
    assert short.lengths.tolist() == [2.0] * 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"attention": ["middle"]}, "some of encoder, cross, decoder; got middle"),
        ({"attention": []}, "got none"),
        ({"variant": "other"}, "variant must be ratio, log or beyond; got 'other'"),
        ({"average": {"self": 3.0}}, "got self"),
    ],
)
def test_what_is_refused(options, says):
    with pytest.raises(ValueError, match=says):
        control_from({"control": "length_aware_attention", **options})


def test_visible_keys():
    query, key = torch.zeros(2, 1, 3, 4), torch.zeros(2, 1, 5, 4)
    assert visible_keys(query, key, None, causal=True).tolist() == [3, 4, 5]  # two tokens are in the cache
    assert visible_keys(query, key, None, causal=False).tolist() == [5, 5, 5]
    mask = torch.ones(2, 1, 3, 5, dtype=torch.bool).tril(2)
    mask[1, :, :, :2] = False  # padding on the left
    for given in (mask, torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)):
        assert visible_keys(query, key, given, causal=True)[:, 0].tolist() == [[3, 4, 5], [1, 2, 3]]


def test_attention_by_hand(byte_bpe):
    model = attach(tiny("llama", byte_bpe), LengthAwareAttention(average=AVERAGE), byte_bpe)
    module = model.model.layers[0].self_attn
    module.num_key_value_groups = 1
    query, key, value = torch.randn(3, 2, 4, 7, 8, generator=torch.Generator().manual_seed(0))
    found, _ = controlled_attention(module, query, key, value, None, scaling=8**-0.5)
    seen = torch.arange(1, 8)
    scale = seen.log().clamp(min=0.1) / math.log(4.0)
    logits = (query @ key.transpose(2, 3)) * 8**-0.5 * scale[:, None]
    logits = logits.masked_fill(torch.arange(7) > torch.arange(7)[:, None], -torch.inf)
    torch.testing.assert_close(found, (logits.softmax(-1) @ value).transpose(1, 2))


def engine_of(family, byte_bpe, sp_unigram, *controls):
    tokenizer = sp_unigram if family in ENCODER_DECODERS else byte_bpe
    model = tiny(family, tokenizer)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2)  # so that attention is not flat
    return TransformersEngine(attach(model, controls, tokenizer) if controls else model, tokenizer)


@pytest.mark.parametrize("family", FAMILIES)
def test_training_and_cached_decoding_agree(family, byte_bpe, sp_unigram):
    engine = engine_of(family, byte_bpe, sp_unigram, LengthAwareAttention(average=AVERAGE))
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    texts, together = decoded_as_trained(engine, prompts)
    plain = torch.from_numpy(engine_of(family, byte_bpe, sp_unigram).score(prompts, texts.tolist()).token)
    assert (plain - together).abs().max() > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_without_an_average_it_is_the_plain_model(family, byte_bpe, sp_unigram):
    plain = engine_of(family, byte_bpe, sp_unigram)
    scaled = engine_of(family, byte_bpe, sp_unigram, LengthAwareAttention())
    prompts = [plain.prompt_ids(text) for text in TEXTS]
    expected = plain.prefill(prompts).scores
    assert torch.equal(scaled.prefill(prompts).scores, expected)
    scaled.controls[0].observe(6, 8)
    assert not torch.equal(scaled.prefill(prompts).scores, expected)
    detach(scaled.model)
    assert torch.equal(scaled.prefill(prompts).scores, expected)


@pytest.mark.parametrize("kind", ["encoder", "cross", "decoder"])
def test_each_kind_is_a_switch(kind, byte_bpe, sp_unigram):
    plain = engine_of("marian", byte_bpe, sp_unigram)
    one = engine_of("marian", byte_bpe, sp_unigram, LengthAwareAttention([kind], "log"))
    prompts, texts = [plain.prompt_ids(TEXTS[1])], [[5, 9, 7]]
    assert (
        torch.from_numpy(one.score(prompts, texts).token) - torch.from_numpy(plain.score(prompts, texts).token)
    ).abs().max() > 1e-3


def test_with_a_length_on_top_and_from_a_folder(byte_bpe, tmp_path):
    controls = [LengthAwareAttention(["decoder"]), EncodingControl(unit="chars", placement="answer", scale=0.5)]
    engine = engine_of("llama", byte_bpe, None, *controls)
    controls[0].observe(6, 8)
    model, tokenizer = load_model(save(engine.model, byte_bpe, tmp_path / "model"))
    assert [type(control).__name__ for control in model.length_control.controls] == [
        "LengthAwareAttention",
        "EncodingControl",
    ]
    assert model.length_control.controls[0].lengths.tolist() == [6.0, 6.0, 4.0]
    [here] = Writer(engine).write("A dog.", "exactly 20 chars")
    [there] = Writer(model, tokenizer).write("A dog.", "exactly 20 chars")
    assert (there.text, there.length) == (here.text, 20)


def test_an_adapter_keeps_the_averages(byte_bpe, tmp_path):
    tiny("llama", byte_bpe).save_pretrained(tmp_path / "base")
    byte_bpe.save_pretrained(tmp_path / "base")
    model = attach(tiny("llama", byte_bpe), LengthAwareAttention(["decoder"]), byte_bpe)
    adapted = get_peft_model(model, LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False))
    [control] = controls_of(adapted)
    control.observe(6, 8)
    folder = save(adapted, byte_bpe, tmp_path / "adapter", base=str(tmp_path / "base"))
    loaded, _ = load_model(folder)
    assert controls_of(loaded)[0].lengths.tolist() == [6.0, 6.0, 4.0]
    ids = byte_bpe(TEXTS[1], return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        torch.testing.assert_close(loaded(ids).logits, adapted.eval()(ids).logits)


def test_the_attention_of_before_is_restored_and_continuous_batching_refuses(byte_bpe):
    model = tiny("llama", byte_bpe)
    model.set_attn_implementation("eager")
    attach(model, LengthAwareAttention(), byte_bpe)
    params = SamplingParams([2], 0, max_tokens=4, temperature=1.0, top_p=0.9)
    with pytest.raises(ValueError, match="has controls that change attention"):
        list(generate_continuous(model, [SeededPrompt([5], 0)], params, rows=1))
    assert detach(model).config._attn_implementation == "eager"
    assert not any("_lengthwise_model" in vars(module) for module in model.modules())


def test_gradients_are_the_same_with_checkpointing(byte_bpe):
    """The forward pass is computed again in the backward pass, outside `forward`."""
    ids, found = byte_bpe(TEXTS[1], return_tensors="pt")["input_ids"], []
    for checkpointing in (False, True):
        model = attach(tiny("llama", byte_bpe), LengthAwareAttention(average=AVERAGE), byte_bpe).train()
        if checkpointing:
            model.gradient_checkpointing_enable()
        model(ids, labels=ids, use_cache=False).loss.backward()
        found.append(model.model.layers[0].self_attn.q_proj.weight.grad)
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("family", ["marian", "bart", "llama", "qwen2"])
def test_the_masks_of_a_batch_are_enough(family, byte_bpe, sp_unigram):
    """In training transformers builds no masks: rows are padded on the right."""
    engine = engine_of(family, byte_bpe, sp_unigram, LengthAwareAttention(average=AVERAGE))
    ids = torch.tensor([[5, 9, 7, 8, 11], [6, 10, 12, 0, 0]])
    mask = (ids != 0).long()
    inputs = {"input_ids": ids, "attention_mask": mask}
    if engine.encoder_decoder:
        inputs["decoder_input_ids"] = ids
    with torch.inference_mode():
        expected = engine.model(**inputs).logits
        if not engine.encoder_decoder:
            del inputs["attention_mask"]
        with only_given_masks(engine.model, inputs) as given:
            found = engine.model(**given).logits
    torch.testing.assert_close(found[mask.bool()], expected[mask.bool()], atol=2e-5, rtol=0)
