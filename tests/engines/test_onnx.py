"""The onnx engine: buffers that grow, the end of the positions, rows of its KV cache, and what it refuses."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from test_conformance import TEXTS, greedy, onnx_engine, tiny

from lengthwise import EncodingControl, Writer, attach
from lengthwise.engines import kv_cache
from lengthwise.engines.numpy_rows import least_tokens
from lengthwise.engines.onnx import Graph
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.errors import ModelNotFound
from lengthwise.generation.load import load


def pair(family, tokenizer, control=None):
    """The reference and the onnx engine with the same weights."""
    model = tiny(family, tokenizer)
    if control is not None:
        attach(model, control, tokenizer)
    return TransformersEngine(model, tokenizer, "tiny"), onnx_engine(model, tokenizer, "tiny")


def test_a_text_longer_than_the_first_buffers(byte_bpe, monkeypatch):
    monkeypatch.setattr(kv_cache, "_GROWTH", 4)
    reference, engine = pair("llama", byte_bpe)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    assert greedy(engine.prefill(prompts), 60).tolist() == greedy(reference.prefill(prompts), 60).tolist()


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_text_ends_with_the_positions(family, byte_bpe):
    reference, engine = pair(family, byte_bpe)  # 128 positions
    full = [5] * 127 + [9]
    np.testing.assert_allclose(engine.prefill([full]).scores, reference.prefill([full]).scores, atol=1e-4)
    with pytest.raises(ValueError, match="a text has 129 tokens with its prompt; the model has 128 positions"):
        engine.prefill([[5], [5] * 129])
    rows = engine.prefill([[5], full])
    with pytest.raises(ValueError, match="a text has 129 tokens"):
        rows.step(np.array([7, 7]))
    [written] = Writer(engine).write("The dog. " * 60, "at most 40 chars")
    assert "too long for the model: " in written.error
    assert "its window has 128" in written.error


def test_forked_rows_are_not_copied_by_a_repair(byte_bpe):
    """Their buffers are large: 16 rows of one long prompt."""
    _, engine = pair("llama", byte_bpe)
    rows = engine.prefill([engine.prompt_ids("The dog is quick. " * 10)], each=4)
    cache, capacity = rows._cache, rows._cache.capacity
    assert capacity <= cache.used.max() + 3 * 48 + 32
    cache.reserve(int(cache.used.max()) + 3 * 48 + 1)
    assert cache.capacity == capacity


@pytest.fixture
def read(monkeypatch):
    """The number of tokens of each forward pass."""
    found, run = [], Graph.run
    monkeypatch.setattr(
        Graph, "run", lambda graph, cache, ids, *rest: found.append(sum(map(len, ids))) or run(graph, cache, ids, *rest)
    )
    return found


def test_a_beginning_that_texts_have_in_common_is_read_once(byte_bpe, read):
    _, engine = pair("llama", byte_bpe)
    prompt, begun = [5, 9, 12], list(range(20, 50))
    texts = [[*begun, 7, 8], [6], [*begun, 7, 11, 4], [*begun], [*begun, 7, 8]]
    plain = engine.score([prompt] * len(texts), texts)
    cache = engine.prompt_cache([prompt], len(texts))
    read.clear()
    cached = engine.score([prompt] * len(texts), texts, None, cache)
    for column, expected in zip(cached, plain, strict=True):
        for row, text in enumerate(texts):
            np.testing.assert_allclose(column[row, : len(text)], expected[row, : len(text)], atol=2e-5, rtol=0)
    # Each text is read from its last token in common with another one on, and the last token of a text is not read.
    assert sorted(read) == [1, 1, 2, 2, len(begun)]
    np.testing.assert_array_equal(cache.used, [len(prompt) - 1])


def test_a_beginning_that_prompts_have_in_common_is_read_once(byte_bpe, read):
    _, engine = pair("llama", byte_bpe)
    prompts = [[*range(20, 60), *rest] for rest in ([5], [6, 7, 8], [9, 4])]
    rows = engine.prefill(prompts)
    assert sorted(read) == [1, 2, 3, 40]
    order = [2, 0, 0, 1]
    rows.select(np.array(order))
    rows.step(np.array([11, 12, 13, 14]))
    for row, (place, token) in enumerate(zip(order, [11, 12, 13, 14], strict=True)):
        alone = engine.prefill([prompts[place]])
        alone.step(np.array([token]))
        np.testing.assert_allclose(rows.scores[row], alone.scores[0], atol=1e-4)
    read.clear()
    engine.prefill([prompts[0], prompts[0][20:]])
    assert len(read) == 1, "nothing in common"


@hypothesis.given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=9), max_size=12))
def test_rows_that_fork_and_go_keep_what_they_have_stored(selections):
    cache, rows = kv_cache.KVCache(layers=1, rows=3, heads=1, size=2), [[1.0] * 2, [2.0] * 5, [3.0] * 3]
    cache.reserve(5)
    cache.used[:] = [len(row) for row in rows]
    for place, row in enumerate(rows):
        cache.buffers[:, place, :, : len(row)] = np.array(row)[:, None]
    for number, selection in enumerate(selections, 4):
        chosen = [one % len(rows) for one in selection]
        cache.select(np.array(chosen))
        rows = [[*rows[row], number + place / 100] for place, row in enumerate(chosen)]  # and each has another token
        cache.reserve(int(cache.used.max()) + 1)
        for place, row in enumerate(rows):
            cache.buffers[:, place, :, len(row) - 1] = row[-1]
        cache.used = cache.used + 1
        for place, row in enumerate(rows):
            np.testing.assert_allclose(cache.buffers[0, place, 0, : len(row), 0], row)
            np.testing.assert_allclose(cache.buffers[1, place, 0, : len(row), 1], row)


def test_what_it_refuses(byte_bpe, tmp_path):
    _, engine = pair("llama", byte_bpe)
    with pytest.raises(ValueError, match="no option 'repetition_penalty'"):
        engine.prefill([[5]], options={"repetition_penalty": 1.2})
    for given, message in (({"device": "cuda"}, "runs on the CPU"), ({"dtype": "float16"}, "takes no dtype")):
        with pytest.raises(ValueError, match=message):
            load("smollm2", engine="onnx", **given)
    tiny("llama", byte_bpe).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="has not been converted"):
        load(str(tmp_path), engine="onnx")


def test_of_a_hub_model_that_is_not_converted_only_the_config_is_fetched(monkeypatch, tmp_path, capsys):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")

    def download(name, file, local_files_only):
        if local_files_only:
            raise FileNotFoundError(name)
        return tmp_path / file

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    monkeypatch.setattr("lengthwise.models.registry.from_hub", lambda *_: pytest.fail("it was fetched"))
    with pytest.raises(ModelNotFound, match="'owner/name' has not been converted"):
        load("owner/name", engine="onnx")
    assert capsys.readouterr().err == "fetching the config.json of owner/name from the hub ...\n"


def test_a_control_that_it_does_not_have(byte_bpe, tmp_path):
    from lengthwise import save
    from lengthwise.models.onnx_model import load_onnx

    model = attach(tiny("llama", byte_bpe), EncodingControl(), byte_bpe)
    save(model, byte_bpe, tmp_path / "own", base="smollm2-plain", weights=False)
    with pytest.raises(ValueError, match=r"no control but a countdown head or prompt; the model in .* has encoding"):
        load_onnx(str(tmp_path / "own"))


@pytest.mark.parametrize("rows", [[0, 1, 2], [1, 0, 2], [2, 2, 0], [1], [2, 0], [0, 0, 1, 2, 2], [1, 1, 1]])
def test_rows_of_a_cache_are_kept_forked_and_moved(rows):
    cache = kv_cache.KVCache(layers=1, rows=3, heads=1, size=2)
    cache.reserve(4)
    cache.used[:] = [2, 4, 3]
    cache.buffers[:] = np.arange(cache.buffers.size).reshape(cache.buffers.shape)
    expected, used = cache.buffers[:, rows, :, :4].copy(), cache.used[rows]
    cache.select(np.array(rows))
    np.testing.assert_array_equal(cache.used, used)
    for place, tokens in enumerate(used):
        np.testing.assert_array_equal(cache.buffers[:, place, :, :tokens], expected[:, place, :, :tokens])
    assert all(layer.flags.c_contiguous for layer in cache.buffers)


@pytest.mark.parametrize("options", [{"no_repeat_ngram": 0}, {"foo": None}, {"repetition_penalty": 1.1}])
def test_an_option_that_the_engine_lacks_is_refused_whatever_its_value(options):
    with pytest.raises(ValueError, match=f"the onnx engine has no option '{next(iter(options))}'"):
        least_tokens(options, "onnx")


def test_a_misspelt_option_is_guessed():
    with pytest.raises(ValueError, match=r"'temperatur'; did you mean 'temperature'\? The transformers engine has"):
        least_tokens({"temperatur": 0.8}, "onnx")
    with pytest.raises(ValueError, match="'repetition_penalty'; the transformers engine has those of generate"):
        least_tokens({"repetition_penalty": 1.1}, "onnx")


def test_options_that_change_nothing_are_accepted():
    off = {"renormalize_logits": False, "no_repeat_ngram_size": 0, "repetition_penalty": 1.0, "early_stopping": None}
    assert least_tokens(off, "onnx") == 0
    assert least_tokens(off | {"min_new_tokens": 3}, "onnx") == 3
