"""What every engine must do, on tiny models of the families that it runs, and what a writer needs of an engine.

The tokens and scores of the reference (transformers in float32) in greedy decoding, beam search and `score`, with and
without length controls; texts inside every hard budget; prompts of different lengths in one batch; rows that are
dropped, forked and added.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from bigram_engine import BigramEngine
from families import ENCODER_DECODERS, FAMILIES
from families import tiny as tiny_model
from lengthwise import Alibi, CountdownHead, EncodingControl, Writer, attach, load
from lengthwise.controls import PromptControl
from lengthwise.controls.attached import controls_of
from lengthwise.engines import shared_batch
from lengthwise.engines.base import LengthInputs
from lengthwise.engines.gguf import GgufEngine
from lengthwise.engines.onnx import OnnxEngine
from lengthwise.engines.onnx_marian import MarianEngine
from lengthwise.engines.rows import closing
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.generation import load as loading
from lengthwise.generation.unconstrained import UnconstrainedWriter
from lengthwise.length.budget import Budget
from lengthwise.length.units import measure
from lengthwise.models.conversion import gpt2, llama, marian
from lengthwise.models.conversion.folder import save_converted, save_marian
from lengthwise.models.gguf_model import GgufModel
from lengthwise.models.gguf_tokenizer import GgufTokenizer
from lengthwise.models.llama_cpp_model import LlamaModel
from lengthwise.models.onnx_marian_model import read_marian
from lengthwise.models.onnx_model import read_onnx
from lengthwise.scoring.log_likelihood import CausalScorer
from tiny_gguf import write_gguf

LLAMAS = ("llama", "mistral", "qwen2")
ONNX = (*LLAMAS, "gpt2", "marian")


def tiny(family, tokenizer):
    """A tiny model; Llama-type ones have the size of heads that onnxruntime needs, Qwen2 the number for llama.cpp."""
    sizes = {"num_attention_heads": 2, "num_key_value_heads": 1} if family == "qwen2" else {}
    return tiny_model(family, tokenizer, **({"head_dim": 16} if family in LLAMAS else {}), **sizes)


def _control(model):
    """The options and the weights of the model's control, as a folder has them."""
    if not (controls := controls_of(model)):
        return None
    weights = {key.rpartition(".")[2]: value.numpy() for key, value in controls[0].state_dict().items()}
    return controls[0].config(), weights


def onnx_engine(model, tokenizer, name):
    """The onnx engine with the weights of a tiny model."""
    with tempfile.TemporaryDirectory() as folder:
        arrays, config = {key: value.numpy() for key, value in model.state_dict().items()}, model.config.to_dict()
        control = _control(model)
        if config["model_type"] == "marian":
            save_marian(marian.of_arrays(config, arrays), Path(folder), eos=[2], pad=0, start=0, never=[])
            return MarianEngine(read_marian(Path(folder), tokenizer, control, name))
        family = gpt2 if config["model_type"] == "gpt2" else llama
        save_converted(family.of_arrays(config, arrays), Path(folder), eos=[2], pad=0)
        return OnnxEngine(read_onnx(Path(folder), tokenizer, control), name)


def gguf_engine(model, tokenizer, name):
    """The gguf engine with the weights of a tiny model."""
    pytest.importorskip("llama_cpp", reason="the gguf engine needs llama-cpp-python: pip install '.[gguf]'")
    with tempfile.TemporaryDirectory() as folder:
        llama = LlamaModel(write_gguf(Path(folder) / "tiny.gguf", model, tokenizer))
        return GgufEngine(GgufModel(llama, GgufTokenizer(llama), _control(model)), name)


# A new engine adds a line: a function of a tiny model and its tokenizer, and the families that it runs.
ENGINES = {
    "transformers": (TransformersEngine, FAMILIES),
    "fixed cache": (partial(TransformersEngine, fixed_cache=True), FAMILIES),
    "onnx": (onnx_engine, ONNX),
    "gguf": (gguf_engine, LLAMAS),
}
CONTROLS = {
    "countdown head": lambda: trained_head(),
    "encoding": lambda: EncodingControl(unit="chars", at_most=True, scale=0.5),
    "encoding of units": lambda: EncodingControl(
        unit=("tokens", "words", "chars"), at_most=True, scale=0.5, end_index=1, gain=0.5
    ),
    "prompt": lambda: PromptControl("At most {target} {unit}: {text}"),
    "prompt or none": lambda: PromptControl("[{percent}%] {text}", plain_share=0.5),
}
# The controls that an engine beside the reference runs, by engine and family. A new engine adds its own.
CONTROLLED = {
    ("onnx", "llama"): ("countdown head", "prompt", "prompt or none"),
    ("onnx", "gpt2"): ("countdown head",),
    ("onnx", "marian"): tuple(CONTROLS),
    ("gguf", "llama"): ("countdown head",),
}
KINDS = ("at most 9", "exactly 6", "5-8")
UNITS = ("chars", "words", "tokens", "bytes")
TEXTS = ["The dog.", "A longer question: where is the fox, and why?", "x"]
STEPS = 8


