"""Laws that hold for every family × every control: each law is one function, the cross product one test."""

import copy
from typing import Any

import peft
import pytest
import torch
from torch import Tensor

from controlled_models import LENGTHS, LIMITS, NEW, TEXTS, UNITS, World, world_of
from families import CONTROLS, ENCODER_DECODERS, PAIRS, tiny
from lengthwise.controls import Control, CountdownHead, EncodingControl, LengthTokens, PromptControl
from lengthwise.controls.attach import attach, detach
from lengthwise.controls.attached import controls_of, length_control


def close(a: Tensor, b: Tensor, atol: float = 1e-5) -> None:
    torch.testing.assert_close(a, b, atol=atol, rtol=1e-5)


# ---- the laws


def cached_steps_equal_one_pass(world: World) -> None:
    written, logits = world.greedy()
    close(world.forced(written), logits)
    written, logits = world.write(do_sample=True, num_return_sequences=2)
    close(world.forced(written), logits)


def beams_do_not_need_a_cache(world: World) -> None:
    with_cache, _ = world.write(num_beams=4, num_return_sequences=2)
    without, _ = world.write(num_beams=4, num_return_sequences=2, use_cache=False)
    assert torch.equal(with_cache, without)


def a_row_does_not_see_padding_or_other_budgets(world: World) -> None:
    written, logits = world.greedy()
    for n in range(len(TEXTS)):
        alone, its_logits = world.write(slice(n, n + 1))
        assert torch.equal(alone[0, -NEW:], written[n, -NEW:])
        close(its_logits[0], logits[n])


def static_cache_equals_dynamic(world: World) -> None:
    written, logits = world.greedy()
    same, its_logits = world.write(cache_implementation="static", disable_compile=True)
    assert torch.equal(written, same)
    close(logits, its_logits)


def the_length_changes_the_logits(world: World) -> None:
    written, _ = world.greedy()
    far = (world.forced(written) - world.forced(written, lengths=[2, 2, 2])).abs().amax((1, 2))
    assert (far > 1e-3).all()


def without_a_length_the_model_is_plain(world: World) -> None:
    written, logits = world.write(plain=True)
    with torch.no_grad():
        one_pass = world.call(written).logits
    world.model = world.plain()
    vocabulary = world.model.config.vocab_size  # without length tokens
    again, plain_logits = world.write(plain=True)
    assert torch.equal(written, again)
    assert torch.equal(logits[..., :vocabulary], plain_logits)
    with torch.no_grad():
        assert torch.equal(one_pass[..., :vocabulary], world.call(written).logits)


def a_silent_control_changes_nothing(world: World) -> None:
    written, logits = world.write(plain=True)
    for control in controls_of(world.model):
        if isinstance(control, EncodingControl):
            control.factor.zero_()
            control.positions = "add"
        if isinstance(control, CountdownHead):
            torch.nn.init.zeros_(control.learnt["outer"])
            torch.nn.init.zeros_(control.learnt["choice"])
    silent, silent_logits = world.write()
    assert torch.equal(written, silent)
    assert torch.equal(logits, silent_logits)
    with torch.no_grad():
        assert torch.equal(world.forced(written), world.call(written).logits[:, -NEW - 1 : -1])


def detached_is_as_before(world: World) -> None:
    plain = world.plain()
    world.write()
    detach(world.model)
    assert vars(world.model).keys() - vars(plain).keys() <= {"vocab_size"}  # transformers notes it when it resizes
    assert world.model.forward.__func__ is type(plain).forward
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in world.model.modules())
    after, before = world.model.state_dict(), plain.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[k], before[k]) for k in before)
    assert world.model.config.vocab_size == plain.config.vocab_size


def a_copy_is_bound_to_itself(world: World) -> None:
    written, _ = world.greedy()
    expected = world.forced(written)
    original, world.model = world.model, copy.deepcopy(world.model)
    with torch.no_grad():
        for weight in original.parameters():
            weight.zero_()
    assert torch.equal(world.forced(written), expected)


