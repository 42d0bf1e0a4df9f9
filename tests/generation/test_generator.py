"""Texts and budgets in, texts that fit out: on tiny random models, and once on the real one."""

import copy
import threading

import pytest
import torch

from families import tiny
from lengthwise import EncodingControl, LengthTokens, PromptControl, Writer, attach
from lengthwise.endpoints.writer import EndpointText
from lengthwise.generation.endings import Draft, best_ending
from lengthwise.generation.generator import Written
from lengthwise.length.budget import Budget, at_most
from lengthwise.shortening.records import Shortened
from lengthwise.translation.records import Translation

BUDGETS = ["at most 60 chars", "exactly 9 words", "12-20 tokens", "at most 40 bytes"]
TEXTS = ["Tell me about the dog.", "A longer question: where is the fox, and why?", "x", "Où est-il ?"]


@pytest.fixture(scope="module")
def writer(byte_bpe):
    return Writer(tiny("llama", byte_bpe), byte_bpe, name="tiny")


def test_every_budget_of_a_mixed_batch_is_kept_in_order(writer):
    written = writer.write(TEXTS, BUDGETS)
    assert [w.budget for w in written] == BUDGETS
    assert all(w.fits and w.error is None and w.model == "tiny" for w in written)


@pytest.mark.parametrize("how", [{}, {"num_beams": 2}, {"temperature": 1.2, "seed": 5}])
def test_units_share_a_batch(writer, how):
    """Rows of several units are decoded together, and each has the text that it has alone."""
    budgets = ["at most 60 chars", "exactly 8 words", "12-20 tokens", "at most 40 bytes"]
    batches = []
    decode = writer.decoder.drafts
    writer.decoder.drafts = lambda requests, *a, **b: batches.append(len(requests)) or decode(requests, *a, **b)
    try:
        together = writer.write(["The dog."] * 4, budgets, **how)
    finally:
        del writer.decoder.drafts
    assert batches[0] == 4
    assert [one.unit for one in together] == ["chars", "words", "tokens", "bytes"]
    assert all(one.fits for one in together)
    if "seed" not in how:  # a row's seed depends on its place
        assert [one.text for one in together] == [writer.write("The dog.", one, **how)[0].text for one in budgets]


def test_a_limit_that_no_tensor_holds(byte_bpe):
    told = Writer(attach(tiny("llama", byte_bpe), EncodingControl(unit="chars"), byte_bpe), byte_bpe)
    for how in ({}, {"num_beams": 2}, {"candidates": 2}):
        [written] = told.write("The dog.", f"at most {'9' * 20} chars", **how)
        assert (written.fits, written.error) == (True, None)
    assert list(told.stream("The dog.", f"at most {'9' * 20} chars"))


def test_what_is_no_budget_is_told(writer):
    for budget in (5, None, b"at most 9 words"):
        with pytest.raises(TypeError, match=f"a text such as 'at most 75 chars', or a Budget; got {budget!r}"):
            writer.write("The dog.", budget)


def test_one_bad_row_costs_that_row_only(writer):
    texts = ["fine", "   ", "fine", "word " * 4000, "fine", "half \ud800 pair"]
    budgets = ["at most 9 words", "at most 9 words", "0 words", "at most 9 words", "exactly 90000 words", "3-5 words"]
    written = writer.write(texts, budgets)
    assert [bool(w.error) for w in written] == [False, True, True, True, True, True]
    assert written[0].fits
    assert "empty" in written[1].error
    assert "0" in written[2].error
    assert "too long" in written[3].error
    assert "impossible" in written[4].error
    assert not any(w.fits for w in written[1:])


@pytest.mark.parametrize(
    ("kind", "budget", "asked", "unit"),
    [
        (Written, "short", "short", ""),
        (EndpointText, at_most(5, "words"), "at most 5 words", "words"),
        (Translation, None, "", ""),
        (Shortened, "1.0x", "1.0x", ""),
    ],
)
def test_the_record_of_a_text_that_failed(kind, budget, asked, unit):
    failed = kind.failed("too long", budget, "toy")
    assert (type(failed), failed.error, failed.model) == (kind, "too long", "toy")
    assert (failed.budget, failed.unit) == (asked, unit)
    assert (failed.text, failed.length, failed.tokens, failed.fits, failed.complete) == ("", 0, 0, False, False)


def test_beams_in_the_models_own_settings_are_not_taken_over(byte_bpe):
    """A translator's generation_config may say 5 beams; the caller says what is searched."""
    model = tiny("llama", byte_bpe)
    model.generation_config.num_beams = 3
    assert Writer(model, byte_bpe).write("A dog.", "at most 30 chars")[0].fits


def test_a_row_alone_and_in_a_batch(writer):
    together = writer.write(TEXTS, "at most 50 chars")
    alone = [writer.write(text, "at most 50 chars")[0] for text in TEXTS]
    assert [w.text for w in together] == [w.text for w in alone]