PAIRS = [(engine, family) for engine, (_, families) in ENGINES.items() for family in families]


def for_pairs(pairs):
    """Run a test for each of these pairs of an engine and a family."""
    return pytest.mark.parametrize(("make", "family"), pairs, indirect=["make"])


def for_families(names=FAMILIES):
    """Run a test for each engine and each of these families that it runs."""
    return for_pairs([(engine, family) for engine, family in PAIRS if family in names])


def for_controls(counting=False):
    """Run a test for each engine, family and control; `counting`: for controls that count units."""
    cases = [(*pair, name) for pair, names in CONTROLLED.items() for name in names]
    cases = [case for case in cases if not (counting and case[2].startswith("prompt"))]
    return pytest.mark.parametrize(("make", "family", "control"), cases, indirect=["make"])


class Make:
    """A function from a family's name to an engine, and to a pair of the reference and an engine."""

    def __init__(self, engine, tokenizers):
        self.engine, self.tokenizers = ENGINES[engine][0], tokenizers

    def __call__(self, family, control=None):
        return self.engine(*self._model(family, control), "tiny")

    def pair(self, family, control=None):
        model = self._model(family, control)
        return TransformersEngine(*model, "tiny"), self.engine(*model, "tiny")

    def _model(self, family, control):
        tokenizer = self.tokenizers[family in ENCODER_DECODERS]
        model = tiny(family, tokenizer)
        return model if control is None else attach(model, control, tokenizer), tokenizer


@pytest.fixture
def make(request, byte_bpe, sp_unigram):
    return Make(request.param, (byte_bpe, sp_unigram))


def trained_head(units=("tokens", "words", "chars")):
    """A countdown head that changes scores."""
    head = CountdownHead(units, at_most=True, hidden=8)
    head.on_attach(1.0, 32)
    torch.manual_seed(0)
    with torch.no_grad():
        for name in ("gain", "outer", "choice"):
            head.learnt[name].normal_()
    return head


def greedy(rows, steps=STEPS):
    """The ids (rows, steps) of a greedy continuation."""
    taken = []
    for _ in range(steps):
        taken.append(torch.as_tensor(rows.scores.argmax(1)))
        rows.step(taken[-1])
    return torch.stack(taken, 1)


# ---- the tokens and scores of the reference


# The fixed cache is a cache of the reference engine; test_recorded_rows.py compares it with the usual one.
BESIDE_REFERENCE = [pair for pair in PAIRS if pair[0] not in ("transformers", "fixed cache")]


@for_pairs(BESIDE_REFERENCE)
def test_scores_and_tokens_of_the_reference(make, family):
    reference, engine = make.pair(family)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    one, other = (each.prefill(prompts, hidden=True) for each in (reference, engine))
    np.testing.assert_allclose(other.scores, one.scores, atol=1e-4)
    np.testing.assert_allclose(other.hidden, one.hidden, atol=1e-4)
    assert greedy(other, 20).tolist() == greedy(one, 20).tolist()
    for how in ({"beams": 1}, {"beams": 4, "sequences": 2}, {"beams": 4, "options": {"length_penalty": 0.3}}):
        expected, found = (one.search(prompts, max_new_tokens=20, scores=True, **how) for one in (reference, engine))
        assert found.ids == expected.ids
        np.testing.assert_allclose(found.scores, expected.scores, atol=1e-4)


