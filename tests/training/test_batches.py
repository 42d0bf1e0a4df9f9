"""From documents to batches: golden cuts and shifts, the model's own counts, Hugging Face's own losses."""

import json
from collections import Counter
from dataclasses import replace
from itertools import chain, islice, repeat
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from families import CONTROLS, tiny
from lengthwise.controls import EncodingControl, Signal
from lengthwise.controls.attach import attach
from lengthwise.corpora import Document
from lengthwise.length.meter import Meter
from lengthwise.training import dynamic_length_sampling as lengths
from lengthwise.training.batches import Batch, Layout, batches, collate, pack
from lengthwise.training.data_stream import Place, Stream, count_documents, settled
from lengthwise.training.dynamic_length_sampling import prefix
from lengthwise.training.examples import Example, ExampleMaker, running_counts, spell
from lengthwise.training.lora_merging import fold
from lengthwise.training.loss import response_logits, summed_loss
from lengthwise.training.max_new_tokens_pp import shifts, sigma, truncated_half_normal
from lengthwise.training.recipe import LengthsSection, ShiftSection, parse_recipe
from lengthwise.training.tokenizer import train_tokenizer
from toy_corpora import corpus, rows, sentence

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/train.json").read_text())


# ---- golden values


def test_sigma() -> None:
    for case in GOLDEN["sigma_t"]:
        asked = case["in"]
        found = sigma(asked["t"] / asked["T"], asked["sigma0"], asked["sigma_max"])
        assert found == pytest.approx(case["out"]["sigma"], rel=1e-8)


def test_truncated_half_normal() -> None:
    for case in GOLDEN["truncated_halfnormal_inverse_cdf"]:
        asked = case["in"]
        found = truncated_half_normal(
            torch.tensor([asked["u"]], dtype=torch.float64), asked["sigma"], asked["max_shift"]
        )
        assert found.item() == pytest.approx(case["out"], abs=1e-5)


def test_shifts_are_truncated_not_clipped() -> None:
    drawn = shifts(torch.rand(20_000, generator=torch.Generator().manual_seed(0)), 1.0, 0.1, 2048, 1024)
    assert drawn.dtype == torch.long
    assert int(drawn.min()) >= 0
    assert int(drawn.max()) <= 1024
    assert (drawn == 1024).float().mean() < 0.01
    assert int(shifts(torch.rand(1000), 0.0, 0.1, 2048, 1024).max()) == 0


def test_shifted_index() -> None:
    for case in GOLDEN["i_shift"]:
        asked = case["in"]
        size = asked["L"]  # the prompt's tokens and the response's
        position = torch.arange(size).unsqueeze(0)
        control = EncodingControl(unit="tokens", placement="whole", end_index=1)
        # In `whole` the last token of all reads 1: one more than what remains.
        signal = Signal(position, torch.tensor([size - 1 + asked["shift"]]), position, torch.ones(1, size).bool())
        assert control.index(signal)[0].tolist() == case["out"]


def test_length_probabilities() -> None:
    for case in GOLDEN["DLS_fig2"]:
        asked = case["in"]
        found = lengths.length_probabilities(asked["L"], lengths.temperature(asked["epoch"], asked["gamma"]))
        assert found.tolist() == pytest.approx(case["out"], abs=1e-9)


def test_mean_lengths() -> None:
    for case in GOLDEN["DLS_mean_length_L512"]:
        asked = case["in"]
        found = lengths.length_probabilities(asked["L"], lengths.temperature(asked["epoch_minus_gamma"], 0))
        mean = (found * torch.arange(1, asked["L"] + 1)).sum().item()
        assert mean == pytest.approx(case["out"]["mean sampled l"], abs=1e-3)
        assert found[256:].sum().item() == pytest.approx(case["out"]["P(l>256)"], abs=1e-7)


def test_long_lengths_do_not_underflow() -> None:
    trap = GOLDEN["DLS_naive_trap"]
    found = lengths.length_probabilities(1024, lengths.temperature(8, 0))
    # Its "l >= 710" counts from 0: these are the lengths from 711 on.
    assert found[710:].sum().item() == pytest.approx(trap["stable P(l>=710)"], abs=1e-6)


