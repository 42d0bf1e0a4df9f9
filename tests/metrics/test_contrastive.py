"""Contrastive accuracy: a stub that prefers known answers, and sums of log-probabilities on tiny translators."""

from pathlib import Path

import numpy as np
import pytest

from by_hand import log_prob_by_hand
from families import tiny
from lengthwise.controls import EncodingControl
from lengthwise.controls.attach import attach
from lengthwise.corpora.contrasts import Contrast, read_contrasts
from lengthwise.engines.base import Engine
from lengthwise.engines.rows import TokenLogProbs
from lengthwise.engines.transformers import TransformersEngine
from lengthwise.metrics import contrastive_scores
from lengthwise.metrics.contrastive import log_prob_sums

OURS = read_contrasts(Path(__file__).parents[1] / "golden/contrasts.en-fr.jsonl")


class Stub(Engine):
    """Assigns log P = −1 to a target that is known for its source, and −2 to any other, whatever their lengths."""

    name, eos, pad, window, encoder_decoder = "stub", [0], 0, 10_000, True

    def __init__(self, known):
        self.known, self.asked = known, []

    @staticmethod
    def tokenizer(text=None, text_target=None):
        return {"input_ids": [[*map(ord, one), 0] for one in text or text_target]}

    def score(self, prompts, texts, lengths=None, cache=None):
        found = np.zeros((len(texts), max(map(len, texts))))
        for row, pair in enumerate(zip(prompts, texts, strict=True)):
            source, target = ("".join(map(chr, ids[:-1])) for ids in pair)
            self.asked.append((source, target))
            found[row, : len(pair[1])] = (-1 if target in self.known.get(source, ()) else -2) / len(pair[1])
        return TokenLogProbs(found, found, found)


ITEMS = [
    Contrast("It fell.", "Er fiel.", ("Sie fiel.", "Es fiel."), (("A hat.", "Ein Hut."),), {"pronoun": "it:er"}),
    Contrast("It fell.", "Sie fiel.", ("Er fiel.", "Es fiel."), (("A cup.", "Eine Tasse."),), {"pronoun": "it:sie"}),
]


def test_a_stub_without_context_gives_both_the_same_answer():
    found = contrastive_scores(Stub({"It fell.": ["Er fiel."]}), ITEMS)
    assert {one.name: one.value for one in found} == {
        "contrastive": 0.5,
        "contrastive pronoun it:er": 1.0,
        "contrastive pronoun it:sie": 0.0,
    }
    assert found[0].per_item == [1.0, 0.0]
    assert "context:0|model:stub" in found[0].signature


def test_a_stub_with_context():
    engine = Stub(
        {"A hat.<sep>It fell.": ["Ein Hut.<sep>Er fiel."], "A cup.<sep>It fell.": ["Eine Tasse.<sep>Sie fiel."]}
    )
    found = contrastive_scores(engine, ITEMS, context=3, separator="<sep>")
    assert [one.value for one in found] == [1.0, 1.0, 1.0]
    assert len(engine.asked) == 6
    assert "context:3|sep:<sep>" in found[0].signature


def test_a_tie_is_wrong():
    assert contrastive_scores(Stub({"It fell.": ["Er fiel.", "Es fiel."]}), ITEMS[:1])[0].value == 0


def test_only_the_nearest_context_is_given():
    item = Contrast("c", "C", ("D",), (("a", "A"), ("b", "B")))
    engine = Stub({})
    contrastive_scores(engine, [item], context=1)
    assert sorted(engine.asked) == [("b c", "B C"), ("b c", "B D")]


def test_our_set_needs_its_context():
    with_context, without = {}, {}
    for item in OURS:
        source = " ".join([*(text for text, _ in item.context), item.source])
        with_context.setdefault(source, []).append(" ".join([*(text for _, text in item.context), item.reference]))
        without.setdefault(item.source, [item.reference])  # one answer to each source
    assert contrastive_scores(Stub(with_context), OURS, context=2)[0].value == 1
    found = {one.name: one.value for one in contrastive_scores(Stub(without), OURS)}
    assert found["contrastive phenomenon pronoun"] == found["contrastive phenomenon formality"] == 0.5


@pytest.mark.parametrize("family", ["marian", "t5"])
def test_sums_on_a_tiny_translator(family, sp_unigram):
    model = tiny(family, sp_unigram)
    engine = TransformersEngine(model, sp_unigram)
    items = OURS[:4]
    sources = [text for item in items for text in [item.source] * 2]
    targets = [text for item in items for text in (item.reference, *item.contrasts)]
    sums = [log_prob_by_hand(model, sp_unigram, *pair)[0] for pair in zip(targets, sources, strict=True)]
    assert log_prob_sums(engine, sources, targets).tolist() == pytest.approx(sums, rel=1e-4)
    right = [float(ours > other) for ours, other in zip(sums[::2], sums[1::2], strict=True)]
    assert contrastive_scores(engine, items)[0].per_item == right
    joined = contrastive_scores(engine, items, context=1)[0].per_item
    (pair,) = items[0].context
    by_hand = [
        log_prob_by_hand(model, sp_unigram, f"{pair[1]} {text}", f"{pair[0]} {items[0].source}")[0]
        for text in (items[0].reference, *items[0].contrasts)
    ]
    assert joined[0] == float(by_hand[0] > by_hand[1])


def test_what_is_refused(sp_unigram, byte_bpe):
    with pytest.raises(ValueError, match="2 sentences of context were asked for, but no item has any"):
        contrastive_scores(Stub({}), [Contrast("a", "b", ("c",))], context=2)
    with pytest.raises(ValueError, match="has only a decoder"):
        contrastive_scores(TransformersEngine(tiny("llama", byte_bpe), byte_bpe), ITEMS)
    marian = TransformersEngine(tiny("marian", sp_unigram), sp_unigram)
    with pytest.raises(ValueError, match=r"a text has .* tokens; .* allows 127: give shorter texts"):
        log_prob_sums(marian, ["a"], ["a title, " * 60])
    attach(marian.model, EncodingControl(scale=0.5), sp_unigram)
    with pytest.raises(ValueError, match="needs the length of a translation"):
        log_prob_sums(marian, ["a"], ["b"])
