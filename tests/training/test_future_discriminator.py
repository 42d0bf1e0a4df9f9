"""The training of a future discriminator: labels counted by hand, features as generation sees them, the file."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from families import tiny
from lengthwise import CountdownHead, EncodingControl, attach
from lengthwise.corpora import Document
from lengthwise.corpora.document import DataError
from lengthwise.engines.future_discriminator import FutureDiscriminator
from lengthwise.engines.rows import closing
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.length.meter import meter_of
from lengthwise.models.description import DISCRIMINATOR
from lengthwise.training import future_discriminator as training
from lengthwise.training.future_discriminator import REACH, UNITS, Network, features, labels_of, usable_pairs, write


def mute(what, done, total):
    pass


def engine_of(tokenizer, control=None, family="llama"):
    head = control or CountdownHead(UNITS, at_most=True, hidden=8)
    return TransformersEngine(attach(tiny(family, tokenizer), [head], tokenizer), tokenizer, "tiny")


@pytest.fixture(scope="module")
def engine(byte_bpe):
    return engine_of(byte_bpe)


@pytest.fixture
def small(monkeypatch):
    """A narrow network that takes several steps an epoch on a small toy set."""
    monkeypatch.setattr(training, "_WIDTH", 64)
    monkeypatch.setattr(training, "_BATCH", 256)


def answers(count=60, text="The cat {} sleeps. The dog {} runs. The fox {} eats. "):
    """Answers whose sentences end after the fifth word: the last tokens show where."""
    names = itertools.cycle(["one", "two", "ten", "six"])
    return [Document(str(n), ((f"Tell me {n}.", text.format(*(next(names) for _ in "123"))),)) for n in range(count)]


# ---- labels


def labels(tokenizer, text):
    ids = tokenizer(text)["input_ids"]
    found = labels_of(ids, {unit: meter_of(tokenizer, unit) for unit in UNITS})
    assert found.shape == (len(ids), 3, REACH + 1)
    return tokenizer.convert_ids_to_tokens(ids), dict(zip(UNITS, found.swapaxes(0, 1), strict=True))


def ends(rows):
    """For each token the distances of the ends, and how many distances are known."""
    return [(np.flatnonzero(row == 1).tolist(), int((row >= 0).sum())) for row in rows]


def test_the_labels_of_one_sentence(byte_bpe):
    tokens, found = labels(byte_bpe, "It rains.")
    assert tokens == ["I", "t", "Ġ", "r", "a", "in", "s", "."]
    assert ends(found["tokens"]) == [([r], r + 1) for r in (7, 6, 5, 4, 3, 2, 1, 0)]
    assert ends(found["chars"]) == [([r], r + 1) for r in (8, 7, 6, 5, 4, 2, 1, 0)]
    assert ends(found["words"]) == [([r], r + 1) for r in (1, 1, 1, 0, 0, 0, 0, 0)]


def test_every_later_end_is_a_label(byte_bpe):
    tokens, found = labels(byte_bpe, "It rains. We go.")
    assert tokens[8:] == ["Ġ", "W", "e", "Ġg", "o", "."]
    assert ends(found["tokens"])[0] == ([7, 13], 14)
    assert ends(found["chars"])[0] == ([8, 15], 16)
    assert ends(found["words"])[0] == ([1, 3], 4)
    assert ends(found["words"])[7:9] == [([0, 2], 3), ([2], 3)]  # the full stop; the space, behind the first end
    assert ends(found["chars"])[-1] == ([0], 1)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("- a b\n- c\n- d e", [5, 9, 15]),  # items that another one follows, and the end of the answer
        ("Buy: - a b\n- c\n- d e", [14, 20]),  # no item begins inside a line
        ("| a | b |\n|---|---|\n| c | d |\n| e | f |\nSo", [29, 39, 42]),
        ("no end at all", [13]),
    ],
)
def test_items_rows_and_the_end_of_the_answer_are_labels(byte_bpe, text, at):
    tokens, found = labels(byte_bpe, text)
    distances = [end - len(tokens[0]) for end in at]
    assert ends(found["chars"])[0] == (distances, distances[-1] + 1)


def test_ends_beyond_the_reach_are_no_labels(byte_bpe):
    _, found = labels(byte_bpe, "a" * 120 + " b.")
    assert ends(found["chars"])[0] == ([], REACH + 1)
    assert ends(found["chars"])[120 - REACH + 2] == ([REACH], REACH + 1)
    assert ends(found["chars"])[120 - REACH + 1] == ([], REACH + 1)


# ---- features


def test_the_features_are_the_states_that_generation_reads(engine):
    """Of answers of different lengths, so that the batch is padded."""
    rows = [*answers(1), Document("x", (("Hi", "It rains all the day. We go."),))]
    pairs = sorted(usable_pairs_of(engine, rows), key=lambda pair: sum(map(len, pair)))
    found = features(engine, pairs, mute)
    assert found.tokens.tolist() == [token for _, answer in pairs for token in answer]
    place = 0
    for prompt, answer in pairs:
        for n in (0, 1, len(answer) - 1):
            with closing(engine.prefill([[*prompt, *answer[:n]]], hidden=True)) as one:
                expected = torch.nn.functional.rms_norm(one.hidden[0], one.hidden.shape[1:])
            torch.testing.assert_close(found.hidden[place + n].float(), expected, atol=2e-3, rtol=2e-3)
        place += len(answer)


def usable_pairs_of(engine, rows):
    enough = [*rows, *answers(training.HELD_OUT)]
    return usable_pairs(engine, enough)[: len(rows)]


def test_answers_that_are_too_short_or_too_long_are_left_out(engine):
    short, long = (Document(text, (("Hi", text),)) for text in ("I", "It rains. " * 40))
    assert len(usable_pairs(engine, [short, long, *answers(50)])) == 50


# ---- training


def test_it_predicts_better_than_constant_rates(engine, small, tmp_path):
    shown = []
    found = training.train(
        engine, answers(100), tmp_path, epochs=12, progress=lambda what, done, total: shown.append((what, done, total))
    )
    assert (found.answers, found.held_out) == (100, 2)
    for unit in UNITS:
        assert found.loss[unit] < 0.5 * found.loss_of_rates[unit]
    assert shown[-1] == ("training", found.steps, found.steps)
    assert ("reading answers", 98, 98) in shown
    assert not list(tmp_path.glob(".*"))


def test_the_seed_decides_the_file(engine, small, tmp_path):
    found = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        torch.rand(1)
        state = torch.random.get_rng_state()
        training.train(engine, answers(), tmp_path / name, epochs=1, seed=seed)
        assert torch.equal(torch.random.get_rng_state(), state)
        found.append(load_file(tmp_path / name / DISCRIMINATOR))
    assert all(torch.equal(found[0][key], found[1][key]) for key in found[0])
    assert not torch.equal(found[0]["inner.weight"], found[2]["inner.weight"])


def test_too_few_answers(engine, small, tmp_path):
    with pytest.raises(DataError, match="49 of the 49 answers can be used"):
        training.train(engine, answers(49), tmp_path)
    assert not list(tmp_path.iterdir())


def test_models_that_cannot_be_steered(byte_bpe, tmp_path):
    refused = {
        "needs a length with every text": engine_of(byte_bpe, EncodingControl(unit=UNITS, at_most=True, scale=0.5)),
        "decoder-only": engine_of(byte_bpe, family="bart"),
    }
    for says, engine in refused.items():
        with pytest.raises(ValueError, match=says):
            training.train(engine, answers(), tmp_path)


# ---- the file


@pytest.fixture
def network(small):
    torch.manual_seed(0)
    found = Network(32, torch.randn(len(UNITS), REACH + 1))
    return found.half().float()  # with the weights that the file can hold


def test_the_file_has_the_weights_of_the_network(network, tmp_path):
    write(network, tmp_path)
    read = FutureDiscriminator.read(tmp_path, 32)
    assert (read.units, read.reach) == (UNITS, REACH)
    hidden, embedded = torch.randn(4, 32), torch.randn(4, 5, 32)
    with torch.no_grad():
        logits = network(hidden[:, None].expand(-1, 5, -1).reshape(-1, 32), embedded.reshape(-1, 32))
    expected = logits.sigmoid().reshape(4, 5, len(UNITS), REACH + 1)
    for n, unit in enumerate(UNITS):
        by_torch = read.probabilities(hidden, embedded, unit)
        by_numpy = read.probabilities(hidden.numpy(), embedded.numpy(), unit)
        torch.testing.assert_close(by_torch, expected[:, :, n], atol=1e-5, rtol=1e-4)
        np.testing.assert_allclose(by_numpy, by_torch.numpy(), atol=1e-5, rtol=1e-4)


def test_a_half_written_file_never_replaces_a_good_one(network, tmp_path, monkeypatch):
    write(network, tmp_path)
    before = (tmp_path / DISCRIMINATOR).read_bytes()

    def fail(descriptor):
        raise OSError("the disk is full")

    monkeypatch.setattr(training.atomic, "os", SimpleNamespace(**vars(training.atomic.os) | {"fsync": fail}))
    with pytest.raises(OSError, match="the disk is full"):
        write(Network(32, torch.zeros(len(UNITS), REACH + 1)), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [DISCRIMINATOR]
    assert (tmp_path / DISCRIMINATOR).read_bytes() == before
