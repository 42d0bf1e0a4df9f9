"""From documents to examples: counts, units, cuts and limits."""

import re
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch

from families import tiny
from lengthwise.controls.prompt import PromptControl
from lengthwise.corpora import Document
from lengthwise.length.meter import Meter
from lengthwise.training.batches import Layout, collate
from lengthwise.training.examples import running_counts, spell
from lengthwise.training.fresh_model import train_tokenizer
from lengthwise.training.max_new_tokens_pp import shifts
from lengthwise.training.recipe import LengthsSection, ShiftSection
from toy_corpora import sentence
from toy_training import documents, layout_for, maker_for


@pytest.mark.parametrize("unit", ["chars", "words", "bytes", "tokens"])
def test_counts_end_at_the_length(byte_bpe: Any, unit: str) -> None:
    found, skipped = maker_for(byte_bpe, unit).examples(documents(), 1, Random(0))
    assert len(found) == sum(len(d.segments) for d in documents())
    assert not skipped["empty"]
    targets = [target.strip() for d in documents() for _, target in d.segments]
    for example, target in zip(found, targets, strict=True):
        meter = Meter(byte_bpe, unit)
        expected = len(example.target) if unit == "tokens" else meter.unit.measure(target)
        assert example.length == expected
        assert len(example.counts) == len(example.target)


def test_long_and_empty_examples_are_counted(byte_bpe: Any) -> None:
    cases = [
        Document("a", (("Hi.", "x" * 400),)),
        Document("b", (("Hi.", "\u200b\u200b"),)),
        Document("c", (("Hi", "Ho"),)),
    ]
    found, skipped = maker_for(byte_bpe, "words", max_tokens=60).examples(cases, 1, Random(0))
    assert [e.name for e in found if e.name != "b"] == ["c"]
    assert skipped["long"] == 1


@pytest.mark.parametrize(("encoder_decoder", "kept"), [(True, ["a", "b"]), (False, ["a"])])
def test_examples_beyond_the_positions_of_the_model_are_left_out(
    byte_bpe: Any, encoder_decoder: bool, kept: list[str]
) -> None:
    sizes = {"a": (4, 4), "b": (9, 8), "c": (9, 20), "d": (20, 4)}
    cases = [Document(name, (("é" * source, "é" * target),)) for name, (source, target) in sizes.items()]
    maker = maker_for(byte_bpe, encoder_decoder=encoder_decoder, positions=10)  # an "é" is a token
    found, skipped = maker.examples(cases, 1, Random(0))
    assert [example.name for example in found] == kept
    assert skipped["long"] == 4 - len(kept)


def test_a_prompt_states_the_limit_of_the_end_of_training(byte_bpe: Any) -> None:
    cases = [Document(str(n), (("Hi.", "x" * 30),)) for n in range(200)]
    shift = ShiftSection(start=0.1, end=8, maximum=20)
    template = PromptControl("{text} at most {target} {unit}")
    found, _ = maker_for(byte_bpe, controls=[template], shift=shift).examples(cases, 1, Random(0))
    prompts = [byte_bpe.decode(example.source) for example in found]
    limits = [int(re.search(r"at most (\d+) characters", prompt)[1]) for prompt in prompts]  # type: ignore[index]
    uniform, most = torch.tensor([example.uniform for example in found]), torch.full((200,), 20)
    assert limits == (30 + shifts(uniform, 1.0, 0.1, 8, most)).tolist()
    assert min(limits) == 30
    assert max(limits) > 40


def test_only_targets_of_usual_length_are_trained_without_a_length(byte_bpe: Any) -> None:
    cases = [Document(str(n), (("Hi you.", "x" * 7),), usual=n < 100) for n in range(200)]
    control = PromptControl("[{percent}%] {text}", plain_share=0.5)
    found, _ = maker_for(byte_bpe, controls=[control]).examples(cases, 1, Random(0))
    plain = [int(one.name) for one in found if byte_bpe.decode(one.source) == "Hi you."]
    assert 30 < len(plain) < 70
    assert max(plain) < 100
    assert len([one for one in found if byte_bpe.decode(one.source) == "[100%] Hi you."]) == 200 - len(plain)


def test_a_target_that_was_cut_is_not_trained_without_a_length(byte_bpe: Any) -> None:
    text, control = "One is here. Two came, too. And three went.", PromptControl(plain_share=0.5)
    for cutting, finished in (
        (LengthsSection(kind="prefixes", anywhere=0.3), True),
        (LengthsSection(), False),
    ):
        cases = [Document(str(n), (("Say it.", text),), finished=finished) for n in range(200)]
        found, _ = maker_for(byte_bpe, controls=[control], cutting=cutting).examples(cases, 1, Random(0))
        plain = [one for one in found if byte_bpe.decode(one.source) == "Say it."]
        assert {(byte_bpe.decode(one.target), one.truncated) for one in plain} <= {(text, False)}
        assert bool(plain) == finished


def test_the_shift_of_a_limit_does_not_depend_on_the_share_without_a_length(byte_bpe: Any) -> None:
    cases = [Document(str(n), (("Hi.", "x" * 30),)) for n in range(200)]
    maker = maker_for(byte_bpe, controls=[PromptControl(plain_share=0.5)], shift=ShiftSection(share=1.0))
    found, _ = maker.examples(cases, 1, Random(0))
    asked = [one.uniform for one in found if byte_bpe.decode(one.source) != "Hi."]
    assert 70 < len(asked) < 130
    assert 0.35 < sum(one < 0.5 for one in asked) / len(asked) < 0.65