def test_drawn_lengths_follow_the_probabilities() -> None:
    drawn = torch.tensor(list(islice(lengths.drawn_lengths(8, 1.0, Random(0)), 20_000)))
    shares = torch.bincount(drawn, minlength=9)[1:] / len(drawn)
    assert shares.tolist() == pytest.approx(lengths.length_probabilities(8, 1.0).tolist(), abs=0.01)


def test_cuts() -> None:
    figure = GOLDEN["DLS_fig3"]
    sentences = figure["in"]["sentences"]
    found = lengths.cut(sentences, sentences, iter(figure["in"]["sampled"]))
    assert [list(segment) for segment in found] == figure["out"]["segments"]
    for case in GOLDEN["DLS_segment"]:
        asked = case["in"]
        found = lengths.cut(asked["src"], asked["tgt"], chain(asked["sampled"], repeat(1)))
        assert [list(segment) for segment in found] == case["out"]["<= (paper)"]


def test_resolutions() -> None:
    found = lengths.resolutions([1] * 4, [1] * 4, 100)
    assert [list(s) for s in found] == [[0, 1, 2, 3], [0, 1], [2, 3], [0], [1], [2], [3]]
    assert [list(s) for s in lengths.resolutions([9, 9, 9], [1, 1, 1], 18)] == [[0], [1, 2], [1], [2]]
    assert lengths.resolutions([99], [99], 5) == [range(1)]


# ---- examples


def maker_for(tokenizer: Any, *units: str, **options: Any) -> ExampleMaker:
    settings = {"controls": [], "encoder_decoder": False, "end": tokenizer.eos_token_id} | options
    return ExampleMaker(tokenizer=tokenizer, meters=[Meter(tokenizer, unit) for unit in units or ["chars"]], **settings)


def documents(count: int = 12, kind: str = "segs") -> list[Document]:
    return [Document(row["id"], tuple(map(tuple, row["segs"]))) for row in rows(count, kind)]


@pytest.mark.parametrize("unit", ["chars", "words", "bytes", "tokens"])
def test_counts_end_at_the_length(byte_bpe: Any, unit: str) -> None:
    found, skipped = maker_for(byte_bpe, unit).examples(documents(), 1, Random(0))
    assert len(found) == sum(len(d.segments) for d in documents())
    assert not skipped.empty
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
    assert skipped.long == 1


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
    assert prefix("no end at all", 0.5) == "no end at all"


def test_of_a_torn_text_the_end_alone_is_learnt(byte_bpe: Any) -> None:
    text = "One is here. Two came, too. And three went."
    cases = [Document(str(n), (("Say it.", text),)) for n in range(80)]
    cutting = LengthsSection(kind="prefixes", anywhere=0.5)
    maker = maker_for(byte_bpe, cutting=cutting, shift=ShiftSection(share=0.5))
    found = maker.examples(cases, 1, Random(0))[0]
    torn = [example for example in found if example.torn]
    assert 25 < len(torn) < 55
    assert {example.furthest for example in torn} == {0}
    texts = {byte_bpe.decode(example.target) for example in torn}
    assert len(texts) > 12
    assert all(text.startswith(part) for part in texts)
    layout = replace(layout_for(tiny("llama", byte_bpe)), last=2, before=0.5)
    batch = collate(torn, layout)
    assert batch.labels.tolist() == [layout.end] * len(torn)
    assert len(collate(found, layout).labels) > 2 * (len(found) - len(torn)) + len(torn)
    with pytest.raises(ValueError, match="anywhere is for prefixes"):
        LengthsSection(anywhere=0.1)


def test_only_limits_are_shifted(byte_bpe: Any) -> None:
    text = "One is here. Two came, too. And three went."
    shift = ShiftSection(share=0.5, maximum=100, cut=0.25)
    maker = maker_for(byte_bpe, cutting=LengthsSection(kind="prefixes"), shift=shift)
    found = maker.examples([Document(str(n), (("Say it.", text),)) for n in range(60)], 1, Random(0))[0]
    assert {e.furthest for e in found if not e.at_most} == {0}
    assert {(e.length, e.furthest) for e in found if e.at_most} == {(12, 3), (27, 6), (43, 100)}
    batch = collate(found, Layout(10_000, 8, False, 0, 2, signal=True))
    moved = batch.lengthened(shifts(batch.chance, 1.0, 0.1, 2048, batch.furthest)).inputs
    grown = moved["decoder_length"] - batch.inputs["decoder_length"]
    assert bool((grown[~moved["decoder_at_most"]] == 0).all())
    assert bool((grown <= batch.furthest).all())
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