@for_pairs(BESIDE_REFERENCE)
def test_forked_rows_have_the_scores_of_the_reference(make, family):
    reference, engine = make.pair(family)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    one, other = reference.prefill(prompts), engine.prefill(prompts)
    for rows in ([0, 1, 1, 2, 0], [4, 2], [1, 1, 0, 1]):  # more rows than prompts, and fewer
        one.select(torch.tensor(rows)), other.select(torch.tensor(rows))
        tokens = one.scores.argmax(1) + torch.arange(len(rows))  # forks go different ways
        one.step(tokens), other.step(tokens)
        np.testing.assert_allclose(other.scores, one.scores, atol=1e-4)


@for_controls(counting=True)
def test_a_control_has_the_effect_that_it_has_in_the_reference(make, family, control):
    reference, engine = make.pair(family, CONTROLS[control]())
    prompts, most = [engine.prompt_ids(text) for text in TEXTS], len(engine.units) - 1
    written = [0, 0 if engine.encoder_decoder else 3, 0]  # the end of a prompt may be the beginning of the text
    lengths = LengthInputs([9, 40, 17], [most, 0, min(1, most)], [False, True, True], written)
    one, other = reference.prefill(prompts, lengths), engine.prefill(prompts, lengths)
    assert not np.allclose(other.scores, engine.prefill(prompts).scores, atol=0.1)
    for rows in (None, None, None, [2, 0, 2], None, [1]):
        if rows is not None:
            one.select(torch.tensor(rows)), other.select(torch.tensor(rows))
        np.testing.assert_allclose(other.scores, one.scores, atol=1e-3)
        tokens = 4 + one.scores[:, 4:].argmax(1)  # no special ones
        one.step(tokens), other.step(tokens)
        np.testing.assert_allclose(other.scores, one.scores, atol=1e-3)
    texts = [[5, 9], [7, 8, 11, 6, 10], [12, 5, 2]]
    found, expected = (one.score(prompts, texts, lengths) for one in (engine, reference))
    for row, text in enumerate(texts):
        np.testing.assert_allclose(found.token[row, : len(text)], expected.token[row, : len(text)], atol=1e-3)


@for_controls()
def test_a_control_declares_what_it_declares_in_the_reference(make, family, control):
    def declared(engine):
        [one] = engine.controls
        kind = one.units, one.needs_length, one.at_most, one.reads_length_first
        return kind, one.prefix("Hi there", 6, "chars"), engine.plain_without_length, engine.takes_limits_in("chars")

    reference, engine = make.pair(family, CONTROLS[control]())
    assert declared(engine) == declared(reference)


@for_controls(counting=True)
def test_a_writer_writes_what_it_writes_with_the_reference(make, family, control):
    writers = [Writer(one) for one in make.pair(family, CONTROLS[control]())]
    engine = writers[1].engine
    with closing(engine.prefill([engine.prompt_ids("Hi")])) as rows:
        forks = getattr(rows, "can_fork", False)  # without forks, other endings of an exact length are tried
    budgets = ["at most 20 chars", "exactly 12 chars" if forks else "at most 12 chars", "5-9 words"]
    for how in ({}, {"candidates": 2, "seed": 1}, {"num_beams": 4, "candidates": 2}):
        expected, found = (writer.write(TEXTS, budgets, **how) for writer in writers)
        assert [one.text for one in found] == [one.text for one in expected]
        assert [one.complete for one in found] == [one.complete for one in expected]
        assert all(one.fits for one in found)


# ---- hard budgets


@pytest.mark.parametrize("how", [{}, {"num_beams": 3}], ids=["greedy", "beams"])
@for_pairs([pair for pair in PAIRS if pair[0] != "fixed cache" and pair[1] in ("llama", "marian")])
def test_every_text_of_a_batch_is_inside_its_budget(make, family, how):
    engine = make(family)
    budgets = [f"{kind} {unit}" for unit in UNITS for kind in KINDS]
    prompts = [TEXTS[n % len(TEXTS)] for n in range(len(budgets))]
    for one, budget in zip(Writer(engine).write(prompts, budgets, **how), map(Budget.parse, budgets), strict=True):
        length = one.tokens if budget.unit == "tokens" else measure(one.text, budget.unit)
        assert (one.error, one.fits, length) == (None, True, one.length)
        assert budget.fits(length), (budget, one.text)


# ---- rows


@for_families()
def test_steps_write_what_the_engines_own_search_writes(make, family):
    engine = make(family)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    found = engine.search(prompts, max_new_tokens=STEPS, options={"min_new_tokens": STEPS}).ids
    rows = engine.prefill(prompts, None, {"min_new_tokens": STEPS})
    assert greedy(rows).tolist() == found


