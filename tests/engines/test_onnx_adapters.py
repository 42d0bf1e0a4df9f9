"""LoRA adapters on the onnx engine: merged into their base, converted once, and those that are refused."""

import copy
import json
import os
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from peft import LoraConfig, get_peft_model
from test_conformance import TEXTS, greedy, tiny, trained_head

from families import tiny as tiny_model
from lengthwise import EncodingControl, Writer, attach, load, save
from lengthwise.controls import PromptControl
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.generation.load import default_engine
from lengthwise.models import registry, smollm2
from lengthwise.models.conversion.checkpoint import export
from lengthwise.models.conversion.llama import of_arrays
from lengthwise.models.conversion.lora import read_adapter
from lengthwise.models.conversion.weights import dense, quantised, with_weights
from lengthwise.models.onnx_model import resolve_onnx
from tiny_gguf import write_gguf

LORA = {"target_modules": "all-linear", "lora_alpha": 2}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("lengthwise.generation.load._has_gpu", lambda: False)
    return tmp_path / "cache"


def adapted(model, tokenizer, control=None, seed=0, **settings):
    """Return the model with a random adapter, whose changes are as large as its weights."""
    if control is not None:
        attach(model, control, tokenizer)
    torch.manual_seed(seed)
    model = get_peft_model(model, LoraConfig(r=4, init_lora_weights=False, **(LORA | settings)))
    for name, weight in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weight, std=0.3)
    return model


@pytest.fixture
def make(tmp_path, byte_bpe):
    """Return a function that writes an adapter and its base to folders, and returns the adapter's."""

    def folder(family="llama", name="adapter", dtype=torch.float32, **options):
        base = tmp_path / f"{family}-base"
        if not base.exists():
            tiny(family, byte_bpe).save_pretrained(base)
            byte_bpe.save_pretrained(base)
        model = adapted(tiny(family, byte_bpe), byte_bpe, **options)
        for weight in model.parameters():
            weight.data = weight.data.to(dtype)
        return save(model, byte_bpe, tmp_path / name, base=str(base))

    return folder


def scores(name, engine):
    engine = load(str(name), engine=engine, device="cpu").engine
    return np.asarray(engine.prefill([engine.prompt_ids(text) for text in TEXTS]).scores)


def edited(folder, file, **changes):
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("llama", {}),
        ("llama", {"target_modules": ["q_proj", "v_proj", "down_proj"], "dtype": torch.float16}),
        ("mistral", {"use_rslora": True, "dtype": torch.bfloat16}),
        ("qwen2", {"target_modules": ["q_proj", "up_proj"], "rank_pattern": {"q_proj": 2}, "layers_to_transform": [1]}),
    ],
)
def test_scores_and_texts_of_transformers(family, options, make, tmp_path):
    folder = make(family, **options)
    plain, expected = scores(tmp_path / f"{family}-base", "transformers"), scores(folder, "transformers")
    assert not np.allclose(expected, plain, atol=0.1)
    export(folder, tmp_path / "exact", bits=32)
    np.testing.assert_allclose(scores(tmp_path / "exact", "onnx"), expected, atol=1e-3)
    engines = [load(str(tmp_path / name), engine=engine, device="cpu").engine for name, engine in PAIR]
    one, other = (greedy(engine.prefill([engine.prompt_ids(text) for text in TEXTS]), 30) for engine in engines)
    assert other.tolist() == one.tolist()
    found = scores(folder, "onnx")  # in 8 bits
    assert 1e-5 < np.abs(found - expected).max() < 0.3 * expected.std()


PAIR = (("adapter", "transformers"), ("exact", "onnx"))


@pytest.mark.parametrize("control", [trained_head(), PromptControl("At most {target} {unit}: {text}")])
def test_texts_with_a_control(control, make, tmp_path):
    folder = make(control=control)
    export(folder, tmp_path / "exact", bits=32)
    writers = [load(str(tmp_path / name), engine=engine, device="cpu") for name, engine in PAIR]
    expected, found = ([one.text for one in writer.write(TEXTS, "at most 40 chars")] for writer in writers)
    assert found == expected
    engine = load(str(folder), engine="onnx").engine
    assert engine.units == tuple(control.units)
    assert engine.controls[0].prefix("Hi", 40, "chars") == control.prefix("Hi", 40, "chars")