def test_tokenizer_is_lossless() -> None:
    tokenizer = train_tokenizer([sentence(Random(n)) for n in range(200)], 300)
    for text in ("The cat sleeps.", "Größe, 10 €: 日本", "a  b"):
        ids = tokenizer(text)["input_ids"]
        assert ids[-1] == tokenizer.eos_token_id
        assert tokenizer.decode(ids, skip_special_tokens=True) == text


# ---- batches


def layout_for(model: Any, tokens: int = 256, multiple: int = 8, **options: Any) -> Layout:
    both = model.config.is_encoder_decoder
    first = model.config.decoder_start_token_id if both else None
    return Layout(tokens, multiple, both, model.config.pad_token_id, model.config.eos_token_id, first, **options)


def examples_for(model: Any, tokenizer: Any, *units: str, count: int = 12) -> list[Example]:
    attached = getattr(model, "length_control", None)
    controls = list(attached.controls) if attached is not None else []
    shift = ShiftSection(share=0.5) if len(units) > 1 else None
    maker = maker_for(tokenizer, *units, encoder_decoder=model.config.is_encoder_decoder, shift=shift)
    maker = replace(maker, controls=[c for c in controls if c.name == "encoding"])
    return maker.examples(documents(count), 1, Random(0))[0]


def test_batches_are_bounded_and_complete(byte_bpe: Any) -> None:
    model = tiny("llama", byte_bpe)
    examples = examples_for(model, byte_bpe, count=40)
    found = batches(examples, layout_for(model), Random(0))
    assert sorted(name for batch in found for name in batch.names) == sorted(e.name for e in examples)
    for batch in found:
        assert batch.padded == batch.inputs["input_ids"].numel()
        assert batch.padded <= 256 or len(batch.names) == 1
        assert batch.inputs["input_ids"].shape[1] % 8 == 0
    padding = 1 - sum(b.tokens for b in found) / sum(b.padded for b in found)
    assert padding < 0.25


def test_both_sides_of_an_encoder_decoder_are_of_like_length() -> None:
    random = Random(0)
    sizes = [(5 + int(60 * random.random()), 5 + int(120 * random.random())) for _ in range(4000)]
    examples = [
        Example(str(n), [7] * source, [7] * target, list(range(target + 1)), [0] * source)
        for n, (source, target) in enumerate(sizes)
    ]
    found = batches(examples, Layout(8192, 8, True, pad=0, end=1, first=0), Random(0))
    assert sum(len(batch.names) for batch in found) == len(examples)
    assert all(batch.padded <= 8192 for batch in found)
    assert 1 - sum(b.tokens for b in found) / sum(b.padded for b in found) < 0.15  # sorted by the source alone: 0.37


def hugging_face_loss(model: Any, examples: list[Example]) -> torch.Tensor:
    """The model's own loss, on rows padded and labelled in the usual way."""
    end, pad = model.config.eos_token_id, model.config.pad_token_id

    def filled(lists: list[list[int]], filler: int) -> torch.Tensor:
        width = max(map(len, lists))
        return torch.tensor([row + [filler] * (width - len(row)) for row in lists])

    if model.config.is_encoder_decoder:
        sources = [e.source for e in examples]
        labels = filled([[*e.target, end] for e in examples], -100)
    else:
        sources = [[*e.source, *e.target, end] for e in examples]
        labels = filled([[-100] * len(e.source) + [*e.target, end] for e in examples], -100)
    mask = filled([[1] * len(row) for row in sources], 0)
    return model(input_ids=filled(sources, pad), attention_mask=mask, labels=labels).loss