@for_families()
def test_scores_are_those_of_one_forward_pass(make, family):
    engine = make(family)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    rows = engine.prefill(prompts)
    texts, seen = [], []
    for _ in range(STEPS):
        scores = torch.as_tensor(rows.scores)
        texts.append(scores.argmax(1))
        seen.append(scores.log_softmax(1).amax(1))
        rows.step(texts[-1])
    scored = engine.score(prompts, torch.stack(texts, 1).tolist())
    np.testing.assert_allclose(torch.stack(seen, 1), scored.token, atol=2e-5, rtol=0)
    np.testing.assert_allclose(scored.token, scored.best, rtol=1e-5)


@for_families()
def test_rows_are_forked_dropped_and_reordered(make, family):
    engine = make(family)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    alone = greedy(engine.prefill(prompts))
    rows = engine.prefill(prompts)
    first = greedy(rows, 3)
    rows.select(torch.tensor([2, 0, 0]))
    rest = greedy(rows, STEPS - 3)
    assert torch.cat([first[[2, 0, 0]], rest], 1).tolist() == alone[[2, 0, 0]].tolist()
    assert len(rows.scores) == 3


@pytest.mark.parametrize("shared", [False, True], ids=["apart", "shared"])
@for_families(["llama", "gpt2", "marian"])
def test_rows_are_added_while_others_are_written(make, family, shared, monkeypatch):
    monkeypatch.setattr(shared_batch, "PATIENCE", 0.001)  # one thread steps the rows in turn
    engine = make(family)
    first, later = ([engine.prompt_ids(text) for text in some] for some in (TEXTS, TEXTS[::-1]))
    alone = [greedy(engine.prefill(prompts)) for prompts in (first, later)]
    if shared and not engine.share():
        pytest.skip("this engine does not put rows of several calls into one forward pass")
    rows = engine.prefill(first)
    begun = greedy(rows, 3)
    added = engine.prefill(later)
    other = greedy(added, 2)
    rows.select(torch.tensor([2, 0]))  # a row leaves, and the others stay
    assert torch.equal(torch.cat([begun[[2, 0]], greedy(rows, STEPS - 3)], 1), alone[0][[2, 0]])
    assert torch.equal(torch.cat([other, greedy(added, STEPS - 2)], 1), alone[1])


@for_families()
def test_each_prompt_has_several_rows(make, family):
    engine = make(family)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    once, thrice = greedy(engine.prefill(prompts)), greedy(engine.prefill(prompts, each=3))
    assert thrice.tolist() == once.repeat_interleave(3, 0).tolist()


@for_families()
def test_the_hidden_state_is_what_the_output_layer_reads(make, family):
    engine = make(family)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    assert engine.prefill(prompts).hidden is None  # unless it is asked for
    rows = engine.prefill(prompts, hidden=True)
    model = tiny(family, engine.tokenizer)  # the same weights
    factor = model.config.d_model**-0.5 if family == "t5" else 1.0  # T5 scales it before its output layer
    for _ in range(2):
        with torch.inference_mode():
            logits = model.get_output_embeddings()(torch.as_tensor(rows.hidden) * factor)
        torch.testing.assert_close(logits, torch.as_tensor(rows.scores), atol=1e-4, rtol=0)
        rows.step(rows.scores.argmax(1))
    rows.select(torch.tensor([1]))
    assert len(rows.hidden) == 1


@for_families()
def test_texts_of_different_lengths_after_prompts_that_are_read_once(make, family):
    engine = make(family)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    texts = [[5, 9], [7, 8, 11, 6, 10], [12, 5, 2]]
    together = engine.score(prompts, texts)
    for n, text in enumerate(texts):
        alone = engine.score(prompts[n : n + 1], [text])
        for column, expected in zip(together, alone, strict=True):
            np.testing.assert_allclose(column[n, : len(text)], expected[0], atol=2e-5, rtol=0)
    cache = engine.prompt_cache(prompts, 2)
    assert (cache is None) is engine.encoder_decoder
    if cache is not None:
        repeated = [prompt for prompt in prompts for _ in range(2)]
        for pair in ([[5, 9, 2], [7, 8, 11]], [[5, 9, 7, 8], [5, 9]]):  # of one length; with a common beginning
            cached, plain = engine.score(repeated, pair * 3, None, cache), engine.score(repeated, pair * 3)
            for column, expected in zip(cached, plain, strict=True):
                for row, text in enumerate(pair * 3):
                    np.testing.assert_allclose(column[row, : len(text)], expected[row, : len(text)], atol=2e-5, rtol=0)