def test_an_adapter_of_marian_with_a_length_before_the_source(sp_unigram, tmp_path):
    base, control = tmp_path / "base", PromptControl("[{percent}%] {text}", plain_share=0.5)
    tiny("marian", sp_unigram).save_pretrained(base)
    sp_unigram.save_pretrained(base)
    folder = save(
        adapted(tiny("marian", sp_unigram), sp_unigram, control), sp_unigram, tmp_path / "adapter", base=str(base)
    )
    plain, expected = scores(base, "transformers"), scores(folder, "transformers")
    assert not np.allclose(expected, plain, atol=0.1)
    export(folder, tmp_path / "exact", bits=32)
    np.testing.assert_allclose(scores(tmp_path / "exact", "onnx"), expected, atol=1e-3)
    engines = [load(str(tmp_path / name), engine=engine, device="cpu").engine for name, engine in PAIR]
    assert [engine.plain_without_length for engine in engines] == [True, True]
    assert [engine.controls[0].prefix("Hi there", 6, "chars") for engine in engines] == ["[75%] Hi there"] * 2


# ---- an adapter of SmolLM2 among the bundled models


@pytest.fixture
def bundled(tmp_path, byte_bpe, monkeypatch):
    """Ship an adapter called `headlines` of a tiny model in the place of SmolLM2; return the reference engine."""
    tokenizer = copy.deepcopy(byte_bpe)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]})
    tokenizer.eos_token, tokenizer.chat_template = "<|im_end|>", smollm2._CHATML
    model = tiny("llama", tokenizer)
    gguf = write_gguf(tmp_path / "tiny.gguf", model, tokenizer)

    @contextmanager
    def downloaded(parent, say):
        say("fetching it ...")
        yield gguf

    monkeypatch.setattr(smollm2, "_downloaded", downloaded)
    monkeypatch.setattr(registry, "BUNDLED", tmp_path / "bundled")
    model = adapted(model, tokenizer, trained_head())
    folder = save(model, tokenizer, tmp_path / "bundled" / "headlines", base="smollm2-plain")
    for file in (*folder.glob("tokenizer*"), folder / "chat_template.jinja"):
        file.unlink(missing_ok=True)  # it has that of its base
    return TransformersEngine(model, tokenizer, "headlines")


def test_a_bundled_adapter_is_converted_from_the_gguf_file(bundled, tmp_path, capsys):
    assert default_engine("headlines") == "onnx"
    writer = load("headlines")
    assert capsys.readouterr().err.splitlines() == [
        "converting headlines for onnxruntime, once ...",
        "fetching it ...",
        "converting it, once ...",
    ]
    assert (writer.name, writer.engine.units) == ("headlines", bundled.units)
    assert [one.fits for one in load("headlines").write(TEXTS, "at most 40 chars")] == [True] * 3
    assert capsys.readouterr().err == ""
    export(registry.resolve("headlines"), tmp_path / "exact", bits=32)
    exact = load(str(tmp_path / "exact"), engine="onnx")
    prompts = [bundled.prompt_ids(text) for text in TEXTS]
    for engine, tolerance in ((exact.engine, 1e-3), (writer.engine, 0.5)):
        assert [engine.prompt_ids(text) for text in TEXTS] == prompts
        one, other = (np.asarray(each.prefill(prompts).scores) for each in (bundled, engine))
        np.testing.assert_allclose(other, one, atol=tolerance)
    expected, found = ([one.text for one in each.write(TEXTS, "40-60 chars")] for each in (Writer(bundled), exact))
    assert found == expected


def test_weights_that_an_adapter_does_not_change_stay(make, byte_bpe):
    adapter = read_adapter(make(target_modules=["v_proj"], layers_to_transform=[1]))
    model = tiny("llama", byte_bpe)
    base = of_arrays(model.config.to_dict(), {name: value.numpy() for name, value in model.state_dict().items()})
    blocks = with_weights(base, lambda weight: quantised(weight) if weight.values.shape[1] == 32 else weight)
    merged = adapter.merged(blocks)
    assert (merged.embedding, merged.layers[0]) == (blocks.embedding, blocks.layers[0])
    one, other = blocks.layers[1], merged.layers[1]
    assert (other.output, other.gate_up, other.down) == (one.output, one.gate_up, one.down)
    changed = np.abs(other.qkv.values - dense(one.qkv)).max(1) > 0
    assert changed.nonzero()[0].tolist() == list(range(64 + 32, 64 + 2 * 32))  # the values, after queries and keys


# ---- the cache


