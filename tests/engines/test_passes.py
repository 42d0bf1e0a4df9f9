"""A guard of the cost that no busy machine can disturb: passes per text, and the operators of the graphs."""

import numpy as np
import pytest
from test_conformance import onnx_engine, tiny, trained_head

from lengthwise import Writer, attach
from lengthwise.benchmark.passes import bytes_read, counted, of_texts, operators
from lengthwise.generation.repair import MORE_TOKENS, ROUNDS
from lengthwise.generation.token_choice import KEPT_FORKS
from lengthwise.models.onnx_model import resolve_onnx

PROMPTS = ["Describe a lighthouse.", "Why do leaves fall?"]


@pytest.fixture(scope="module")
def writer(byte_bpe):
    model = tiny("llama", byte_bpe)
    attach(model, trained_head(), byte_bpe)
    return Writer(onnx_engine(model, byte_bpe, "tiny"))


def test_a_pass_is_counted_once(writer):
    engine = writer.engine
    with counted() as passes:
        rows = engine.prefill([engine.prompt_ids("One."), engine.prompt_ids("Two or three.")])
        rows.step(np.array([5, 6]))
    assert passes.count == 2
    engine.prefill([engine.prompt_ids("One.")])
    assert passes.count == 2  # only inside the block


def test_a_text_without_repair_takes_a_pass_per_token_and_three_more(writer):
    """The prompt, and for completeness the prompt and the whole text without a length; the end is a token, too."""
    for prompt in PROMPTS:
        with counted() as passes:
            writer.write([prompt], "at most 12 tokens", finish=False)
        assert passes.count <= 12 + 1 + 3


def test_a_batch_takes_as_many_passes_as_its_longest_text(writer):
    alone = [row["passes"] for row in of_texts(writer, PROMPTS, ["at most 30 chars"] * 2)]
    with counted() as passes:
        writer.write(PROMPTS, "at most 30 chars")
    assert passes.count < sum(alone)


def test_repair_is_bounded(writer):
    """Each round adds at most 24 tokens to what it removes, with the passes that judge endings.

    The random model finds no complete ending, so every round runs to its end. Its score reads the continuations, each
    with two forks at most.
    """
    [row] = of_texts(writer, PROMPTS[:1], ["exactly 25 words"])
    judged = {rows: 1 + rows * (1 + KEPT_FORKS) for rows in (1, *dict(ROUNDS).values())}
    rounds = sum(tail + MORE_TOKENS + 1 + judged[rows] for tail, rows in ROUNDS)
    assert row["passes"] <= 8 * 25 + 16 + 1 + judged[1] + rounds
    assert rounds <= 800


def test_a_search_takes_a_pass_per_token_for_all_beams(sp_unigram):
    engine = onnx_engine(tiny("marian", sp_unigram), sp_unigram, "tiny")
    prompts = [engine.prompt_ids(text) for text in PROMPTS]
    with counted() as passes:
        engine.search(prompts, max_new_tokens=9, beams=5)
    assert passes.count <= 1 + 9  # the encoder, and every token of the longest text
    with counted() as passes:
        engine.search(prompts, max_new_tokens=9, beams=5)
    assert passes.count <= 9  # the encoder's outputs are kept
    with counted() as passes:
        engine.score(prompts * 4, [[5, 6, 7]] * 8)
    assert passes.count == 1


def test_the_texts_of_a_search_within_a_length_are_not_scored_again(sp_unigram):
    engine = onnx_engine(tiny("marian", sp_unigram), sp_unigram, "tiny")
    with counted() as passes:
        Writer(engine).write(PROMPTS, "at most 9 tokens", num_beams=4, candidates=2)
    assert passes.count <= 1 + 10


def test_operators_of_a_translator(tmp_path, monkeypatch):
    """`en-it` has 4 encoder and 4 decoder layers. Each operator costs time at every token."""
    monkeypatch.setenv("LENGTHWISE_CACHE", str(tmp_path))
    folder, _ = resolve_onnx("en-it")
    found = {name: operators(folder / f"{name}.onnx") for name in ("encoder", "decoder")}
    products = {name: (one["MatMulIntegerToFloat"], one["Softmax"]) for name, one in found.items()}
    assert products == {"encoder": (17, 4), "decoder": (25, 8)}
    assert sum(found["encoder"].values()) <= 198
    assert sum(found["decoder"].values()) <= 333


@pytest.mark.real
def test_operators_and_weights_of_smollm2():
    graph = resolve_onnx("smollm2-plain")[0] / "model.onnx"
    found = operators(graph)
    assert (found["MatMulNBits"], found["GroupQueryAttention"], found["SkipSimplifiedLayerNormalization"]) == (
        121,
        30,
        60,
    )
    assert sum(found.values()) <= 742
    assert bytes_read(graph) <= 112_000_000