@pytest.mark.parametrize("beams", [1, 3])
@for_families()
def test_texts_that_begin_with_different_prefixes(make, family, beams):
    engine, options = make(family), {"min_new_tokens": STEPS, "length_penalty": 0.0}
    prompts, prefixes = [engine.prompt_ids(text) for text in TEXTS], [[5, 9], [], [7, 8, 11, 6, 10]]
    how = {"max_new_tokens": STEPS, "beams": beams, "scores": True, "options": options}
    together = engine.search(prompts, prefixes=prefixes, **how)
    for n, (prompt, prefix) in enumerate(zip(prompts, prefixes, strict=True)):
        alone = engine.search([prompt], prefixes=[prefix], **how)
        assert together.ids[n] == alone.ids[0]
        assert together.scores[n] == pytest.approx(alone.scores[0], abs=1e-4)
        if beams == 1:  # the most probable token in each step, as one forward pass sees it; the end is forbidden
            token, best, end = (one[0, len(prefix) :] for one in engine.score([prompt], [[*prefix, *together.ids[n]]]))
            np.testing.assert_allclose(token, np.where(best > end, best, token), rtol=1e-5)
    assert engine.search(prompts[1:2], **how).ids == [together.ids[1]]


# The other engines have no ALiBi.
@for_pairs([("transformers", family) for family in ("marian", "bart", "m2m100")])
def test_prefixes_of_a_model_without_positions(make, family):
    engine = make(family, Alibi())
    prompts, prefixes = [engine.prompt_ids(text) for text in TEXTS], [[5, 9], [], [7, 8, 11, 6, 10]]
    together = engine.search(prompts, prefixes=prefixes, max_new_tokens=STEPS, options={"min_new_tokens": STEPS}).ids
    for n, (prompt, prefix) in enumerate(zip(prompts, prefixes, strict=True)):
        alone = engine.search([prompt], prefixes=[prefix], max_new_tokens=STEPS, options={"min_new_tokens": STEPS})
        assert alone.ids == [together[n]]


# Llama-type models on the other engines have only the countdown head.
ENCODED = [
    (engine, family) for engine, family in PAIRS if engine in ("transformers", "fixed cache") or family == "marian"
]


@for_pairs(ENCODED)
def test_a_prefix_is_part_of_the_controlled_length(make, family):
    """After a prefix, a controlled model receives what it would have received had it written the prefix itself."""
    engine = make(family, EncodingControl("difference", unit="tokens", scale=2.0))
    prompts, count = [engine.prompt_ids(text) for text in TEXTS], len(TEXTS)
    lengths = LengthInputs([20] * count, [0] * count, [False] * count, [0] * count)
    how = {"options": {"min_new_tokens": STEPS}}
    whole = engine.search(prompts, lengths, max_new_tokens=STEPS, **how).ids
    begun = [2, 0, 5]
    taken = LengthInputs([20] * count, [0] * count, [False] * count, begun)
    prefixes = [ids[:n] for ids, n in zip(whole, begun, strict=True)]
    rest = engine.search(prompts, taken, prefixes=prefixes, max_new_tokens=STEPS, **how).ids
    for ids, n, found in zip(whole, begun, rest, strict=True):
        assert found[: STEPS - n] == ids[n:]


@for_families()
def test_a_search_hands_the_text_alone_to_its_processors(make, family):
    engine, widths = make(family), []

    def no_end(ids, scores):
        widths.append(ids.shape)
        scores[:, engine.eos] = -np.inf
        return scores

    prompts = [engine.prompt_ids(text) for text in TEXTS]
    found = engine.search(prompts, max_new_tokens=4, processors=[no_end], beams=3, sequences=2, scores=True)
    assert [len(ids) for ids in found.ids] == [4] * 6
    assert widths == [(9, n) for n in range(4)]
    scored = engine.score([prompt for prompt in prompts for _ in range(2)], found.ids)
    best = scored.token.sum(1)
    assert (best[::2] >= best[1::2] - 1e-4).all()
    if found.log_probs is not None:  # those of the model, also of the end that the processor forbids
        np.testing.assert_allclose(found.log_probs, scored, atol=1e-4)