def checkpointing_keeps_gradients(world: World) -> None:
    written, _ = world.greedy()
    model = world.model.train()
    start = {} if world.family in ENCODER_DECODERS else {"decoder_start": torch.full((3,), world.width())}

    def gradients() -> list[Tensor]:
        model.zero_grad()
        world.call(written, decoder_length=torch.tensor(LENGTHS), **start).logits.logsumexp(-1).sum().backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    plain = gradients()
    model.gradient_checkpointing_enable()
    again = gradients()
    assert len(plain) == len(again) > 0
    for a, b in zip(plain, again, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


def lora_is_transparent(world: World) -> None:
    torch.manual_seed(1)
    kind = "SEQ_2_SEQ_LM" if world.family in ENCODER_DECODERS else "CAUSAL_LM"
    config = peft.LoraConfig(task_type=kind, r=2, target_modules="all-linear", init_lora_weights=False)
    world.model = peft.get_peft_model(world.model, config).eval()
    assert controls_of(world.model)
    written, logits = world.write()
    close(world.forced(written), logits, 1e-4)
    world.model = world.model.merge_and_unload()
    merged, merged_logits = world.write()
    assert torch.equal(written, merged)
    close(logits, merged_logits, 1e-4)


LAWS = [
    cached_steps_equal_one_pass,
    beams_do_not_need_a_cache,
    a_row_does_not_see_padding_or_other_budgets,
    static_cache_equals_dynamic,
    the_length_changes_the_logits,
    without_a_length_the_model_is_plain,
    a_silent_control_changes_nothing,
    detached_is_as_before,
    a_copy_is_bound_to_itself,
    checkpointing_keeps_gradients,
    lora_is_transparent,
]


@pytest.mark.parametrize(("family", "control"), PAIRS)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law(family: str, control: str, law: Any, byte_bpe: Any, sp_unigram: Any) -> None:
    tokenizer = sp_unigram if family in ENCODER_DECODERS else byte_bpe
    law(world_of(family, tokenizer, CONTROLS[control](), name=control))


# ---- single cases


def test_unit_and_limit_change_the_logits(byte_bpe: Any) -> None:
    world = world_of("llama", byte_bpe, CONTROLS["units"]())
    written, _ = world.write()
    whole = world.length_inputs() | {"decoder_start": torch.full((3,), world.width())}
    # Counted by the caller, so that nothing but the tags differs.
    meter = length_control(world.model).meter("chars")
    whole["decoder_position"] = torch.from_numpy(meter.running(written.numpy(), whole["decoder_start"].numpy()))
    with torch.no_grad():
        logits = world.call(written, **whole).logits[:, -1]
        for key, other in (("decoder_unit", torch.tensor([1, 2, 0])), ("decoder_at_most", ~whole["decoder_at_most"])):
            assert (world.call(written, **whole | {key: other}).logits[:, -1] - logits).abs().amax(1).min() > 1e-3


@pytest.fixture
def llama(byte_bpe: Any) -> World:
    return world_of("llama", byte_bpe, [EncodingControl(unit="tokens", scale=1.0)])


def carried(world: World, **call: Any) -> list[list[int | None]]:
    """The index each row carries in one forward call, None for nothing."""
    received: list[Any] = []
    control = controls_of(world.model)[0]
    control.encode = lambda signal, inputs: received.append(signal)  # type: ignore[method-assign]
    world.model(**call)
    signal = received[0]
    carriers, index = signal.placement_mask(control.placement).tolist(), control.index(signal).tolist()
    return [[i if c else None for i, c in zip(*row, strict=True)] for row in zip(index, carriers, strict=True)]


@pytest.mark.parametrize(
    ("placement", "end_index", "expected"),
    [
        ("whole", 1, [[None, None, 7, 6, 5, 4, 3, 2, 1], [11, 10, 9, 8, 7, 6, 5, 4, 3]]),  # LDPE
        ("response", 1, [[None] * 5 + [4, 3, 2, 1], [None] * 5 + [6, 5, 4, 3]]),  # ORPE
        ("answer", 0, [[None] * 4 + [4, 3, 2, 1, 0], [None] * 4 + [6, 5, 4, 3, 2]]),
    ],
)
def test_placements_in_a_left_padded_batch(placement: str, end_index: int, expected: list, byte_bpe: Any) -> None:
    world = world_of("llama", byte_bpe, [EncodingControl(unit="tokens", placement=placement, end_index=end_index)])
    mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1, 1, 1], [1] * 9])
    ids = torch.randint(10, 200, (2, 9)) * mask
    ids[:, 2] = 1  # a prompt may have special tokens: they count in tokens
    start = torch.tensor([5, 5])
    call = {"input_ids": ids, "attention_mask": mask, "decoder_length": torch.tensor([4, 6]), "decoder_start": start}
    assert carried(world, **call) == expected