@pytest.mark.parametrize("family", ["llama", "qwen2", "gpt2", "marian", "bart", "m2m100", "t5"])
def test_loss_is_hugging_faces(family: str, byte_bpe: Any) -> None:
    model = tiny(family, byte_bpe)
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.normal_()  # added by the loss, not by the model
    examples = examples_for(model, byte_bpe)
    batch = collate(examples, layout_for(model))
    ours = summed_loss(response_logits(model, batch), batch.labels) / batch.responses
    assert ours.item() == pytest.approx(hugging_face_loss(model, examples).item(), abs=1e-5)


@pytest.mark.parametrize("family", ["llama", "gpt2", "marian", "bart"])
@pytest.mark.parametrize("control", ["difference", "ratio", "whole", "progress+tokens", "units"])
def test_positions_are_those_the_model_would_count(family: str, control: str, byte_bpe: Any) -> None:
    model = tiny(family, byte_bpe)
    attach(model, CONTROLS[control](), byte_bpe)
    examples = examples_for(model, byte_bpe, *model.length_control.units)
    batch = collate(examples, layout_for(model, signal=True, mask=not model.config.is_encoder_decoder))
    counted = response_logits(model, batch)
    del batch.inputs["decoder_position"]
    assert torch.allclose(counted, response_logits(model, batch), atol=1e-5)


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "gpt2"])
@pytest.mark.parametrize("control", ["difference", "ratio", "whole", "units", None])
def test_packed_is_unpacked(family: str, control: str | None, byte_bpe: Any) -> None:
    model = tiny(family, byte_bpe)
    units = ("chars",)
    if control:
        attach(model, CONTROLS[control](), byte_bpe)
        units = model.length_control.units
    examples = examples_for(model, byte_bpe, *units)
    plain = collate(examples, layout_for(model, signal=bool(control)))
    layout = layout_for(model, tokens=512, signal=bool(control), packing=128)
    packed = batches(examples, layout, Random(0))
    assert max(len(b.names) / len(b.inputs["input_ids"]) for b in packed) > 1.5
    expected = summed_loss(response_logits(model, plain), plain.labels).item()
    found = sum(summed_loss(response_logits(model, b), b.labels).item() for b in packed)
    assert found == pytest.approx(expected, rel=1e-5)
    assert sum(b.padded for b in packed) < plain.padded


def test_packed_shift(byte_bpe: Any) -> None:
    model = tiny("llama", byte_bpe)
    examples = examples_for(model, byte_bpe)[:3]
    batch = pack([examples], layout_for(model, signal=True, packing=160))
    moved = batch.lengthened(torch.full_like(batch.chance, 5).long())
    assert torch.equal(moved.packed["length"], batch.packed["length"] + 5)


@pytest.mark.parametrize("family", ["llama", "marian"])
def test_endings_are_learnt_in_full_and_the_rest_in_part(byte_bpe: Any, family: str) -> None:
    model = tiny(family, byte_bpe)
    examples = examples_for(model, byte_bpe, count=40)
    layout = layout_for(model, tokens=100_000)
    whole, part = collate(examples, layout), collate(examples, replace(layout, last=5, before=0.25))
    learnt = dict(zip(whole.rows.tolist(), whole.labels.tolist(), strict=True))
    kept = dict(zip(part.rows.tolist(), part.labels.tolist(), strict=True))
    assert kept.items() <= learnt.items()
    ends, at = set(), -1
    for example in examples:
        at += len(example.target) + 1
        ends |= set(whole.rows[max(at - 4, at - len(example.target)) : at + 1].tolist())
    assert ends <= set(kept)
    assert 0.15 < len(set(kept) - ends) / len(set(learnt) - ends) < 0.35
    assert part.responses == len(kept)


def test_muted_batch_teaches_nothing(byte_bpe: Any) -> None:
    model = tiny("llama", byte_bpe)
    batch = collate(examples_for(model, byte_bpe), layout_for(model)).muted()
    assert summed_loss(response_logits(model, batch), batch.labels).item() == 0
    assert batch.responses == 0