@pytest.mark.parametrize("family", ["marian", "bart", "m2m100", "t5"])
@pytest.mark.parametrize("search", [{}, {"num_beams": 3}])
def test_a_translation_alone_and_in_a_batch(sp_unigram, family, search):
    model = tiny(family, sp_unigram)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3)  # so that a tiny model minds what it reads, and where
    writer = Writer(model, sp_unigram)
    together = writer.write(TEXTS, "at most 60 chars", **search)
    alone = [writer.write(text, "at most 60 chars", **search)[0] for text in TEXTS]
    assert [w.text for w in together] == [w.text for w in alone]
    assert len({w.text for w in alone}) > 1


def test_candidates_are_ranked_and_the_best_comes_first(writer):
    [best] = writer.write("A dog.", "30-40 chars", candidates=5, seed=3)
    budget = Budget.parse("30-40 chars")
    assert len(best.candidates) == 4
    ranks = [(w.fits, w.complete, -budget.distance(w.length)) for w in (best, *best.candidates)]
    assert ranks == sorted(ranks, reverse=True)


def test_the_same_seed_writes_the_same_text_and_leaves_the_callers_random_state_alone(writer):
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    first = writer.write(TEXTS, "at most 60 chars", temperature=1.0, seed=1)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert first == writer.write(TEXTS, "at most 60 chars", temperature=1.0, seed=1)
    assert first != writer.write(TEXTS, "at most 60 chars", temperature=1.0, seed=2)


def test_a_row_draws_its_own_numbers(writer):
    """The same seed writes the same text, whatever else is in the batch."""
    [alone] = writer.write("A dog.", "at most 60 chars", temperature=1.0, seed=1)
    together = writer.write(["A dog.", *TEXTS], "at most 60 chars", temperature=1.0, seed=1)
    assert together[0].text == alone.text


def test_a_tokenizer_without_a_padding_token(byte_bpe):
    tokenizer = copy.deepcopy(byte_bpe)
    model = tiny("gpt2", tokenizer)
    tokenizer.pad_token = None
    assert all(w.fits for w in Writer(model, tokenizer).write(TEXTS, "at most 30 chars"))


def test_a_model_that_cannot_end_is_refused(byte_bpe):
    tokenizer, model = copy.deepcopy(byte_bpe), tiny("llama", byte_bpe)
    tokenizer.eos_token = model.generation_config.eos_token_id = None
    with pytest.raises(ValueError, match="end-of-text"):
        Writer(model, tokenizer)


@pytest.mark.parametrize("family", ["m2m100", "bart"])
@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"temperature": 1.0}])
def test_a_forced_language_token_is_no_text(sp_unigram, family, search):
    model = tiny(family, sp_unigram)
    model.generation_config.forced_bos_token_id = 1
    for written in Writer(model, sp_unigram).write(TEXTS, "exactly 6 tokens", seed=0, **search):
        assert (written.length, written.fits, bool(written.text)) == (6, True, True)


def test_rows_without_a_maximum_beside_rows_with_one(writer):
    written = writer.write(TEXTS, ["at least 5 words", "at most 5 words", "at least 9 words", "exactly 4 words"])
    assert all(w.fits for w in written)
    assert not any("<" in w.text for w in written)  # no special token


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_each_row_keeps_to_its_own_window(byte_bpe, family):
    model = tiny(family, byte_bpe)
    written = Writer(model, byte_bpe).write(["word " * 30, "x"], "at most 500 chars")
    prompt = len(byte_bpe("word " * 30)["input_ids"])
    assert all(w.fits for w in written)
    assert written[0].tokens + prompt <= model.config.max_position_embeddings


