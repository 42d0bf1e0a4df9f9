"""The gguf engine: contexts that grow, long prompts, loading by name, its tokenizer, and what it refuses."""

import sys

import numpy as np
import pytest
from test_conformance import TEXTS, gguf_engine, greedy, tiny, trained_head

import lengthwise
from lengthwise import attach
from lengthwise.cli.loading import load as program_load
from lengthwise.engines import llama_sequences
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.errors import ModelNotFound
from lengthwise.generation.load import default_engine
from lengthwise.length.vocabulary import pieces
from lengthwise.models import llama_cpp_model
from lengthwise.models.gguf_model import find_gguf, load_gguf
from tiny_gguf import TEMPLATE, write_encoder_decoder, write_gguf


def pair(family, tokenizer):
    """The reference and the gguf engine with the same weights."""
    model = tiny(family, tokenizer)
    return TransformersEngine(model, tokenizer, "tiny"), gguf_engine(model, tokenizer, "tiny")


@pytest.fixture
def file(byte_bpe, tmp_path):
    pytest.importorskip("llama_cpp", reason="the gguf engine needs llama-cpp-python: pip install '.[gguf]'")
    return write_gguf(tmp_path / "tiny.gguf", tiny("llama", byte_bpe), byte_bpe)


def test_a_text_longer_than_the_first_context(byte_bpe, monkeypatch):
    monkeypatch.setattr(llama_sequences, "_GROWTH", 2)
    reference, engine = pair("llama", byte_bpe)
    prompts = [[5 + n % 90 for n in range(250)], engine.prompt_ids(TEXTS[0])]
    rows = engine.prefill(prompts)
    before = rows._cache._context
    assert greedy(rows, 12).tolist() == greedy(reference.prefill(prompts), 12).tolist()
    assert rows._cache._context.tokens > before.tokens


def test_more_rows_than_a_context_can_have(byte_bpe):
    _, engine = pair("llama", byte_bpe)
    rows = engine.prefill([engine.prompt_ids(text) for text in TEXTS])
    with pytest.raises(ValueError, match="at most 256 texts at once; got 300"):
        rows.select(np.zeros(300, np.int64))


def test_a_prompt_longer_than_one_pass(byte_bpe):
    reference, engine = pair("llama", byte_bpe)
    prompts = [[5 + n % 90 for n in range(600)], [7, 8, 9]]
    for hidden in (False, True):
        found, expected = engine.prefill(prompts, hidden=hidden), reference.prefill(prompts)
        np.testing.assert_allclose(found.scores, expected.scores, atol=1e-3)


def test_an_empty_text_has_no_scores(byte_bpe):
    _, engine = pair("llama", byte_bpe)
    assert engine.score([[5, 6]], [[]]).token.shape == (1, 0)


# ---- writing


@pytest.mark.parametrize("budget", ["at most 40 chars", "exactly 9 words", "12-15 tokens"])
def test_a_file_is_loaded_by_its_name(file, budget):
    writer = lengthwise.load(str(file))
    [written] = writer.write("The dog.", budget, seed=1)
    assert (written.fits, written.error, written.model) == (True, None, "tiny")
    assert "".join(writer.stream("The dog.", budget, seed=1)) == written.text


def test_the_program_loads_a_file(file):
    assert program_load(str(file), engine=None).write("The dog.", "at most 20 chars")[0].fits
    with pytest.raises(ValueError, match=r"no file at .*other\.gguf"):
        program_load(str(file.with_name("other.gguf")), engine=None)


def test_a_countdown_head_upon_a_file(byte_bpe, file, tmp_path):
    model = attach(tiny("llama", byte_bpe), trained_head(), byte_bpe)
    lengthwise.save(model, byte_bpe, tmp_path / "head", base=str(file), weights=False)
    writer = lengthwise.load(str(tmp_path / "head"), engine="gguf")
    assert writer.engine.units == ("tokens", "words", "chars")
    assert writer.write("The dog.", "at most 40 chars")[0].fits


# ---- the tokenizer


def test_the_tokenizer_is_that_of_the_file(byte_bpe, file):
    tokenizer = load_gguf(str(file)).tokenizer
    assert (len(tokenizer), tokenizer.eos_token_id, tokenizer.pad_token_id) == (len(byte_bpe), 2, 0)
    assert sorted(tokenizer.all_special_ids) == sorted(byte_bpe.all_special_ids)
    assert pieces(tokenizer) == pieces(byte_bpe)
    assert tokenizer.get_vocab() == byte_bpe.get_vocab()
    texts = ["The dog.", "  Où est-il ?\n\n1. x", "吾輩は猫である。", "<s>a</s> b", ""]
    expected = byte_bpe(texts, add_special_tokens=False)["input_ids"]
    assert tokenizer(texts, add_special_tokens=False)["input_ids"] == expected
    for skip in (True, False):
        assert tokenizer.batch_decode(expected, skip_special_tokens=skip) == [
            byte_bpe.decode(ids, skip_special_tokens=skip) for ids in expected
        ]


