"""Attention entropy of models: against transformers' own weights, and by hand where queries are scaled."""

import math

import pytest
import torch

from families import ENCODER_DECODERS, FAMILIES, tiny
from lengthwise.controls import LengthAwareAttention
from lengthwise.controls.attach import attach
from lengthwise.engines.attention_entropy import collected_entropies
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.metrics import attention_entropy, entropy_gap
from lengthwise.metrics.attention_entropy import mean_entropies

IDS, WRITTEN = torch.tensor([[5, 6, 7, 8, 9, 2]]), torch.tensor([[0, 11, 12, 13]])
DOCUMENTS = [
    [("The quick brown fox.", "Le renard brun."), ("It was a cold day.", "Il faisait froid."), ("No.", "Non.")],
    [("A title, a caption, a button.", "Un titre, une légende, un bouton.")],
]


def called(model, **options):
    written = {"decoder_input_ids": WRITTEN} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        return model(input_ids=IDS, **written, **options)


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_those_of_transformers(family):
    model = tiny(family, range(100))
    plain, before = called(model).logits, model.config._attn_implementation
    with collected_entropies(model) as found:
        assert torch.allclose(called(model).logits, plain, atol=1e-5)  # the same function; T5's mask differs
    assert model.config._attn_implementation == before
    model.set_attn_implementation("eager")
    out = called(model, output_attentions=True)
    kinds = ("encoder", "cross", "decoder") if family in ENCODER_DECODERS else ("decoder",)
    layers = {kind: getattr(out, f"{kind}_attentions" if len(kinds) > 1 else "attentions") for kind in kinds}
    assert found.keys() == layers.keys()
    for kind, weights in layers.items():
        expected = [attention_entropy(one.numpy()).mean() for one in weights]
        assert [mean for mean, _ in found[kind]] == pytest.approx(expected, abs=1e-5)
        assert {queries for _, queries in found[kind]} == {6 if kind == "encoder" or len(kinds) == 1 else 4}


@pytest.mark.parametrize("variant", ["ratio", "log"])
def test_scaled_queries_by_hand(variant, sp_unigram):
    """The first encoder layer and the first decoder layer of a Marian, from their own projections."""
    control = LengthAwareAttention(variant=variant, average={"encoder": 20.0, "cross": 20.0, "decoder": 10.0})
    model = attach(tiny("marian", sp_unigram), control, sp_unigram)
    inputs = {}
    attention = {"encoder": model.model.encoder.layers[0].self_attn, "decoder": model.model.decoder.layers[0].self_attn}
    hooks = [
        module.register_forward_pre_hook(
            lambda module, args, kwargs, kind=kind: inputs.update({kind: (args or [kwargs["hidden_states"]])[0]}),
            with_kwargs=True,
        )
        for kind, module in attention.items()
    ]
    with collected_entropies(model) as found:
        called(model)
    for hook in hooks:
        hook.remove()
    for kind, module in attention.items():
        hidden = inputs[kind][0]  # (time, 32)
        query, key = (layer(hidden).view(len(hidden), 4, 8).transpose(0, 1) for layer in (module.q_proj, module.k_proj))
        logits = query @ key.transpose(1, 2) / math.sqrt(8)  # (heads, time, time)
        seen = torch.full((len(hidden),), len(hidden)) if kind == "encoder" else torch.arange(1, len(hidden) + 1)
        base = {"encoder": 20.0, "decoder": 10.0}[kind]
        scale = seen.float().log().clamp(min=0.1) / (math.log(base) if variant == "ratio" else 1)
        hidden_keys = torch.arange(len(hidden)) >= seen.unsqueeze(1)
        weights = (logits * scale.unsqueeze(1)).masked_fill(hidden_keys, -math.inf).softmax(-1)
        assert found[kind][0][0] == pytest.approx(attention_entropy(weights.detach()).mean(), abs=1e-5)
    plain = tiny("marian", sp_unigram)
    with collected_entropies(plain) as without:
        called(plain)
    assert found["encoder"][0][0] != pytest.approx(without["encoder"][0][0], abs=1e-3)


def test_a_scale_of_one_is_the_plain_model(sp_unigram):
    model = tiny("marian", sp_unigram)
    plain = mean_entropies(TransformersEngine(model, sp_unigram), ["The dog."], ["Le chien."])
    attach(model, LengthAwareAttention(), sp_unigram)  # no average is known yet
    scaled = mean_entropies(TransformersEngine(model, sp_unigram), ["The dog."], ["Le chien."])
    assert scaled == pytest.approx(plain, abs=1e-6)


def test_even_attention_has_the_entropy_of_the_number_of_keys(sp_unigram):
    model = tiny("marian", sp_unigram)
    for name, weight in model.named_parameters():
        if "q_proj" in name:
            torch.nn.init.zeros_(weight)
    engine = TransformersEngine(model, sp_unigram)
    keys = [len(sp_unigram(text)["input_ids"]) for text in ("The dog.", "A longer text, and a fox.")]
    found = mean_entropies(engine, ["The dog.", "A longer text, and a fox."], ["Le chien.", "Un texte."])
    queries = [len(sp_unigram(text)["input_ids"]) + 1 for text in ("Le chien.", "Un texte.")]  # with the end
    logs = [math.log(n) for n in keys]
    assert found["encoder"] == pytest.approx(
        sum(n * log for n, log in zip(keys, logs, strict=True)) / sum(keys), abs=1e-5
    )
    assert found["cross"] == pytest.approx(
        sum(n * log for n, log in zip(queries, logs, strict=True)) / sum(queries), abs=1e-5
    )
    steps = [math.log(step) for n in queries for step in range(1, n + 1)]
    assert found["decoder"] == pytest.approx(sum(steps) / len(steps), abs=1e-5)


def test_the_gap(sp_unigram):
    engine = TransformersEngine(tiny("marian", sp_unigram), sp_unigram)
    found = entropy_gap(engine, DOCUMENTS, separator=" ")
    alone = mean_entropies(engine, *zip(*(pair for document in DOCUMENTS for pair in document), strict=True))
    assert found.sentences == alone
    assert found.gap == {kind: found.documents[kind] - alone[kind] for kind in ("encoder", "cross", "decoder")}
    assert min(found.gap.values()) > 0  # random attention is nearly even, and documents have more keys
    one = entropy_gap(engine, [[pair] for document in DOCUMENTS for pair in document])
    assert one.gap == dict.fromkeys(found.gap, 0.0)


def test_the_attention_is_restored_after_an_error(sp_unigram):
    model = tiny("marian", sp_unigram)
    before = model.config._attn_implementation
    with pytest.raises(ZeroDivisionError), collected_entropies(model):
        1 / 0  # noqa: B018
    assert model.config._attn_implementation == before
