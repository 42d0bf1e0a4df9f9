"""Models of transformers, exported for the onnx engine: the same texts in float32, nearly the same scores in 8 bits."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from families import tiny
from lengthwise import CountdownHead, EncodingControl, attach, load, save
from lengthwise.models.conversion.checkpoint import export

PROMPTS = ["The dog.", "A longer question: where is the fox?"]


def saved(folder, tokenizer, family="llama", dtype=torch.float32, control=None, **options):
    """Write a tiny model, and return its folder."""
    model = tiny(family, tokenizer, **({} if family in ("marian", "gpt2") else {"head_dim": 16})).to(dtype)
    if control is not None:
        attach(model, control, tokenizer)
        return save(model, tokenizer, folder)
    model.save_pretrained(folder, **options)
    tokenizer.save_pretrained(folder)
    return folder


def scores(folder, engine, **options):
    """The scores of the first token after each prompt."""
    engine = load(str(folder), engine=engine, device="cpu", **options).engine
    return np.asarray(engine.prefill([engine.prompt_ids(prompt) for prompt in PROMPTS]).scores)


@pytest.mark.parametrize(
    ("family", "dtype", "options"),
    [
        ("llama", torch.float32, {"max_shard_size": "20KB"}),
        ("mistral", torch.bfloat16, {}),
        ("qwen2", torch.float16, {}),
        ("gpt2", torch.float16, {"max_shard_size": "20KB"}),
    ],
)
def test_scores_are_those_of_transformers(family, dtype, options, byte_bpe, tmp_path):
    folder = saved(tmp_path / "model", byte_bpe, family, dtype, **options)
    expected = scores(folder, "transformers", dtype=torch.float32)
    export(folder, tmp_path / "exact", bits=32)
    np.testing.assert_allclose(scores(tmp_path / "exact", "onnx"), expected, atol=1e-4)
    export(folder, tmp_path / "rounded")
    found = scores(tmp_path / "rounded", "onnx")
    assert 1e-5 < np.abs(found - expected).max() < 0.1 * expected.std()


@pytest.mark.parametrize(
    "settings",
    [
        {"scale_attn_weights": False},
        {"scale_attn_by_inverse_layer_idx": True, "reorder_and_upcast_attn": True},
        {"n_inner": 96, "activation_function": "gelu_pytorch_tanh"},
        {"tie_word_embeddings": False},
    ],
)
def test_settings_of_gpt2(settings, byte_bpe, tmp_path):
    tiny("gpt2", byte_bpe, **settings).save_pretrained(tmp_path / "model")
    byte_bpe.save_pretrained(tmp_path / "model")
    export(tmp_path / "model", tmp_path / "exact", bits=32)
    expected = scores(tmp_path / "model", "transformers")
    np.testing.assert_allclose(scores(tmp_path / "exact", "onnx"), expected, atol=1e-4)


def test_the_names_of_openais_checkpoints(byte_bpe, tmp_path):
    """Without a prefix, and with causal masks among the weights."""
    folder = saved(tmp_path / "model", byte_bpe, "gpt2")
    expected = scores(folder, "transformers")
    weights = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("transformer."): value for name, value in weights.items()}
    save_file(bare | {"h.0.attn.bias": torch.ones(1, 1, 128, 128)}, folder / "model.safetensors")
    export(folder, tmp_path / "exact", bits=32)
    np.testing.assert_allclose(scores(tmp_path / "exact", "onnx"), expected, atol=1e-4)


def test_scores_of_a_translator(sp_unigram, tmp_path):
    folder = saved(tmp_path / "model", sp_unigram, "marian")
    expected = scores(folder, "transformers")
    export(folder, tmp_path / "exact", bits=32)
    np.testing.assert_allclose(scores(tmp_path / "exact", "onnx"), expected, atol=1e-4)
    export(folder, tmp_path / "rounded")
    found = scores(tmp_path / "rounded", "onnx")
    assert 1e-5 < np.abs(found - expected).max() < 0.1 * expected.std()


def test_a_translator_is_converted_on_first_use(sp_unigram, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path / "cache"))
    folder = saved(tmp_path / "model", sp_unigram, "marian")
    first, second = scores(folder, "onnx"), scores(folder, "onnx")
    np.testing.assert_array_equal(first, second)
    assert capsys.readouterr().err.count("converting") == 1
    model = tiny("marian", sp_unigram)
    torch.nn.init.zeros_(model.model.shared.weight)
    model.save_pretrained(folder)  # the checkpoint changes
    assert not np.allclose(scores(folder, "onnx"), first)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_texts_with_a_countdown_head(family, byte_bpe, tmp_path):
    torch.manual_seed(0)
    head = CountdownHead(("words", "chars"), at_most=True, hidden=8)
    head.on_attach(1.0, 32)
    torch.nn.init.normal_(head.learnt["choice"])
    folder = saved(tmp_path / "model", byte_bpe, family, control=head)
    export(folder, tmp_path / "exported", bits=32)
    expected, found = (
        load(str(path), engine=engine, device="cpu").write(PROMPTS, "at most 40 chars")
        for path, engine in ((folder, "transformers"), (tmp_path / "exported", "onnx"))
    )
    assert [one.text for one in found] == [one.text for one in expected]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt_neo"}, "models of the types llama, mistral, qwen2, gpt2, marian; got gpt_neo"),
        ({"head_dim": 8}, "heads of size 8, which is no multiple of 16"),
        ({"hidden_act": "gelu"}, "the activation gelu"),
        ({"rope_parameters": {"rope_type": "llama3"}}, "scaled rotary positions"),
        ({"sliding_window": 64}, "a sliding window"),
        ({"eos_token_id": None}, "no end-of-text token"),
    ],
)
def test_what_cannot_be_exported(changes, message, byte_bpe, tmp_path):
    folder = saved(tmp_path / "model", byte_bpe)
    (folder / "generation_config.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(ValueError, match=message):
        export(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_activation_that_gpt2_does_not_have(byte_bpe, tmp_path):
    tiny("gpt2", byte_bpe, activation_function="relu").save_pretrained(tmp_path / "model")
    with pytest.raises(ValueError, match="the activation relu"):
        export(tmp_path / "model", tmp_path / "out")


def test_other_refusals(byte_bpe, tmp_path):
    folder = saved(tmp_path / "controlled", byte_bpe, control=EncodingControl())
    with pytest.raises(ValueError, match="no control but a countdown head"):
        export(folder, tmp_path / "out")
    with pytest.raises(ValueError, match="exists; name a new folder"):
        export(folder, tmp_path)
    folder = saved(tmp_path / "plain", byte_bpe)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match=r"has no tokenizer\.json"):
        export(folder, tmp_path / "out")