def test_counts_come_from_the_text(sp_unigram: Any) -> None:
    world = world_of("marian", sp_unigram, [EncodingControl(unit="chars")])
    ids = world.tokenizer("a small title", add_special_tokens=False)["input_ids"]
    labels = torch.tensor([[*ids, 2, -100]])
    row = carried(world, input_ids=torch.tensor([[5, 6, 2]]), labels=labels, decoder_length=torch.tensor([13]))[0]
    assert row[0] == 13
    assert row[len(ids)] == 0  # the step that predicts the end of the text
    written = [len(world.tokenizer.decode(ids[:n])) for n in range(len(ids) + 1)]
    assert row[: len(ids) + 1] == [13 - n for n in written]
    assert row[len(ids) + 1 :] == [0]  # end of text read: nothing left to say


def test_a_caller_may_count_for_itself(llama: World) -> None:
    written, _ = llama.write()
    start = torch.full((3,), llama.width())
    call = {"decoder_length": torch.tensor(LENGTHS), "decoder_start": start}
    position = (torch.arange(written.shape[1])[None] - start[:, None] + 1).clamp(min=0)
    counted = llama.call(written, decoder_position=position, **call).logits
    assert torch.equal(counted, llama.call(written, **call).logits)
    other = llama.call(written, decoder_position=position * 2, **call).logits
    assert not torch.equal(counted, other)


def test_generate_takes_plain_numbers(llama: World) -> None:
    inputs = llama.inputs()
    options = {"max_new_tokens": 3, "do_sample": False}
    one = llama.model.generate(**inputs, decoder_length=9, **options)
    assert torch.equal(
        one,
        llama.model.generate(
            inputs["input_ids"], attention_mask=inputs["attention_mask"], decoder_length=[9, 9, 9], **options
        ),
    )


def test_prompt_and_token_controls_leave_the_decoder_alone(byte_bpe: Any) -> None:
    world = world_of("llama", byte_bpe, [PromptControl()])
    assert torch.equal(world.write()[0], world.write(plain=True)[0])


def test_trained_copy_of_peft_is_used(llama: World) -> None:
    config = peft.LoraConfig(
        task_type="CAUSAL_LM", r=2, target_modules="all-linear", modules_to_save=["length_control"]
    )
    before, _ = llama.write()
    expected = llama.forced(before)
    llama.model = peft.get_peft_model(llama.model, config).eval()
    close(llama.forced(before), expected)
    controls_of(llama.model)[0].factor.fill_(3.0)
    assert (llama.forced(before) - expected).abs().max() > 1e-3


def test_half_precision(llama: World) -> None:
    llama.model.to(torch.bfloat16)
    assert llama.forced(llama.write()[0]).dtype == torch.bfloat16


def test_length_tokens_of_unshared_vocabularies(sp_unigram: Any) -> None:
    tokenizer = copy.deepcopy(sp_unigram)
    plain = tiny("marian", tokenizer)
    plain.config.share_encoder_decoder_embeddings = False
    model = attach(type(plain)(plain.config).eval(), CONTROLS["progress+tokens"](), tokenizer)
    assert model.get_encoder().embed_tokens.num_embeddings == len(tokenizer)
    assert model.get_decoder().embed_tokens.num_embeddings == len(sp_unigram)
    written = model.generate(torch.tensor([[9, 2]]), decoder_length=5, max_new_tokens=3, pad_token_id=0)
    assert written.shape[1] <= 4


