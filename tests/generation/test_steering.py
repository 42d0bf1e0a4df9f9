"""Tokens after which a sentence probably ends in time get higher scores, near the end of a text."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

import lengthwise
from bigram_engine import BigramEngine
from families import tiny
from lengthwise import CountdownHead, Writer, attach
from lengthwise.constraint.mask import LengthConstraint
from lengthwise.constraint.mixed import MixedConstraint
from lengthwise.engines.future_discriminator import FutureDiscriminator
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.generation import repair, steering
from lengthwise.generation.endings import Draft
from lengthwise.generation.requests import Requests
from lengthwise.generation.steering import STRENGTH, Steering
from lengthwise.length.meter import Meter
from lengthwise.models.description import DISCRIMINATOR

WIDTH, REACH = 4, 12


class KnownDiscriminator(FutureDiscriminator):
    """A sentence ends `distance` units later with a probability that is the first number of the embedding."""

    def __init__(self, units=("tokens", "words"), distance=3):
        self.units, self.reach, self.distance = units, REACH, distance

    def probabilities(self, hidden, embedded, unit):
        found = torch.zeros(*embedded.shape[:2], REACH + 1)
        found[..., self.distance] = embedded[..., 0]
        return found if isinstance(hidden, torch.Tensor) else found.numpy()


class KnownEngine(BigramEngine):
    """Its embeddings are in a table; token `likely` leads to an end in time with a probability of 0.5, others 0.1."""

    def __init__(self, tokenizer, likely=7):
        super().__init__(tokenizer)
        self.embeddings = torch.full((len(tokenizer), WIDTH), 0.1)
        self.embeddings[likely, 0] = 0.5

    def embedded(self, tokens):
        return self.embeddings[tokens]


def steered(tokenizer, low, high, written, *, unit="tokens", likely=7, discriminator=None, last=""):
    """Return the scores before and after, of one row that has written so many tokens, and those of `last`."""
    engine = KnownEngine(tokenizer, likely)
    meter, text = Meter(tokenizer, unit), [[20] * written + tokenizer(last)["input_ids"]]
    constraint = LengthConstraint(meter, [low], [high], eos=engine.eos, written=text)
    scores = torch.zeros(1, len(tokenizer))
    scores[0, 5:10] = 8.0  # the likely tokens: all are candidates
    found = Steering(engine, discriminator or KnownDiscriminator(), constraint).apply(scores, torch.zeros(1, WIDTH))
    return scores[0], found[0]


def test_the_bonus_is_the_formula(byte_bpe):
    before, after = steered(byte_bpe, 20, 20, 16)  # three are left after the next token
    likely = before.exp() / before.topk(steering.CANDIDATES).values.exp().sum()
    mean = 0.1 + likely[7] * 0.4
    assert after[7] - before[7] == pytest.approx(STRENGTH * math.log(0.5 / mean), abs=1e-4)
    assert after[6] - before[6] == pytest.approx(STRENGTH * math.log(0.1 / mean), abs=1e-4)
    assert (after != before).sum() <= steering.CANDIDATES


@pytest.mark.parametrize(
    ("low", "high", "written", "changed"),
    [
        (20, 20, 16, True),
        (18, 22, 16, True),  # a window: the end is 1 to 5 after the next token
        (20, 20, 2, False),  # too far from the end
        (18, None, 16, False),  # no maximum
    ],
)
def test_only_texts_near_their_end_are_steered(byte_bpe, low, high, written, changed):
    before, after = steered(byte_bpe, low, high, written)
    assert bool((before != after).any()) == changed


def test_where_no_token_leads_to_an_end_in_time_all_are_alike(byte_bpe):
    before, after = steered(byte_bpe, 20, 20, 12)  # seven are left after the next token, and the end is after three
    torch.testing.assert_close(after, before)


def test_an_end_token_gets_no_bonus(byte_bpe):
    before, after = steered(byte_bpe, 20, 20, 16, likely=2)
    assert after[2] == before[2]


def test_other_units_are_left_alone(byte_bpe):
    before, after = steered(byte_bpe, 20, 20, 16, discriminator=KnownDiscriminator(units=("words",)))
    torch.testing.assert_close(after, before)


@pytest.mark.parametrize("last", ["\n- a dog\n- the", "\n- A dog is here.\n- the"])
def test_lists_are_steered_too(byte_bpe, last):
    length = 3 + len(byte_bpe(last)["input_ids"]) + 4
    before, after = steered(byte_bpe, length, length, 3, last=last)
    assert bool((before != after).any())


CODE = ["[UNK]", "[PAD]", "[EOS]", "```", "Ċ", "x", "Ġ=", "Ġ1"]
FENCE = CODE.index("```")


@pytest.fixture
def code_writer():
    """Return a function that steers a row which has written code, which is spelled as in `CODE`."""
    pieces = Tokenizer(models.WordLevel({word: n for n, word in enumerate(CODE)}, unk_token="[UNK]"))
    pieces.decoder = decoders.ByteLevel()
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "eos_token": "[EOS]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=pieces, **special)

    def write(text, left, fence, low=None):
        written = [CODE.index(word) for word in text.split()]
        high = len(written) + left
        constraint = LengthConstraint(Meter(tokenizer, "tokens"), [low or high], [high], eos=[2], written=[written])
        scores = torch.full((1, len(CODE)), -20.0)
        scores[0, 5], scores[0, FENCE] = math.log(0.9), math.log(fence)
        steering = Steering(KnownEngine(tokenizer, likely=1), KnownDiscriminator(), constraint)
        found = steering.apply(scores, torch.zeros(1, WIDTH))
        np.testing.assert_allclose(steering.apply(scores.numpy(), np.zeros((1, WIDTH))), found, rtol=1e-6)
        return scores[0], found[0]

    return write


LEAST, MOST = steering.ROOM["tokens"]


@pytest.mark.parametrize(
    ("text", "left", "fence", "closed"),
    [
        ("``` Ċ x Ġ= Ġ1 Ċ", LEAST, 0.05, True),
        ("``` Ċ x Ġ= Ġ1 Ċ", MOST, 0.05, True),
        ("``` Ċ x Ġ= Ġ1 Ċ", LEAST - 1, 0.05, False),  # no room for a sentence
        ("``` Ċ x Ġ= Ġ1 Ċ", MOST + 1, 0.05, False),  # the model may go on
        ("``` Ċ x Ġ= Ġ1 Ċ", LEAST, 0.01, False),  # not likely
        ("``` Ċ x Ġ= Ġ1", LEAST, 0.05, False),  # inside a line
        ("``` Ċ", LEAST, 0.05, False),  # no code
        ("x Ċ", LEAST, 0.05, False),
    ],
)
def test_code_is_closed_where_a_sentence_has_room_after_it(code_writer, text, left, fence, closed):
    before, after = code_writer(text, left, fence)
    assert (after.argmax() == FENCE) == closed
    torch.testing.assert_close(after[5], before[5])


def test_under_a_limit_only_text_that_continues_a_draft_is_steered(byte_bpe):
    engine = KnownEngine(byte_bpe)
    engine.discriminator = KnownDiscriminator()
    requests = Requests(engine)
    request = requests.make(0, "Hi", "at most 20 tokens")
    again = replace(request, kept=Draft("A fox", (5,), (1.0,), 0.0, 0.0, (5,)))
    assert [requests.can_steer(one) for one in (request, again)] == [False, True]
    assert all(requests.without_length(one) for one in (request, again))
    assert not requests.without_length(requests.make(0, "Hi", "at least 20 tokens"))


def test_each_row_of_a_mixed_batch_is_counted_in_its_unit(byte_bpe):
    engine = KnownEngine(byte_bpe)
    parts = []
    for row, (unit, length) in enumerate([("words", 4), ("tokens", 20), ("chars", 30)]):
        meter = Meter(byte_bpe, unit)
        parts.append(([row], LengthConstraint(meter, [length], [length], eos=engine.eos, written=[[20] * 16])))
    scores = torch.zeros(3, len(byte_bpe))
    scores[:, 5:10] = 8.0
    found = Steering(engine, KnownDiscriminator(), MixedConstraint(parts)).apply(scores, torch.zeros(3, WIDTH))
    assert found[0, 7] > scores[0, 7]
    assert found[1, 7] > scores[1, 7]
    torch.testing.assert_close(found[2], scores[2])  # it does not know characters


def weights(units, rng):
    shapes = {"inner": (6, 2 * WIDTH), "middle": (6, 6), "outer": (units * (REACH + 1), 6)}
    found = {f"{name}.weight": rng.normal(size=shape).astype(np.float16) for name, shape in shapes.items()}
    return found | {f"{name}.bias": rng.normal(size=shape[0]).astype(np.float16) for name, shape in shapes.items()}


def test_numpy_and_torch_give_the_same_probabilities():
    rng = np.random.default_rng(0)
    network = FutureDiscriminator(("tokens", "words"), REACH, weights(2, rng))
    hidden, embedded = rng.normal(size=(3, WIDTH)).astype(np.float32), rng.normal(size=(3, 5, WIDTH)).astype(np.float32)
    for unit in network.units:
        found = network.probabilities(hidden, embedded, unit)
        assert found.shape == (3, 5, REACH + 1)
        expected = network.probabilities(torch.from_numpy(hidden), torch.from_numpy(embedded), unit)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(found - network.probabilities(hidden, embedded, "tokens")).max() > 0.01


@pytest.mark.real
def test_the_embeddings_of_the_onnx_engine_are_those_of_the_model():
    pytest.importorskip("transformers")
    onnx, torch_engine = (lengthwise.load("smollm2", engine=name).engine for name in ("onnx", "transformers"))
    tokens = np.array([[5, 100], [2000, 49151]])
    expected = torch_engine.embedded(torch.from_numpy(tokens)).numpy()
    np.testing.assert_allclose(onnx.embedded(tokens), expected, atol=2e-3)
    assert onnx.discriminator.units == torch_engine.discriminator.units == ("tokens", "words", "chars")


@pytest.fixture
def writer(byte_bpe, monkeypatch):
    """A writer whose model has a countdown head and a discriminator, and that records how prompts are read."""
    model = attach(tiny("llama", byte_bpe), CountdownHead(("tokens", "words", "chars"), at_most=True), byte_bpe)
    engine = TransformersEngine(model, byte_bpe)
    width = model.config.hidden_size
    rng = np.random.default_rng(0)
    shapes = {"inner": (6, 2 * width), "middle": (6, 6), "outer": (3 * (REACH + 1), 6)}
    learnt = {f"{name}.weight": rng.normal(size=shape) for name, shape in shapes.items()}
    learnt |= {f"{name}.bias": rng.normal(size=shape[0]) for name, shape in shapes.items()}
    engine.discriminator = FutureDiscriminator(("tokens", "words", "chars"), REACH, learnt)
    writer, prefill, score = Writer(engine), engine.prefill, engine.score
    writer.read, writer.scored = [], []

    def recorded(prompts, lengths=None, options=None, **how):
        writer.read.append((lengths is not None, how.get("hidden", False)))
        return prefill(prompts, lengths, options, **how)

    def scored(prompts, texts, lengths=None, cache=None):
        writer.scored.append(lengths)
        return score(prompts, texts, lengths, cache)

    monkeypatch.setattr(engine, "prefill", recorded)
    monkeypatch.setattr(engine, "score", scored)
    return writer


@pytest.mark.parametrize("budget", ["exactly 20 tokens", "exactly 9 words", "30-40 chars"])
def test_a_steered_text_is_written_without_a_length_and_judged_by_the_plain_model(writer, budget):
    [written] = writer.write(["The dog"], budget)
    assert written.fits
    assert set(writer.read) == {(False, True)}
    assert writer.scored
    assert not any(writer.scored)


def test_a_first_draft_under_a_limit_is_that_of_the_plain_model(writer):
    writer.write(["The dog"], "at most 20 tokens")
    assert writer.read[0] == (False, False)
    assert set(writer.read[1:]) <= {(False, False), (False, True)}


def test_a_minimum_and_a_beam_search_receive_their_lengths(writer):
    writer.write(["The dog"], "at least 20 tokens")
    assert set(writer.read) == {(True, False)}
    assert writer.write(["The dog"], "exactly 9 words", num_beams=2)[0].fits


def test_limits_minimums_and_exact_lengths_in_one_call_are_read_apart(writer):
    budgets = ["exactly 9 words", "at most 9 words", "exactly 12 tokens", "at least 9 words"]
    found = writer.write(["The dog", "A cat", "The dog", "A cat"], budgets)
    assert all(one.fits for one in found)
    assert set(writer.read) == {(False, True), (False, False), (True, False)}


def test_steering_changes_texts_and_keeps_streams_like_texts(writer):
    text = writer.write(["The dog"], "exactly 24 tokens")[0].text
    assert "".join(writer.stream("The dog", "exactly 24 tokens")).strip() == text
    writer.engine.discriminator = None
    assert writer.write(["The dog"], "exactly 24 tokens")[0].text != text


def test_a_text_that_stays_incomplete_is_written_with_the_countdown_head(writer, monkeypatch):
    real = repair.next_step

    def never_complete(request, number, original, ending, draft, pieces):
        return real(request, number, original, replace(ending, complete=False), draft, pieces)

    monkeypatch.setattr(repair, "next_step", never_complete)
    writer.write(["The dog"], "exactly 24 tokens")
    steered, after = writer.read[:5], writer.read[5:]  # the first draft and four rounds
    assert set(steered) == {(False, True)}
    assert set(after) == {(True, False)}


def test_a_text_that_need_not_be_finished_is_not_steered(writer):
    writer.write(["The dog"], "exactly 24 tokens", finish=False)
    assert set(writer.read) == {(True, False)}


def test_units_that_only_the_discriminator_knows_are_searched_apart(byte_bpe, writer):
    model = attach(tiny("llama", byte_bpe), CountdownHead("tokens"), byte_bpe)
    other = TransformersEngine(model, byte_bpe)
    other.discriminator = writer.engine.discriminator
    for options in ({"num_beams": 2}, {}):
        found = Writer(other).write(["x", "y"], ["exactly 12 tokens", "exactly 9 words"], **options)
        assert all(one.fits for one in found)


def test_a_discriminator_of_another_width_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    save_file(weights(2, rng), tmp_path / DISCRIMINATOR, {"units": '["tokens", "words"]', "reach": str(REACH)})
    assert FutureDiscriminator.read(tmp_path, WIDTH).units == ("tokens", "words")
    with pytest.raises(ValueError, match=r"made for a model of width 4; this one has 8.*train it again"):
        FutureDiscriminator.read(tmp_path, 8)
    assert FutureDiscriminator.read(tmp_path / "nothing", 8) is None
