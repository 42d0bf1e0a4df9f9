"""The hard budget holds whatever the model wants: here it wants noise."""

import pytest
import torch

from families import tiny
from lengthwise.constraint.mask import UNLIMITED, LengthBudgetLogitsProcessor
from lengthwise.length.budget import Budget
from lengthwise.length.meter import Meter
from lengthwise.length.units import UNITS, measure

KINDS = ["byte_bpe", "sp_unigram", "sp_bpe"]
BUDGETS = ["exactly 1 {}", "exactly 7 {}", "exactly 20 {}", "at most 5 {}", "at most 40 {}", "10-12 {}", "20-40 {}"]
COUNTED = [name for name in UNITS if name != "tweet"]  # a link can make a tweet longer all at once: see below


def limits(budgets: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    read = [Budget.parse(b) for b in budgets]
    return torch.tensor([b.low for b in read]), torch.tensor([UNLIMITED if b.high is None else b.high for b in read])


def write_noise(tokenizer, unit, budgets, *, seed=0, finish=True, steps=1500, favour=None):
    """What a model without any sense writes under `LengthBudgetLogitsProcessor`: the ids of each row, and whether each has ended."""
    generator = torch.Generator().manual_seed(seed)
    low, high = limits(budgets)
    eos = tokenizer.eos_token_id
    fit = LengthBudgetLogitsProcessor(
        Meter(tokenizer, unit), low, high, start=1, eos=[eos], finish=finish, limit=torch.full_like(low, steps)
    )
    ids = torch.full((len(budgets), 1), tokenizer.bos_token_id)
    for _ in range(steps):
        scores = 3 * torch.randn(len(budgets), len(tokenizer), generator=generator)
        scores[:, eos] += 4.0
        if favour is not None:
            scores[:, favour] += 8.0
        kept = fit(ids, scores)
        assert not kept.isnan().any()
        token = torch.multinomial(kept.softmax(1), 1, generator=generator)
        ended = (ids == eos).any(1, keepdim=True)
        ids = torch.cat([ids, torch.where(ended, tokenizer.pad_token_id, token)], 1)
        if (ids == eos).any(1).all():
            break
    return ids[:, 1:], (ids == eos).any(1)


def text_and_length(tokenizer, unit, row):
    ids = [i for i in row.tolist() if i not in tokenizer.all_special_ids]
    text = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    return text, len(ids) if unit == "tokens" else measure(text, unit)


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("unit", COUNTED)
@pytest.mark.parametrize("kind", KINDS)
def test_noise_fits_every_budget_in_every_unit(request, kind, unit, finish):
    tokenizer = request.getfixturevalue(kind)
    budgets = [b.format(unit) for b in BUDGETS for _ in range(3)]
    ids, ended = write_noise(tokenizer, unit, budgets, finish=finish)
    assert ended.all()
    for row, budget in zip(ids, budgets, strict=True):
        text, length = text_and_length(tokenizer, unit, row)
        assert Budget.parse(budget).fits(length), (budget, length, text)
        assert "\ufffd" not in text  # no half character, at the end or elsewhere


@pytest.mark.parametrize("unit", ["chars", "graphemes", "bytes", "cells"])
def test_split_characters_and_marks_are_counted_as_they_come(byte_bpe, unit):
    """Bytes of emoji, Japanese and combining marks, thrown together."""
    pieces = {p: i for i, p in enumerate(Meter(byte_bpe, "bytes").pieces) if len(p) == 1}
    favour = [pieces[bytes([b])] for b in "猫é👍🏽e\u0301".encode()]
    budgets = [b.format(unit) for b in BUDGETS for _ in range(4)]
    ids, ended = write_noise(byte_bpe, unit, budgets, favour=favour)
    assert ended.all()
    fitting = 0
    for row, budget in zip(ids, budgets, strict=True):
        _, length = text_and_length(byte_bpe, unit, row)
        assert length <= (Budget.parse(budget).high or UNLIMITED)  # the maximum holds always
        fitting += Budget.parse(budget).fits(length)
    assert fitting / len(budgets) > 0.9  # a mark that merges at the very end may leave a text one short


def test_an_end_before_the_minimum_is_impossible_however_much_it_is_wanted(byte_bpe):
    ids, _ = write_noise(byte_bpe, "words", ["at least 20 words"] * 4, favour=byte_bpe.eos_token_id, steps=600)
    assert all(text_and_length(byte_bpe, "words", row)[1] >= 20 for row in ids)


def test_finish_ends_on_a_full_stop(byte_bpe):
    for budget in ["exactly 60 chars", "exactly 30 graphemes", "exactly 20 tokens"]:
        unit = Budget.parse(budget).unit
        ids, _ = write_noise(byte_bpe, unit, [budget] * 8)
        for row in ids:
            text, _ = text_and_length(byte_bpe, unit, row)
            assert text.rstrip("'\"”’)»]")[-1] in ".!?…", text


def test_rows_are_independent(byte_bpe):
    """A row in a batch is masked as it is alone."""
    meter = Meter(byte_bpe, "chars")
    low, high = limits(["exactly 9 chars", "at most 40 chars", "3-5 chars"])
    ids = torch.tensor([byte_bpe("The quick brown dog.")["input_ids"][:5]] * 3)
    scores = torch.randn(3, len(byte_bpe), generator=torch.Generator().manual_seed(1))
    together = LengthBudgetLogitsProcessor(meter, low, high, start=0, eos=[2])(ids, scores)
    for n in range(3):
        alone = LengthBudgetLogitsProcessor(meter, low[n : n + 1], high[n : n + 1], start=0, eos=[2])(
            ids[n : n + 1], scores[n : n + 1]
        )
        torch.testing.assert_close(together[n : n + 1], alone)


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("unit", ["tokens", "chars", "words", "bytes"])
def test_a_row_that_is_hard_pressed_leaves_the_others_alone(byte_bpe, unit, finish):
    """Ample room, hardly any, none, few tokens left, inside a character, after a full stop: together and each alone."""
    meter = Meter(byte_bpe, unit)
    byte = {piece: i for i, piece in enumerate(meter.pieces) if len(piece) == 1}
    plain = byte_bpe("The quick brown dog and others")["input_ids"][:6]
    rows = [plain, plain, plain, plain, [*plain[:4], byte[b"\xf0"], byte[b"\x9f"]], [*plain[:5], byte[b"."]], [0] * 6]
    many = ["at most 5000 {}", "at least 40 {}", "at most 9 {}", "at least 90 {}", "at least 1 {}", "4-30 {}", "4-9 {}"]
    low, high = limits([budget.format(unit) for budget in many])
    limit = torch.tensor([900, 900, 900, 40, 10, 900, 900])
    ids = torch.tensor(rows)
    scores = torch.randn(len(rows), len(byte_bpe), generator=torch.Generator().manual_seed(1))

    def kept(which):
        fit = LengthBudgetLogitsProcessor(
            meter, low[which], high[which], start=0, eos=[2], limit=limit[which], finish=finish
        )
        return fit(ids[which], scores[which])

    together = kept(slice(None))
    for n in range(len(rows)):
        assert torch.equal(together[n : n + 1], kept(slice(n, n + 1))), n


@pytest.mark.parametrize("unit", UNITS)
def test_rows_carried_on_are_masked_as_rows_read_afresh(byte_bpe, unit):
    generator = torch.Generator().manual_seed(2)
    low, high = limits([budget.format(unit) for budget in BUDGETS])
    meter, where = Meter(byte_bpe, unit), {"start": 0, "eos": [2], "limit": torch.full_like(low, 60)}
    carried = LengthBudgetLogitsProcessor(meter, low, high, observe=True, **where)
    byte = {piece: i for i, piece in enumerate(meter.pieces) if len(piece) == 1}
    favour = [byte[bytes([b])] for b in "  ..comé👍".encode()]  # links, marks and characters in pieces come up
    ids = torch.zeros((len(low), 0), dtype=torch.long)
    for _ in range(60):
        scores = 3 * torch.randn(len(low), len(byte_bpe), generator=generator)
        scores[:, favour] += 5.0
        kept = carried(ids, scores)
        assert torch.equal(kept, LengthBudgetLogitsProcessor(meter, low, high, **where)(ids, scores))
        ids = torch.cat([ids, torch.multinomial(kept.softmax(1), 1, generator=generator)], 1)


def test_a_favourite_that_is_never_allowed_takes_the_freedom_of_what_is_taken_instead(byte_bpe):
    low, high = limits(["at most 5000 chars"] * 2)
    fit = LengthBudgetLogitsProcessor(Meter(byte_bpe, "chars"), low, high, start=0, eos=[2], observe=True)
    ids = torch.tensor([byte_bpe("The quick")["input_ids"]] * 2)
    scores = torch.zeros(2, len(byte_bpe))
    scores[0, 0] = 3.0  # the padding
    word = byte_bpe(" brown")["input_ids"][0]
    scores[:, word] = 1.0
    kept = fit(ids, scores)
    assert kept.argmax(1).tolist() == [word, word]
    assert kept[:, 0].eq(-torch.inf).all()
    torch.testing.assert_close(fit.notes(torch.tensor([word, word])).freedom[:, 0], torch.tensor([-2.0, 0.0]).exp())


def test_every_end_waits_for_the_minimum_and_comes_back_behind_it(byte_bpe):
    """Two ids end a text here; one is a token of its own right, and is banned like the other before its time."""
    full_stop, colon = (byte_bpe(mark)["input_ids"][0] for mark in ".:")
    ids = torch.tensor([[*byte_bpe("The quick brown dog")["input_ids"][:4], full_stop]] * 2)
    low, high = limits(["at least 4000 chars", "2-5000 chars"])
    fit = LengthBudgetLogitsProcessor(Meter(byte_bpe, "chars"), low, high, start=0, eos=[2, colon])
    scores = torch.zeros(2, len(byte_bpe))
    kept = fit(ids, scores)[:, [2, colon]]
    assert kept[0].eq(-torch.inf).all()
    assert kept[1].eq(0).all()


def test_an_ample_room_changes_nothing_but_impossible_tokens(byte_bpe):
    meter = Meter(byte_bpe, "chars")
    low, high = limits(["at most 5000 chars"])
    ids = torch.tensor([byte_bpe("The quick")["input_ids"]])
    scores = torch.randn(1, len(byte_bpe), generator=torch.Generator().manual_seed(1))
    kept = LengthBudgetLogitsProcessor(meter, low, high, start=0, eos=[2])(ids, scores)
    same = kept == scores
    banned = {i for i in range(len(byte_bpe)) if not same[0, i]}
    control = {bytes([b]) for b in (*range(32), 127)}
    assert all(i in (0, 1, 2) or meter.utf8[0, i] < 0 or meter.pieces[i] in control for i in banned)


def test_logits_wider_than_the_tokenizer(byte_bpe):
    low, high = limits(["at most 3 chars"])
    fit = LengthBudgetLogitsProcessor(Meter(byte_bpe, "chars"), low, high, start=0, eos=[2])
    wide = torch.randn(1, len(byte_bpe) + 64)
    kept = fit(torch.zeros((1, 0), dtype=torch.long), wide)
    assert kept[0, len(byte_bpe) :].eq(-torch.inf).all()
    ample = LengthBudgetLogitsProcessor(Meter(byte_bpe, "chars"), low, 1000 * high, start=0, eos=[2])
    assert ample(torch.tensor([byte_bpe("The quick")["input_ids"]]), wide)[0, len(byte_bpe) :].eq(-torch.inf).all()


@pytest.mark.parametrize(
    "search",
    [{}, {"do_sample": True, "num_return_sequences": 3}, {"num_beams": 4}, {"num_beams": 4, "do_sample": True}],
)
@pytest.mark.parametrize("unit", ["tokens", "chars", "words", "bytes"])
def test_every_search_of_generate(byte_bpe, unit, search):
    torch.manual_seed(0)
    budgets = [f"exactly 25 {unit}", f"at most 9 {unit}", f"12-15 {unit}"]
    low, high = limits(budgets)
    prompts = byte_bpe(["A text.", "Another, longer text", "x"], padding=True, return_tensors="pt")
    start = prompts["input_ids"].shape[1]
    fit = LengthBudgetLogitsProcessor(
        Meter(byte_bpe, unit), low, high, start=start, eos=[2], limit=torch.full_like(low, 300)
    )
    search = {"do_sample": False} | search
    ids = tiny("llama", byte_bpe).generate(
        **prompts, logits_processor=[fit], max_new_tokens=300, eos_token_id=2, pad_token_id=0, **search
    )
    repeats = len(ids) // 3
    for n, row in enumerate(ids[:, start:]):
        text, length = text_and_length(byte_bpe, unit, row)
        assert Budget.parse(budgets[n // repeats]).fits(length), (budgets[n // repeats], length, text)