@pytest.mark.parametrize("start", ["", "{{ bos_token }}"])
def test_a_conversation_begins_once(byte_bpe, tmp_path, start):
    """Some files ask llama.cpp for the start token and have templates that write it, others have templates without."""
    pytest.importorskip("llama_cpp", reason="the gguf engine needs llama-cpp-python: pip install '.[gguf]'")
    model = tiny("llama", byte_bpe)
    tokenizer = load_gguf(
        str(write_gguf(tmp_path / "a.gguf", model, byte_bpe, start + TEMPLATE, add_bos=True))
    ).tokenizer
    ids = tokenizer.apply_chat_template([{"role": "user", "content": "The dog."}])["input_ids"]
    assert ids == [1, *byte_bpe("The dog.", add_special_tokens=False)["input_ids"]]


def test_the_end_of_an_answer_comes_first(byte_bpe, tmp_path):
    pytest.importorskip("llama_cpp", reason="the gguf engine needs llama-cpp-python: pip install '.[gguf]'")
    template = TEMPLATE.replace("</s>", "<s>")
    path = write_gguf(tmp_path / "a.gguf", tiny("llama", byte_bpe), byte_bpe, template, eot=1)
    assert load_gguf(str(path)).tokenizer.eos_token_ids == [1, 2]


# ---- what it refuses


def test_options_that_it_does_not_have(file):
    writer = lengthwise.load(str(file))
    with pytest.raises(ValueError, match="the gguf engine has no option 'repetition_penalty'"):
        writer.engine.prefill([[5]], options={"repetition_penalty": 1.2})
    for given, message in (({"device": "tpu"}, "got the device 'tpu'"), ({"dtype": "float16"}, "takes no dtype")):
        with pytest.raises(ValueError, match=message):
            lengthwise.load(str(file), **given)


def test_files_that_it_cannot_run(byte_bpe, file, tmp_path):
    with pytest.raises(ValueError, match=r"no file at .*missing\.gguf"):
        lengthwise.load(str(tmp_path / "missing.gguf"))
    bare = write_gguf(tmp_path / "bare.gguf", tiny("llama", byte_bpe), byte_bpe, None)
    with pytest.raises(ValueError, match="has no chat template"):
        lengthwise.load(str(bare))
    with pytest.raises(ValueError, match="model of the type t5, which has an encoder"):
        lengthwise.load(str(write_encoder_decoder(tmp_path / "t5.gguf", byte_bpe)))
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(ValueError, match=r"llama\.cpp cannot load .*tiny\.gguf: .*\w"):
        lengthwise.load(str(file))
    tiny("llama", byte_bpe).save_pretrained(tmp_path / "plain")
    with pytest.raises(ValueError, match="is not a GGUF file"):
        lengthwise.load(str(tmp_path / "plain"), engine="gguf")


def test_a_checkpoint_on_the_hub_is_not_fetched(monkeypatch):
    monkeypatch.setattr("lengthwise.models.registry.from_hub", lambda *_: pytest.fail("it was fetched"))
    with pytest.raises(ModelNotFound, match="'owner/name' is not a GGUF file"):
        find_gguf("owner/name")


def test_without_llama_cpp(monkeypatch):
    llama_cpp_model.library.cache_clear()
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    assert default_engine("Any.GGUF") == "gguf"
    with pytest.raises(ImportError, match=r"run pip install '\.\[gguf\]'"):
        lengthwise.load("any.gguf")


# ---- SmolLM2


@pytest.mark.real
def test_smollm2():
    pytest.importorskip("llama_cpp", reason="the gguf engine needs llama-cpp-python: pip install '.[gguf]'")
    plain, headed = (lengthwise.load(name, engine="gguf") for name in ("smollm2-plain", "smollm2"))
    onnx = lengthwise.load("smollm2-plain", engine="onnx")
    chat = [{"role": "user", "content": "List 3 colours:\n\n1. naïve  red\n22"}]
    assert plain.engine.chat_ids(chat) == onnx.engine.chat_ids(chat)
    assert pieces(plain.tokenizer) == pieces(onnx.tokenizer)
    assert (plain.engine.eos[0], plain.engine.units) == (onnx.engine.eos[0], ())
    ids, text = plain.engine.prompt_ids("What is the capital of France?"), plain.tokenizer(" Paris.")["input_ids"]
    found, expected = (one.engine.score([ids], [text]).token for one in (plain, onnx))
    np.testing.assert_allclose(found, expected, atol=0.3)
    for writer in (plain, headed):
        [written] = writer.write("Describe a lighthouse.", "at most 60 chars")
        assert (written.fits, written.error) == (True, None)
