"""Group attention: sentences by hand, the gate, and the same scores in training, in decoding and in a padded batch."""

import copy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model

from controls.attention_checks import given_masks_are_enough
from families import tiny
from lengthwise import EncodingControl, attach, detach
from lengthwise.controls import Alibi, GroupedAttention, LengthAwareAttention, control_from
from lengthwise.controls.attached import controls_of
from lengthwise.controls.attention import controlled_attention
from lengthwise.controls.masks import limited
from lengthwise.engines.base import LengthInputs
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.models.checkpoint import load_model, save
from lengthwise.training import train
from lengthwise.training.layers import compile_settings, layers_of
from lengthwise.training.model import build
from lengthwise.training.recipe import RecipeError
from toy_corpora import corpus
from toy_training import losses, mute, small, toy_recipe

FAMILIES = ("marian", "bart", "m2m100")
SEP = 40  # an ordinary token as the separator of most tests
PROMPTS = [[5, 9, SEP, 7, 8, 11, SEP, 12, 2], [6, 10, 13, 2], [14, SEP, 15, 16, 2]]
TEXTS = [
    [5, SEP, 9, 8, SEP, 11, 12],
    [7, 7, 30, 31, 32, 33, 2],
    [17, SEP, 18, SEP, 19, SEP, 20],
]  # the last has too many


def engine_of(family: str, tokenizer: Any, *controls: Any) -> TransformersEngine:
    model = tiny(family, tokenizer)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2 if weight.requires_grad else 1)  # so that attention is not flat
    if controls:
        attach(model, controls, tokenizer)
        open_gates(model)
    return TransformersEngine(model, tokenizer)


def open_gates(model: Any) -> None:
    """Give each gate another weight: untrained they are all 1/2."""
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for control in controls_of(model):
            for gate in control.parameters() if control.name == "grouped_attention" else ():
                gate.normal_(generator=random)


def grouped(tokenizer: Any, layers: int = 1, separator: int = SEP) -> GroupedAttention:
    return GroupedAttention(layers, tokenizer.convert_ids_to_tokens(separator))


# ---- by hand


def test_sentences(sp_unigram: Any) -> None:
    control = grouped(sp_unigram)
    attach(tiny("marian", sp_unigram), control, sp_unigram)
    ids = torch.tensor([[5, 9, SEP, 7, SEP, SEP, 8]])
    assert control.sentences(ids, "source").tolist() == [[0, 0, 0, 1, 1, 2, 3]]
    assert control.sentences(ids, "target").tolist() == [[0, 0, 1, 1, 2, 3, 3]]  # a step predicts the next token


def test_a_query_that_would_see_nothing_sees_what_it_saw() -> None:
    keys = torch.tensor([[True, False, False], [False, False, True], [False, False, False]])[None, None]
    assert limited(None, keys)[0, 0].tolist() == [[True, False, False], [False, False, True], [True, True, True]]
    mask = torch.tensor([True, True, False])[None, None, None]  # the last key is padding
    expected = torch.tensor([[True, False, False], [True, True, False], [True, True, False]])
    assert torch.equal(limited(mask, keys)[0, 0], expected)
    lowest = torch.finfo(torch.float32).min
    numbers = limited(torch.zeros(mask.shape).masked_fill(~mask, lowest).expand(1, 1, 3, 3), keys)
    assert torch.equal(numbers[0, 0] == 0, expected)


@pytest.mark.parametrize("kind", ["encoder", "cross", "decoder"])
def test_attention_by_hand(kind: str, sp_unigram: Any) -> None:
    control = grouped(sp_unigram)
    model = engine_of("marian", sp_unigram, control).model.model
    side, part = (
        ("encoder", "self_attn")
        if kind == "encoder"
        else ("decoder", "encoder_attn" if kind == "cross" else "self_attn")
    )
    random = torch.Generator().manual_seed(0)
    query, key, value = torch.randn(3, 2, 4, 6, 8, generator=random)
    source = torch.tensor([[0, 0, 1, 1, 1, 2], [0, 1, 1, 1, 1, 1]])
    target = torch.tensor([[0, 1, 1, 1, 2, 2], [0, 0, 0, 1, 1, 1]])
    seen = torch.ones(2, 1, 6, 6, dtype=torch.bool)
    if kind == "decoder":
        seen = seen.tril()
    of_queries, of_keys = source if kind == "encoder" else target, target if kind == "decoder" else source
    inside = seen & (of_queries[:, None, :, None] == of_keys[:, None, None, :])
    logits = query @ key.transpose(2, 3) * 8**-0.5
    local, whole = (
        (logits.masked_fill(~mask, -torch.inf).softmax(-1) @ value).transpose(1, 2).flatten(2)
        for mask in (inside, seen)
    )
    weight, bias = control.gates[f"{kind}_0"], control.gates[f"{kind}_0_bias"]
    gate = torch.sigmoid(torch.cat([local, whole], -1) @ weight.T + bias)
    expected = {-1: gate * local + (1 - gate) * whole} | ({0: local} if side == "decoder" else {})
    for layer, output in expected.items():
        module = getattr(getattr(model, side).layers[layer], part)
        found, _ = controlled_attention(module, query, key, value, None, source, target, scaling=8**-0.5)
        torch.testing.assert_close(found.flatten(2), output)