def test_folded_lora_is_lora(byte_bpe: Any) -> None:
    import peft

    model = tiny("llama", byte_bpe)
    config = peft.LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
    model = peft.get_peft_model(model, config)
    batch = collate(examples_for(model.get_base_model(), byte_bpe), layout_for(model.get_base_model()))

    def gradients() -> list[torch.Tensor]:
        model.zero_grad()
        summed_loss(response_logits(model, batch), batch.labels).backward()
        return [p.grad.clone() for p in model.parameters() if p.requires_grad]

    plain = gradients()
    assert fold(model) == 14
    for expected, found in zip(plain, gradients(), strict=True):
        assert torch.allclose(expected, found, atol=1e-4, rtol=1e-3)


# ---- the stream


def stream_for(path: Path, tokenizer: Any, workers: int = 0) -> Stream:
    values: dict[str, Any] = {"name": "s", "out": "unused", "model": {"base": "none"}, "train": {"epochs": 1}}
    values |= {"data": {"train": corpus(path, 60), "max_tokens": 256, "shuffle": 20}}
    values |= {"batch": {"pool": 16, "tokens": 512, "workers": workers}}
    recipe = parse_recipe(values)
    model = tiny("llama", tokenizer)
    maker = maker_for(tokenizer, max_tokens=256)
    return Stream(recipe, maker, layout_for(model, tokens=512), count_documents(recipe)[0])


def first_epoch(stream: Stream, place: Place) -> list[tuple[Batch, Place]]:
    found = []
    for batch, after in stream.from_(place):
        if after.epoch > 1:
            return found
        found.append((batch, after))
    raise AssertionError("a stream does not end")


def test_every_example_comes_once(tmp_path: Path, byte_bpe: Any) -> None:
    found = first_epoch(stream_for(tmp_path / "a.jsonl", byte_bpe), Place())
    names = [name for batch, _ in found for name in batch.names]
    assert len(names) == len(set(names)) == sum(len(row["segs"]) for row in rows(60))
    assert found[-1][1].share == 1.0


def test_stream_resumes_anywhere(tmp_path: Path, byte_bpe: Any) -> None:
    stream = stream_for(tmp_path / "a.jsonl", byte_bpe)
    whole = first_epoch(stream, Place())
    for number in (0, 3, len(whole) // 2, len(whole) - 2):
        rest = first_epoch(stream, whole[number][1])
        assert [b.names for b, _ in rest] == [b.names for b, _ in whole[number + 1 :]]
        assert [p for _, p in rest] == [p for _, p in whole[number + 1 :]]


def test_workers_change_nothing(tmp_path: Path, byte_bpe: Any) -> None:
    alone = first_epoch(stream_for(tmp_path / "a.jsonl", byte_bpe), Place())
    helped = first_epoch(stream_for(tmp_path / "a.jsonl", byte_bpe, workers=2), Place())
    assert [p for _, p in alone] == [p for _, p in helped]
    for (a, _), (b, _) in zip(alone, helped, strict=True):
        assert a.names == b.names
        assert torch.equal(a.inputs["input_ids"], b.inputs["input_ids"])
        assert torch.equal(a.rows, b.rows)


def test_epochs_differ(tmp_path: Path, byte_bpe: Any) -> None:
    stream = stream_for(tmp_path / "a.jsonl", byte_bpe)
    epochs: dict[int, list[str]] = {1: [], 2: []}
    for batch, place in stream.from_(Place()):
        if place.epoch > 2:
            break
        epochs[place.epoch] += batch.names
    assert sorted(epochs[1]) == sorted(epochs[2])
    assert epochs[1] != epochs[2]


def test_length_classes_of_equal_size_by_the_corpus(tmp_path: Path) -> None:
    pairs = [{"id": str(n), "source": "x" * 100, "target": "y" * (50 + n)} for n in range(90)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    recipe = parse_recipe(
        {
            "name": "quantiles",
            "out": str(tmp_path / "out"),
            "model": {"fresh": {}},
            "controls": [{"control": "tokens", "thresholds": "quantiles"}, {"control": "encoding"}],
            "data": {"train": str(tmp_path / "pairs.jsonl")},
            "train": {"epochs": 1},
        }
    )
    tokens, encoding = settled(recipe).build_controls()
    assert tokens.thresholds == pytest.approx((0.80, 1.09), abs=0.02)
    assert encoding.config() == recipe.build_controls()[1].config()