@for_families(["llama", "marian"])
def test_the_hidden_state_is_that_before_a_control_edits_it(make, family):
    head = CountdownHead("chars", hidden=8)
    head.on_attach(1.0, 32)
    with torch.no_grad():
        head.learnt["choice"].fill_(0.5)
    plain, controlled = make(family), make(family, head)
    prompts = [plain.prompt_ids(text) for text in TEXTS]
    lengths = LengthInputs([5] * 3, [0] * 3, [False] * 3, [0] * 3)
    expected, found = plain.prefill(prompts, hidden=True), controlled.prefill(prompts, lengths, hidden=True)
    np.testing.assert_allclose(found.hidden, expected.hidden, atol=1e-5)
    assert not np.allclose(found.scores, expected.scores)


@for_pairs(ENCODED)
def test_length_inputs_reach_the_control(make, family):
    engine = make(family, EncodingControl("difference", unit="tokens", scale=2.0))
    assert engine.units == ("tokens",)
    prompts = [engine.prompt_ids(text) for text in TEXTS]
    far, near = (LengthInputs([n] * 3, [0] * 3, [False] * 3, [0] * 3) for n in (500, 3))
    plain, one, other = (np.asarray(engine.prefill(prompts, lengths).scores) for lengths in (None, far, near))
    assert not np.allclose(plain, one)
    assert not np.allclose(one, other)


@for_families(["llama"])
def test_a_writer_takes_an_engine(make, family):
    [written] = Writer(make(family)).write("The dog.", "at most 40 chars")
    assert (written.fits, written.model) == (True, "tiny")


# ---- an engine without transformers and without a search of its own


@pytest.mark.parametrize("how", [{}, {"candidates": 3}, {"temperature": 1.2}])
@pytest.mark.parametrize("budget", ["at most 40 chars", "exactly 9 words", "12-15 tokens"])
def test_a_writer_needs_prefill_and_score_alone(byte_bpe, budget, how):
    writer = Writer(BigramEngine(byte_bpe))
    [written] = writer.write("The dog.", budget, seed=1, **how)
    assert (written.fits, written.model, written.error) == (True, "bigrams", None)
    assert "".join(writer.stream("The dog.", budget, seed=1)) == writer.write("The dog.", budget, seed=1)[0].text
    assert Budget.parse(budget).fits(written.length)


def test_a_greedy_search_needs_no_code(byte_bpe):
    engine = BigramEngine(byte_bpe)
    engine.table[:, 2] -= 3  # ends are rare
    engine.table[7, 2] = 99
    prompts = [[5], [9]]
    rows = engine.prefill(prompts)
    found = engine.search(prompts, max_new_tokens=STEPS)
    for ids, expected in zip(found.ids, greedy(rows).tolist(), strict=True):
        end = expected.index(2) if 2 in expected else STEPS
        assert ids[: end + 1] == expected[: end + 1]
        assert set(ids[end:]) <= {2}
    [free] = UnconstrainedWriter(Writer(engine), receives_length=False).write("The dog.", "at most 9 chars")
    assert free.error is None
    assert free.text


def test_beam_search_needs_no_code(byte_bpe):
    engine = BigramEngine(byte_bpe)
    [written] = Writer(engine).write("The dog.", "at most 40 chars", num_beams=3)
    assert written.fits
    found = [engine.search([[5], [9]], max_new_tokens=STEPS, beams=beams, scores=True).scores for beams in (2, 40)]
    assert np.greater_equal(found[1], found[0]).all()


def test_its_texts_are_scored(byte_bpe):
    [(log_prob, tokens)] = CausalScorer(BigramEngine(byte_bpe)).likelihood(["is quick."], ["The dog"])
    assert tokens == len(byte_bpe("is quick.")["input_ids"])
    assert log_prob < 0


def test_an_engine_is_loaded_by_its_name(byte_bpe, monkeypatch):
    monkeypatch.setitem(loading.ENGINES, "bigrams", lambda name, **options: BigramEngine(byte_bpe))
    assert load("any", engine="bigrams").name == "bigrams"
    with pytest.raises(ValueError, match="unknown engine 'vlm'; the engines are transformers, onnx, gguf, bigrams"):
        load("any", engine="vlm")


def test_a_model_without_its_tokenizer_is_refused(byte_bpe):
    with pytest.raises(TypeError, match="got LlamaForCausalLM alone"):
        Writer(tiny("llama", byte_bpe))