def test_the_conversion_depends_on_the_adapters_content(make, tmp_path, capsys):
    folder, other = make(), make(name="other", seed=1)
    first, there = scores(folder, "onnx"), scores(other, "onnx")
    assert not np.allclose(first, there, atol=0.1)
    weights = folder / "adapter_model.safetensors"
    kept = weights.stat()
    os.utime(weights)
    place = resolve_onnx(str(folder))[0]
    weights.write_bytes((other / weights.name).read_bytes())
    os.utime(weights, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    assert weights.stat().st_size == kept.st_size
    assert capsys.readouterr().err.count("converting") == 2
    np.testing.assert_array_equal(scores(folder, "onnx"), there)
    assert not place.exists()


def test_the_conversion_depends_on_the_base(make, tmp_path, byte_bpe):
    folder = make()
    first = resolve_onnx(str(folder))[0]
    assert resolve_onnx(str(folder))[0] == first
    tiny("mistral", byte_bpe).save_pretrained(tmp_path / "llama-base")
    assert resolve_onnx(str(folder))[0] != first


# ---- what is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"use_dora": True}, "json has use_dora: true"),
        ({"modules_to_save": ["lm_head"]}, "json has modules_to_save"),
        ({"trainable_token_indices": [5]}, "json has trainable_token_indices"),
        ({"bias": "all"}, 'json has bias: "all"'),
        ({"alpha_pattern": {"q_proj": 3}}, "json has alpha_pattern"),
        ({"target_modules": ["embed_tokens"]}, "it has .*lora_embedding.*, and only LoRA of q_proj"),
        ({"target_modules": ["lm_head"]}, r"it has .*lm_head\.lora_A.*, and only LoRA of q_proj"),
    ],
)
def test_what_is_more_than_lora_of_linear_layers(settings, message, make, tmp_path):
    folder = make("mistral", **settings)  # its output layer is not tied
    with pytest.raises(ValueError, match=message):
        load(str(folder), engine="onnx")
    with pytest.raises(ValueError, match=message):
        export(folder, tmp_path / "out")
    edited(folder, "lengthwise.json", base_model="smollm2-plain")
    assert default_engine(str(folder)) == "transformers"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"peft_type": "IA3"}, 'json has peft_type: "IA3"'),
        ({"init_lora_weights": "pissa"}, 'json has init_lora_weights: "pissa"'),
        ({"a_later_formula": True}, "json has a_later_formula"),
    ],
)
def test_settings_that_are_not_known(changes, message, make):
    with pytest.raises(ValueError, match=message):
        load(str(edited(make(), "adapter_config.json", **changes)), engine="onnx")


def test_other_refusals(make, tmp_path, byte_bpe):
    with pytest.raises(ValueError, match=r"no control but a countdown head or prompt; .* has encoding"):
        load(str(make(control=EncodingControl(), name="encoding")), engine="onnx")
    gpt2 = make("gpt2", target_modules=["c_attn"], fan_in_fan_out=True, name="gpt2")
    with pytest.raises(
        ValueError,
        match=r"it has .*c_attn\.lora_A.*LoRA of .* in Llama-type models, and of the layers of Marian can be merged",
    ):
        load(str(gpt2), engine="onnx")
    folder = edited(make(), "lengthwise.json", base_model=str(tmp_path / "gpt2-base"))
    with pytest.raises(ValueError, match=r"adapters of models of the types llama, mistral, qwen2, marian; .* has gpt2"):
        load(str(folder), engine="onnx")
    for sizes, message in (
        ({"num_hidden_layers": 1}, r"it changes layers\.1\.mlp\.down_proj, and the base has 1 layers"),
        ({"intermediate_size": 64}, r"layers\.0\.mlp\.gate_proj is 48 x 32, in the base 64 x 32"),
    ):
        base = tmp_path / next(iter(sizes))
        tiny_model("llama", byte_bpe, head_dim=16, **sizes).save_pretrained(base)
        with pytest.raises(ValueError, match=f"does not fit its base model: {message}"):
            load(str(edited(folder, "lengthwise.json", base_model=str(base))), engine="onnx")
    weights = folder / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"the adapter in .* is damaged \(.*\); copy the folder again"):
        load(str(folder), engine="onnx")
    weights.unlink()
    with pytest.raises(ValueError, match=r"is damaged: adapter_model\.safetensors is missing"):
        load(str(folder), engine="onnx")


def test_the_default_engine_of_an_adapter(make):
    """A known base is fetched and converted without torch; another one has been converted by nobody."""
    folder = make()
    assert default_engine(str(folder)) == "transformers"
    edited(folder, "lengthwise.json", base_model="smollm2-plain")
    assert default_engine(str(folder)) == "onnx"