def test_length_tokens_grow_tokenizer_and_embedding(byte_bpe: Any) -> None:
    tokenizer = copy.deepcopy(byte_bpe)
    model = tiny("qwen2", tokenizer)
    size, mean = len(tokenizer), model.get_input_embeddings().weight.mean(0)
    attach(model, LengthTokens(), tokenizer)
    assert len(tokenizer) == model.get_input_embeddings().num_embeddings == model.config.vocab_size == size + 3
    torch.testing.assert_close(model.get_input_embeddings().weight[-1], mean)
    text = controls_of(model)[0].prefix("A title", 30, "chars")
    assert tokenizer(text)["input_ids"][0] == size + 2
    assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True).strip() == "A title"


@pytest.mark.parametrize(
    ("family", "controls", "message"),
    [
        ("llama", [EncodingControl(positions="replace")], "LlamaForCausalLM has none: use positions='add'"),
        ("t5", [EncodingControl(positions="replace")], "T5ForConditionalGeneration has none"),
        ("gpt2", [EncodingControl(placement="decoder")], "needs an encoder-decoder"),
        (
            "gpt2",
            [EncodingControl(), EncodingControl(unit="words")],
            "the same units; got .*chars.* and .*words",
        ),
    ],
)
def test_refused_controls(family: str, controls: list[Control], message: str, byte_bpe: Any) -> None:
    with pytest.raises(ValueError, match=message):
        world_of(family, byte_bpe, controls)


def test_refused_calls(llama: World) -> None:
    model, inputs = llama.model, llama.inputs()
    length = torch.tensor(LENGTHS)
    for call, message in [
        (lambda: model(**inputs, decoder_length=length), "decoder_start is missing"),
        (lambda: model(**inputs, decoder_length=length[:2], decoder_start=length), r"shape \(3,\); got \(2,\)"),
        (lambda: model(inputs_embeds=torch.zeros(3, 2, 32), decoder_length=length), "needs token ids to count"),
        (lambda: model.generate(**inputs, decoder_length=[1, 2]), "got 2 for 3 rows"),
        (lambda: model.generate(**inputs, decoder_length=[3, 0, 2]), "at least 1; got 0 for row 1"),
        (lambda: model.generate(**inputs, decoder_length=length, prefill_chunk_size=2), "without prefill_chunk_size"),
        (lambda: attach(model, EncodingControl(), llama.tokenizer), "has length controls already"),
        (lambda: detach(detach(model)), "no length controls to detach"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_a_cache_cannot_be_counted(llama: World) -> None:
    ids = torch.randint(5, 99, (1, 4))
    length, start = torch.tensor([5]), torch.tensor([2])
    cache = llama.model(ids, decoder_length=length, decoder_start=start, use_cache=True).past_key_values
    with pytest.raises(ValueError, match="4 tokens are in the cache"):
        llama.model(ids[:, -1:], past_key_values=cache, decoder_length=length, decoder_start=start)


def test_generate_takes_plain_units_and_limits(byte_bpe: Any) -> None:
    world = world_of("llama", byte_bpe, CONTROLS["units"]())
    inputs = {"decoder_length": LENGTHS, "decoder_unit": UNITS, "decoder_at_most": LIMITS}
    options = {"max_new_tokens": 4, "do_sample": False}
    asked = world.model.generate(**world.inputs(), **inputs, **options)
    assert torch.equal(asked, world.model.generate(**world.inputs(), **world.length_inputs(), **options))
    for wrong, said in (
        ({"decoder_unit": [0, 3, 1]}, "tokens, words, chars from 0"),
        ({"decoder_unit": [0, 1]}, "3 rows"),
    ):
        with pytest.raises(ValueError, match=said):
            world.model.generate(**world.inputs(), **inputs | wrong, **options)