def test_targets_of_some_lengths_are_left_out(byte_bpe: Any) -> None:
    cases = [Document(str(n), (("Hi.", "x" * n),)) for n in (29, 30, 31, 50)]
    maker = maker_for(byte_bpe, "chars", cutting=LengthsSection(without=[30, 50]))
    found, skipped = maker.examples(cases, 1, Random(0))
    assert [example.length for example in found] == [29, 31]
    assert skipped["excluded"] == 2


def test_each_example_draws_its_unit(byte_bpe: Any) -> None:
    units = ("tokens", "words", "chars")
    found, _ = maker_for(byte_bpe, *units).examples(documents(40), 1, Random(0))
    assert {e.unit for e in found} == {0, 1, 2}
    for example in found:
        alone = maker_for(byte_bpe, units[example.unit])
        assert example.counts == running_counts(alone.meters[0], [example.target])[0]


def test_a_text_ends_at_one_of_its_sentences(byte_bpe: Any) -> None:
    text = "One is here. Two came, too. And three went."
    maker = maker_for(byte_bpe, cutting=LengthsSection(kind="prefixes"))
    found = maker.examples([Document(str(n), (("Say it.", text),)) for n in range(60)], 1, Random(0))[0]
    texts = Counter(byte_bpe.decode(e.target) for e in found)
    assert sorted(texts) == ["One is here.", "One is here. Two came, too.", text]
    assert texts["One is here."] > 1.5 * texts[text] > 10


def test_a_truncated_text_has_a_loss_only_at_its_end(byte_bpe: Any) -> None:
    text = "One is here. Two came, too. And three went."
    cases = [Document(str(n), (("Say it.", text),)) for n in range(80)]
    cutting = LengthsSection(kind="prefixes", anywhere=0.5)
    maker = maker_for(byte_bpe, cutting=cutting, shift=ShiftSection(share=0.5))
    found = maker.examples(cases, 1, Random(0))[0]
    truncated = [example for example in found if example.truncated]
    assert 25 < len(truncated) < 55
    assert {example.max_shift for example in truncated} == {0}
    texts = {byte_bpe.decode(example.target) for example in truncated}
    assert len(texts) > 12
    assert all(text.startswith(part) for part in texts)
    layout = replace(layout_for(tiny("llama", byte_bpe)), last=2, before=0.5)
    batch = collate(truncated, layout)
    assert batch.labels.tolist() == [layout.end] * len(truncated)
    assert len(collate(found, layout).labels) > 2 * (len(found) - len(truncated)) + len(truncated)
    with pytest.raises(ValueError, match="anywhere needs kind: prefixes"):
        LengthsSection(anywhere=0.1)


def test_only_limits_are_shifted(byte_bpe: Any) -> None:
    text = "One is here. Two came, too. And three went."
    shift = ShiftSection(share=0.5, maximum=100, cut=0.25)
    maker = maker_for(byte_bpe, cutting=LengthsSection(kind="prefixes"), shift=shift)
    found = maker.examples([Document(str(n), (("Say it.", text),)) for n in range(60)], 1, Random(0))[0]
    assert {e.max_shift for e in found if not e.at_most} == {0}
    assert {(e.length, e.max_shift) for e in found if e.at_most} == {(12, 3), (27, 6), (43, 100)}
    batch = collate(found, Layout(10_000, 8, False, 0, 2, signal=True))
    moved = batch.shifted(shifts(batch.uniform, 1.0, 0.1, 2048, batch.max_shift)).inputs
    grown = moved["decoder_length"] - batch.inputs["decoder_length"]
    assert bool((grown[~moved["decoder_at_most"]] == 0).all())
    assert bool((grown <= batch.max_shift).all())
    assert int(grown.max()) > 6


def test_documents_are_cut_as_the_recipe_says(byte_bpe: Any) -> None:
    def names(**cutting: Any) -> list[str]:
        maker = maker_for(byte_bpe, cutting=LengthsSection(**cutting), max_tokens=10_000)
        return [e.name for e in maker.examples(documents(4), 1, Random(0))[0]]

    assert len(names(kind="sentences")) == 1 + 2 + 3 + 4
    assert len(names(kind="documents", maximum=5000)) == 4
    assert len(names(kind="dynamic", maximum=512, gamma=50)) == 10  # cold: every sentence alone
    assert len(names(kind="dynamic", maximum=5000, gamma=-50)) < 10
    assert len(names(kind="resolutions", maximum=5000)) == 1 + 3 + 5 + 7  # of 3: all, 1 + 2, each of the two


def test_spelling() -> None:
    tokenizer = train_tokenizer([sentence(Random(n)) for n in range(200)], 300)
    vocabulary = tokenizer.get_vocab()
    ids = spell("The cat.<sep>A dé\n", vocabulary)
    assert tokenizer.decode(ids, skip_special_tokens=True) == "The cat. A dé\n"
    assert running_counts(Meter(tokenizer, "chars"), [ids])[0][-1] == len("The cat. A dé\n")
    assert len(spell("cat", vocabulary)) == 3