def test_gates_of_a_low_rank(sp_unigram: Any) -> None:
    control = GroupedAttention(1, sp_unigram.convert_ids_to_tokens(SEP), gate_rank=2)
    engine_of("marian", sp_unigram, control)
    weight, inner, bias = (control.gates[f"cross_0{part}"] for part in ("", "_inner", "_bias"))
    same = grouped(sp_unigram)
    engine_of("marian", sp_unigram, same)
    with torch.no_grad():
        same.gates["cross_0"].copy_(weight @ inner)
        same.gates["cross_0_bias"].copy_(bias)
    local, whole = torch.randn(2, 3, 5, 4, len(weight) // 4, generator=torch.Generator().manual_seed(0))
    expected = same.attend("cross", 0, lambda: local, lambda: whole)
    torch.testing.assert_close(control.attend("cross", 0, lambda: local, lambda: whole), expected)
    assert weight.numel() + inner.numel() < same.gates["cross_0"].numel()


@pytest.mark.parametrize("family", FAMILIES)
def test_sentences_are_apart_without_a_global_layer(family: str, sp_unigram: Any) -> None:
    source, target = torch.tensor([[5, 9, SEP, 7, 8, 2]]), torch.tensor([[0, 11, SEP, 12, 13]])
    other_source, other_target = source.clone(), target.clone()
    other_source[0, 0], other_target[0, 1] = 30, 31  # in the first sentences
    for layers, apart in ((0, True), (1, False)):
        model = engine_of(family, sp_unigram, grouped(sp_unigram, layers)).model
        with torch.inference_mode():
            [one] = model(input_ids=source, decoder_input_ids=target).logits
            [two] = model(input_ids=other_source, decoder_input_ids=other_target).logits
        assert not torch.allclose(one[1], two[1], atol=1e-3)
        assert torch.allclose(one[2:], two[2:], atol=1e-5) == apart  # from the step that reads the separator on


@pytest.mark.parametrize("family", FAMILIES)
def test_single_sentences_have_the_plain_models_scores(family: str, sp_unigram: Any) -> None:
    plain = engine_of(family, sp_unigram)
    engine = engine_of(family, sp_unigram, grouped(sp_unigram))
    ids, target = torch.tensor([[6, 10, 13, 2, 0, 0], [5, 9, 7, 8, 11, 2]]), torch.tensor([[0, 7, 30], [0, 32, 33]])
    call = {"input_ids": ids, "attention_mask": (ids != 0).long(), "decoder_input_ids": target}
    with torch.inference_mode():
        torch.testing.assert_close(engine.model(**call).logits, plain.model(**call).logits, atol=1e-6, rtol=1e-6)
    assert (
        torch.from_numpy(engine.score(PROMPTS, TEXTS).token) - torch.from_numpy(plain.score(PROMPTS, TEXTS).token)
    ).abs().max() > 1e-3
    detach(engine.model)
    assert torch.equal(
        torch.from_numpy(engine.score(PROMPTS, TEXTS).token), torch.from_numpy(plain.score(PROMPTS, TEXTS).token)
    )
    left = [name for module in engine.model.modules() for name in vars(module) if name.startswith("_lengthwise")]
    assert not left


# ---- training, decoding


ON_TOP: dict[str, Any] = {
    "alone": lambda: [],
    "length_aware": lambda: [LengthAwareAttention(average={"encoder": 3.0, "cross": 3.0, "decoder": 2.0})],
    "alibi": lambda: [Alibi()],
}


@pytest.mark.parametrize("more", ON_TOP)
@pytest.mark.parametrize("family", FAMILIES)
def test_training_and_cached_decoding_agree(family: str, more: str, sp_unigram: Any) -> None:
    engine = engine_of(family, sp_unigram, grouped(sp_unigram), *ON_TOP[more]())
    engine.model.double()  # float32 itself rounds by 1e-5
    together = torch.from_numpy(engine.score(PROMPTS, TEXTS).token)
    for n, (prompt, text) in enumerate(zip(PROMPTS, TEXTS, strict=True)):  # without padding
        torch.testing.assert_close(
            torch.from_numpy(engine.score([prompt], [text]).token)[0], together[n], atol=1e-5, rtol=0
        )
    rows, order, seen = engine.prefill(PROMPTS), torch.tensor([2, 0, 1]), []
    texts = torch.tensor(TEXTS)
    rows.select(order)  # as a search that reorders its rows
    for column in range(texts.shape[1]):
        tokens = texts[order, column]
        seen.append(rows.scores.log_softmax(1).gather(1, tokens[:, None]).squeeze(1))
        rows.step(tokens)
    found = torch.stack(seen, 1)
    expected = together[order].masked_fill(~found.isfinite(), -torch.inf)  # Marian's padding is never written
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    if more != "alone":  # it has an effect
        without = torch.from_numpy(engine_of(family, sp_unigram, grouped(sp_unigram)).score(PROMPTS, TEXTS).token)
        assert (without - together).abs().max() > 1e-3


def test_the_order_of_controls_does_not_matter(sp_unigram: Any) -> None:
    """Length-aware attention counts the keys that a query can see in its sentence."""
    one, two = (
        torch.from_numpy(engine_of("marian", sp_unigram, *controls).score(PROMPTS, TEXTS).token)
        for controls in (
            [ON_TOP["length_aware"]()[0], Alibi(), grouped(sp_unigram)],
            [grouped(sp_unigram), Alibi(), ON_TOP["length_aware"]()[0]],
        )
    )
    torch.testing.assert_close(one, two)


@pytest.mark.parametrize("options", [{}, {"cache_implementation": "static"}, {"use_cache": False}])
@pytest.mark.parametrize("family", FAMILIES)
def test_beams(family: str, options: dict[str, Any], sp_unigram: Any) -> None:
    """The score of a beam is that of its text, read at once."""
    settings: dict[str, Any] = {"max_new_tokens": 8, "beams": 3, "scores": True}
    plain = engine_of(family, sp_unigram).search(PROMPTS, **settings)
    likely = Counter(token for text in plain.ids for token in text[:-1] if token != 2).most_common()
    for separator, _ in likely:  # the first token that the model also writes if it is the separator
        prompts = [[separator if token == SEP else token for token in prompt] for prompt in PROMPTS]
        engine = engine_of(family, sp_unigram, grouped(sp_unigram, separator=separator))
        found = engine.search(prompts, **settings, options={"length_penalty": 0.0} | options)
        if any(separator in text[:-1] for text in found.ids):
            break
    else:
        raise AssertionError("no beam has a separator")
    for prompt, text, score in zip(prompts, found.ids, found.scores, strict=True):
        text = text[: text.index(2) + 1] if 2 in text else text
        assert float(torch.from_numpy(engine.score([prompt], [text]).token).sum()) == pytest.approx(score, abs=1e-3)


def test_calls_that_cannot_be_counted_are_refused(sp_unigram: Any) -> None:
    model = engine_of("marian", sp_unigram, grouped(sp_unigram)).model
    ids = torch.tensor(PROMPTS[:1])
    with torch.inference_mode():
        with pytest.raises(ValueError, match="call the model, not its encoder"):
            model.get_encoder()(input_ids=ids)
        first = model(input_ids=ids, decoder_input_ids=torch.tensor([[0, 5]]), use_cache=True)
        again = {"encoder_outputs": (first.encoder_last_hidden_state,), "decoder_input_ids": torch.tensor([[SEP]])}
        again["past_key_values"] = first.past_key_values
        with pytest.raises(ValueError, match="counts sentences in all ids"):
            model(**again)
        numbers = {"source_sentences": model.length_control.controls[0].sentences(ids, "source")}
        found = model(**again, **numbers, target_sentences=torch.tensor([[0, 0, 1]])).logits[:, -1]
        labels = torch.tensor([[5, SEP, 9]])  # from which the decoder's input is made
        torch.testing.assert_close(model(input_ids=ids, labels=labels).logits[:, -1], found, atol=1e-4, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_masks_of_a_batch_are_enough(family: str, sp_unigram: Any) -> None:
    """In training transformers builds no masks: rows are padded on the right, also after a separator."""
    engine = engine_of(family, sp_unigram, grouped(sp_unigram))
    ids = torch.tensor([[5, SEP, 7, 8, 11], [6, 10, SEP, 0, 0]])
    given_masks_are_enough(engine.model, ids)


def test_gradients_are_the_same_with_checkpointing(sp_unigram: Any) -> None:
    """The forward pass is computed again in the backward pass, outside `forward`."""
    ids, found = torch.tensor(PROMPTS[:1]), []
    for checkpointing in (False, True):
        model = engine_of("marian", sp_unigram, grouped(sp_unigram)).model.train()
        if checkpointing:
            model.gradient_checkpointing_enable()
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        found.append({name: weight.grad for name, weight in model.named_parameters() if weight.requires_grad})
        assert all(gradient.abs().max() > 0 for name, gradient in found[-1].items() if "gates" in name)
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_weight_has_a_gradient(family: str, sp_unigram: Any) -> None:
    """Several processes exchange the gradients of all weights, also those of positions that are zero."""
    model = engine_of(family, sp_unigram, grouped(sp_unigram), Alibi()).model.train()
    ids = torch.tensor(PROMPTS[:1])
    model(input_ids=ids, decoder_input_ids=ids).logits.logsumexp(-1).sum().backward()
    assert not [name for name, weight in model.named_parameters() if weight.requires_grad and weight.grad is None]


def test_compiled_layers_compute_the_same(sp_unigram: Any) -> None:
    model = engine_of("marian", sp_unigram, grouped(sp_unigram), Alibi(), *ON_TOP["length_aware"]()).model.train()
    programs: list[Any] = []

    def backend(program: Any, inputs: Any) -> Any:
        programs.append(program)
        return program

    calls, expected = [torch.tensor([PROMPTS[n]] * (2 + n)) for n in (0, 2)], []  # of other shapes
    for compiled in (False, True):
        if compiled:
            for layer in layers_of(model):
                layer.compile(dynamic=True, backend=backend)
        with compile_settings(), torch.no_grad():
            found = [model(input_ids=ids, decoder_input_ids=ids, use_cache=False).logits for ids in calls]
        expected = expected or found
        torch.testing.assert_close(found, expected)
    assert len(programs) == 3, "one for the encoder, one for the lower layers of the decoder, one for the top one"
    torch._dynamo.reset()


def test_a_copy_has_its_own_controls(sp_unigram: Any) -> None:
    engine = engine_of("bart", sp_unigram, grouped(sp_unigram), Alibi())
    expected = torch.from_numpy(engine.score(PROMPTS, TEXTS).token)
    other = TransformersEngine(copy.deepcopy(engine.model), sp_unigram)
    with torch.no_grad():
        for gate in controls_of(other.model)[0].parameters():
            gate.zero_()
    assert (torch.from_numpy(other.score(PROMPTS, TEXTS).token) - expected).abs().max() > 1e-3
    detach(other.model)
    assert torch.equal(torch.from_numpy(engine.score(PROMPTS, TEXTS).token), expected)
    plain = torch.from_numpy(engine_of("bart", sp_unigram).score(PROMPTS, TEXTS).token)
    assert torch.equal(torch.from_numpy(other.score(PROMPTS, TEXTS).token), plain)


# ---- saved, refused, trained


def test_a_length_on_top_and_from_a_folder(sp_unigram: Any, tmp_path: Path) -> None:
    tokenizer = copy.deepcopy(sp_unigram)
    engine = engine_of("marian", tokenizer, GroupedAttention(1), EncodingControl(scale=0.5))
    separator = tokenizer.convert_tokens_to_ids("<sep>")
    assert separator == len(sp_unigram)  # added
    model, loaded = load_model(save(engine.model, tokenizer, tmp_path / "model"))
    assert [control.config() for control in controls_of(model)] == [c.config() for c in controls_of(engine.model)]
    prompts, texts = ([[separator if n == SEP else n for n in row] for row in rows] for rows in (PROMPTS, TEXTS))
    assert loaded("a <sep> b")["input_ids"].count(separator) == 1
    lengths = [LengthInputs([n] * 3, [0] * 3, [False] * 3, [0] * 3) for n in (5, 50)]
    here = [torch.from_numpy(engine.score(prompts, texts, length).token) for length in lengths]
    assert (here[0] - here[1]).abs().max() > 1e-3
    for length, expected in zip(lengths, here, strict=True):
        found = torch.from_numpy(TransformersEngine(model, loaded).score(prompts, texts, length).token)
        torch.testing.assert_close(found, expected)


def test_an_adapter_keeps_the_gates(sp_unigram: Any, tmp_path: Path) -> None:
    tiny("bart", sp_unigram).save_pretrained(tmp_path / "base")
    sp_unigram.save_pretrained(tmp_path / "base")
    model = attach(tiny("bart", sp_unigram), grouped(sp_unigram), sp_unigram)
    open_gates(model)
    adapted = get_peft_model(model, LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False)).eval()
    loaded, _ = load_model(save(adapted, sp_unigram, tmp_path / "adapter", base=str(tmp_path / "base")))
    ids = torch.tensor(PROMPTS[:1])
    with torch.inference_mode():
        expected = adapted(input_ids=ids, decoder_input_ids=ids).logits
        torch.testing.assert_close(loaded(input_ids=ids, decoder_input_ids=ids).logits, expected)


@pytest.mark.parametrize(
    ("family", "controls", "says"),
    [
        ("llama", [GroupedAttention()], "needs an encoder-decoder such as Marian, BART or M2M100; LlamaForCausalLM"),
        ("t5", [GroupedAttention()], "needs an encoder-decoder such as Marian, BART or M2M100; T5"),
        ("marian", [GroupedAttention()], "global_layers = 2 is more than the 1 layers"),
        ("marian", [GroupedAttention(1), GroupedAttention(0)], "one control with group attention"),
    ],
)
def test_models_that_are_refused(family: str, controls: Any, says: str, sp_unigram: Any) -> None:
    with pytest.raises(ValueError, match=says):
        attach(tiny(family, sp_unigram), controls, sp_unigram)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"global_layers": -1}, "at least 0; got -1"),
        ({"separator": " "}, "got ' '"),
        ({"gate_rank": 0}, "at least 1; got 0"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        control_from({"control": "grouped_attention", **options})


RECIPE = Path(__file__).parents[2] / "recipes/zhang-documents.yaml"


@pytest.mark.parametrize(
    "controls",
    [
        "[{control: alibi}]",
        "[{control: grouped_attention}]",
        "[{control: grouped_attention}, {control: alibi}, {control: length_aware_attention}]",
    ],
)
def test_the_recipe_of_documents_takes_it(controls: str, tmp_path: Path) -> None:
    more = [
        f"controls={controls}",
        "lengths.kind=documents",
        "train.steps=12",
        "train.schedule=constant",
        "train.lr=0.01",
    ]
    model, _ = load_model(train(toy_recipe(RECIPE, tmp_path, "", more), say=mute))
    found = losses(tmp_path / "run")
    assert found[12] < 0.9 * found[1]
    for control in controls_of(model):
        for gate in control.parameters():
            assert gate.abs().max() > 0  # trained: at first it is 0


@pytest.mark.parametrize(
    ("lora", "gate_rank"), [(None, None), ({"rank": 4, "dropout": 0.0, "targets": "all-linear"}, 2)]
)
def test_a_pretrained_model_takes_it(lora: Any, gate_rank: Any, sp_unigram: Any, tmp_path: Path) -> None:
    tiny("marian", sp_unigram).save_pretrained(tmp_path / "base")
    sp_unigram.save_pretrained(tmp_path / "base")
    settings: dict[str, Any] = {
        "model": {"fresh": None, "base": str(tmp_path / "base"), "lora": lora},
        "controls": [{"control": "grouped_attention", "global_layers": 1, "gate_rank": gate_rank}],
        "lengths": {"kind": "documents", "separator": "<sep>"},
        "data": {"dev": corpus(tmp_path / "dev.jsonl", 10, seed=1), "dev_texts": 2, "max_tokens": 100},
    }
    model, tokenizer = load_model(train(small(tmp_path, **settings), say=mute))
    assert losses(tmp_path / "run")[12] < losses(tmp_path / "run")[1]
    assert "<sep>" in tokenizer.get_vocab()
    assert controls_of(model)[0].gates["cross_0"].abs().max() > 0
    settings["lengths"]["separator"] = "a"  # a token, but not the one that the control counts
    with pytest.raises(RecipeError, match=r"lengths\.separator"):
        train(small(tmp_path, out=str(tmp_path / "other"), **settings), say=mute)


def test_a_separator_that_the_model_has_known_is_not_trained(sp_unigram: Any, tmp_path: Path) -> None:
    tiny("marian", sp_unigram).save_pretrained(tmp_path / "base")
    sp_unigram.save_pretrained(tmp_path / "base")
    [known] = sp_unigram.tokenize("the")
    for separator, text, trained in ((known, "the", False), ("<sep>", "<sep>", True)):
        settings: dict[str, Any] = {
            "model": {"fresh": None, "base": str(tmp_path / "base"), "lora": {"rank": 4, "targets": "all-linear"}},
            "controls": [{"control": "grouped_attention", "global_layers": 1, "separator": separator}],
            "lengths": {"kind": "documents", "separator": text},
        }
        model = build(small(tmp_path, **settings)).model
        assert bool(model.peft_config["default"].trainable_token_indices) == trained