@pytest.mark.parametrize("unit", ["tokens", "bytes", "chars", "graphemes", "words", "cells", "chars-nospace"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_budgets_give_something_whole(writer, unit, n):
    for seed in range(8):
        [written] = writer.write("A dog.", f"exactly {n} {unit}", temperature=1.5, top_p=1.0, seed=seed)
        assert written.fits, written
        assert written.text
        assert "\ufffd" not in written.text


@pytest.mark.parametrize("option", ["max_new_tokens", "logits_processor", "num_return_sequences"])
def test_options_that_the_budget_sets_are_refused(writer, option):
    with pytest.raises(ValueError, match=option):
        writer.write("A dog.", "at most 5 words", **{option: 3})


@pytest.mark.parametrize("search", [{"num_beams": 3}, {"num_beams": 3, "candidates": 3}, {"temperature": 0.9}])
def test_every_search(writer, search):
    assert all(w.fits for w in writer.write(TEXTS, "exactly 30 chars", seed=0, **search))


@pytest.mark.parametrize("budget", ["at most 80 chars", "20-60 tokens", "exactly 8 words"])
def test_a_stream_is_the_text(writer, budget):
    [written] = writer.write("A dog.", budget)
    assert "".join(writer.stream("A dog.", budget)) == written.text


@pytest.mark.parametrize("seed", range(6))
def test_a_drawn_stream_is_the_text(writer, seed):
    drawn = {"temperature": 1.3, "top_p": 1.0, "seed": seed}
    [written] = writer.write("A dog.", "at most 200 chars", **drawn)
    assert "".join(writer.stream("A dog.", "at most 200 chars", **drawn)) == written.text


def test_an_abandoned_stream_stops_writing(byte_bpe):
    model = tiny("llama", byte_bpe)
    writer = Writer(model, byte_bpe)
    parts = writer.stream("A dog.", "at most 400 chars", temperature=1.5, seed=0)
    next(parts)
    parts.close()
    assert threading.active_count() == 1 or not any(t.daemon and "work" in t.name for t in threading.enumerate())


def test_a_stream_raises_what_is_wrong_with_the_row(writer):
    with pytest.raises(ValueError, match="empty"):
        list(writer.stream(" ", "at most 5 words"))


def test_an_encoder_decoder_writes_and_its_source_is_the_measure(sp_unigram):
    writer = Writer(tiny("marian", sp_unigram), sp_unigram)
    [written] = writer.write("The quick brown fox jumps.", "at most 1.0x")
    assert written.budget == "at most 26 chars"
    assert written.fits


@pytest.mark.parametrize(
    "controls", [[EncodingControl(unit="chars")], [PromptControl()], [LengthTokens(), EncodingControl(unit="words")]]
)
@pytest.mark.parametrize("search", [{}, {"num_beams": 2}])
def test_attached_controls_are_told(byte_bpe, controls, search):
    tokenizer = copy.deepcopy(byte_bpe)  # attach adds length tokens to it
    writer = Writer(attach(tiny("llama", tokenizer), controls, tokenizer), tokenizer)
    written = writer.write(TEXTS, ["at most 40 chars", "exactly 9 chars", "at most 5 words", "12-20 tokens"], **search)
    assert all(w.fits for w in written)


@pytest.mark.parametrize(
    ("budgets", "options", "message"),
    [
        (["at most 5 words"] * 2, {}, "one budget for all"),
        ("at most 5 words", {"candidates": 0}, "at least 1"),
        ("at most 5 words", {"candidates": 2, "temperature": 0}, "temperature"),
    ],
)
def test_bad_calls(writer, budgets, options, message):
    with pytest.raises(ValueError, match=message):
        writer.write(TEXTS, budgets, **options)


# ---- endings


def end(text, budget, *, agreement=None, end_ratio=0.0):
    """What `best_ending` makes of a text written a character at a time."""
    draft = Draft(text, range(1, len(text) + 1), agreement or [1.0] * len(text), end_ratio, 0.0)
    chosen = best_ending(draft, Budget.parse(budget), lambda t, n: len(t.strip()))
    return chosen.text, chosen.fits, chosen.complete


def test_a_cut_sentence_falls_back_to_the_longest_finished_prefix():
    assert end("One is done. Two is done. Three is n", "at most 40 chars") == ("One is done. Two is done.", True, True)


def test_a_window_prefers_the_end_nearest_its_middle():
    assert end("One is done. Two is done. Three is n", "8-20 chars") == ("One is done.", True, True)


def test_no_finished_prefix_in_the_window_is_said_and_not_hidden():
    assert end("One is done. Two is not quite", "20-40 chars") == ("One is done. Two is not quite", True, False)


def test_a_forced_full_stop_is_no_end():
    text = "It is made of a."
    assert end(text, "exactly 16 chars", agreement=[1.0] * 15 + [0.001]) == (text, True, False)
    assert end(text, "exactly 16 chars", agreement=[1.0] * 15 + [0.3]) == (text, True, True)


def test_the_models_own_end_counts_without_a_full_stop():
    assert end("Paris", "at most 9 chars", end_ratio=0.9) == ("Paris", True, True)
    assert end("Paris", "at most 9 chars", end_ratio=0.001) == ("Paris", True, False)


# ---- the real model


@pytest.mark.real
def test_smollm2_as_shipped():
    from lengthwise import load

    writer = load("smollm2")
    [written] = writer.write("What is the capital of France?", at_most(12, "words"))
    assert (written.fits, written.complete) == (True, True)
    assert "Paris" in written.text


def test_the_unit_is_told_and_whether_it_is_a_limit(byte_bpe, monkeypatch):
    control = EncodingControl(unit=("tokens", "words", "chars"), at_most=True)
    model = attach(tiny("llama", byte_bpe), control, byte_bpe)
    heard = []
    generate = model.generate

    def listen(**options):
        heard.append({key: options[key].tolist()[:1] for key in told if key in options})
        return generate(**options)

    monkeypatch.setattr(model, "generate", listen)
    told = ["decoder_length", "decoder_unit", "decoder_at_most"]
    for budget, expected in (
        ("at most 20 chars", [20, 2, True]),
        ("exactly 5 words", [5, 1, False]),
        ("at most 20 chars, ideally 15", [15, 2, False]),
        ("at least 3 tokens", [3, 0, False]),
        ("at most 9 graphemes", None),
    ):
        Writer(model, byte_bpe).write("Hello", budget)
        assert heard.pop() == ({} if expected is None else {key: [n] for key, n in zip(told, expected, strict=True)})
