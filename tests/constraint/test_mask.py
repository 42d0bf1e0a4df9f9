"""The hard budget holds whatever the model prefers: here its scores are noise."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from length_cases import KINDS, byte_words, limits, noise, text_and_length
from lengthwise.constraint.mask import UNLIMITED, LengthConstraint
from lengthwise.length.budget import Budget
from lengthwise.length.meter import Meter
from lengthwise.length.units import UNITS, measure

BUDGETS = ["exactly 1 {}", "exactly 7 {}", "exactly 20 {}", "at most 5 {}", "at most 40 {}", "10-12 {}", "20-40 {}"]
COUNTED = [name for name in UNITS if name != "tweet"]  # a link can make a tweet longer all at once: see below


def write_noise(tokenizer, unit, budgets, *, seed=0, finish=True, steps=1500, favour=()):
    """Return the ids that noise writes under a constraint, (rows, time), and whether each row has ended."""
    generator = torch.Generator().manual_seed(seed)
    eos, many = tokenizer.eos_token_id, len(budgets)
    constraint = LengthConstraint(
        Meter(tokenizer, unit), **limits(budgets), eos=[eos], finish=finish, limit=[steps] * many
    )
    ids = torch.zeros((many, 0), dtype=torch.long)
    for _ in range(steps):
        kept = constraint.apply(noise(generator, many, len(tokenizer), favour, eos))
        assert not kept.isnan().any()
        ended = (ids == eos).any(1)
        token = torch.where(
            ended, tokenizer.pad_token_id, torch.multinomial(kept.softmax(1), 1, generator=generator)[:, 0]
        )
        ids = torch.cat([ids, token[:, None]], 1)
        if (ids == eos).any(1).all():
            break
        constraint.update(token)
    return ids, (ids == eos).any(1)


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
        assert "\ufffd" not in text  # no incomplete character, at the end or elsewhere


@pytest.mark.parametrize("unit", ["words", "words-cjk"])
@pytest.mark.parametrize("kind", KINDS)
def test_noise_reaches_a_minimum_with_hardly_more_tokens_than_words(request, kind, unit):
    """Among Han characters and letters such as é, which begin words in one unit and take them away in the other."""
    tokenizer = request.getfixturevalue(kind)
    favour = [n for n, text in enumerate(Meter(tokenizer, unit).vocabulary.texts) if not text.isascii()]
    budgets = [f"exactly 30 {unit}"] * 8
    for seed in range(4):
        ids, _ = write_noise(tokenizer, unit, budgets, seed=seed, steps=36, favour=favour)
        assert [text_and_length(tokenizer, unit, row)[1] for row in ids] == [30] * 8


@pytest.mark.parametrize("unit", ["chars", "graphemes", "bytes", "cells"])
def test_split_characters_and_marks_are_counted_as_they_come(byte_bpe, unit):
    """Bytes of emoji, Japanese and combining marks, in random order."""
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


def test_no_end_before_the_minimum_however_likely(byte_bpe):
    ids, _ = write_noise(byte_bpe, "words", ["at least 20 words"] * 4, favour=[byte_bpe.eos_token_id], steps=600)
    assert all(text_and_length(byte_bpe, "words", row)[1] >= 20 for row in ids)


def test_finish_ends_on_a_full_stop(byte_bpe):
    for budget in ["exactly 60 chars", "exactly 30 graphemes", "exactly 20 tokens"]:
        unit = Budget.parse(budget).unit
        ids, _ = write_noise(byte_bpe, unit, [budget] * 8)
        for row in ids:
            text, _ = text_and_length(byte_bpe, unit, row)
            assert text.rstrip("'\"”’)»]")[-1] in ".!?…", text


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("unit", ["tokens", "chars", "words", "bytes"])
def test_rows_are_independent(byte_bpe, unit, finish):
    """Ample room, hardly any, none, few tokens left, inside a character, after a full stop: together and each alone."""
    meter = Meter(byte_bpe, unit)
    byte = {piece: i for i, piece in enumerate(meter.pieces) if len(piece) == 1}
    plain = byte_bpe("The quick brown dog and others")["input_ids"][:6]
    rows = [plain, plain, plain, plain, [*plain[:4], byte[b"\xf0"], byte[b"\x9f"]], [*plain[:5], byte[b"."]], [0] * 6]
    many = ["at most 5000 {}", "at least 40 {}", "at most 9 {}", "at least 90 {}", "at least 1 {}", "4-30 {}", "4-9 {}"]
    limit = [900, 900, 900, 40, 10, 900, 900]
    scores = torch.randn(len(rows), len(byte_bpe), generator=torch.Generator().manual_seed(1))

    def kept(which):
        budgets = limits([budget.format(unit) for budget in many[which]])
        constraint = LengthConstraint(meter, **budgets, eos=[2], limit=limit[which], finish=finish, written=rows[which])
        return constraint.apply(scores[which])

    together = kept(slice(None))
    for n in range(len(rows)):
        assert torch.equal(together[n : n + 1], kept(slice(n, n + 1))), n


@pytest.mark.parametrize("unit", UNITS)
def test_rows_that_are_updated_are_masked_as_rows_that_are_read_whole(byte_bpe, unit):
    """And torch tensors as numpy arrays; neither is changed."""
    generator = torch.Generator().manual_seed(2)
    budgets = [budget.format(unit) for budget in BUDGETS]
    meter, options = Meter(byte_bpe, unit), limits(budgets) | {"eos": [2], "limit": [60] * len(BUDGETS)}
    updated = LengthConstraint(meter, **options)
    byte = {piece: i for i, piece in enumerate(meter.pieces) if len(piece) == 1}
    favour = [byte[bytes([b])] for b in "  ..comé👍".encode()]  # links, marks and split characters come up
    ids = torch.zeros((len(BUDGETS), 0), dtype=torch.long)
    for _ in range(60):
        scores = 3 * torch.randn(len(ids), len(byte_bpe), generator=generator)
        scores[:, favour] += 5.0
        before = scores.clone()
        kept = updated.apply(scores)
        whole = LengthConstraint(meter, **options, written=ids.tolist())
        assert torch.equal(kept, whole.apply(scores))
        assert np.array_equal(kept.numpy(), whole.apply(scores.numpy()))
        assert torch.equal(scores, before)
        token = torch.multinomial(kept.softmax(1), 1, generator=generator)
        ids = torch.cat([ids, token], 1)
        updated.update(token[:, 0])


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("unit", ["tokens", "words", "chars", "graphemes", "bytes"])
def test_texts_that_are_continued_fit(byte_bpe, unit, finish):
    generator = torch.Generator().manual_seed(0)
    begun = [byte_bpe(text)["input_ids"] for text in ("The dog", "", "Über 👍🏽 it", "It is. The fox is")] * 2
    begun.append(begun[0])  # this one may have nine tokens more
    asked = [*["exactly 40 {}", "at most 25 {}", "30-33 {}", "exactly 27 {}"] * 2, "at most 300 {}"]
    budgets = [budget.format(unit) for budget in asked]
    limit = [len(row) + more for row, more in zip(begun, [400] * 8 + [9], strict=True)]
    constraint = LengthConstraint(
        Meter(byte_bpe, unit), **limits(budgets), eos=[2], limit=limit, finish=finish, written=begun
    )
    rows = [list(row) for row in begun]
    while not all(2 in row for row in rows):
        kept = constraint.apply(noise(generator, len(rows), len(byte_bpe)))
        token = torch.multinomial(kept.softmax(1), 1, generator=generator)[:, 0]
        rows = [[*row, 0 if 2 in row else new] for row, new in zip(rows, token.tolist(), strict=True)]
        constraint.update(np.array([row[-1] for row in rows]))
    for row, budget in zip(rows, budgets, strict=True):
        text = byte_bpe.decode(row[: row.index(2)], clean_up_tokenization_spaces=False)
        assert Budget.parse(budget).fits(row.index(2) if unit == "tokens" else measure(text, unit)), (budget, text)


def test_the_likeliest_token_is_banned_where_it_can_never_be_part_of_a_text(byte_bpe):
    constraint = LengthConstraint(
        Meter(byte_bpe, "chars"), [0, 0], [5000, 5000], eos=[2], written=[byte_bpe("The quick")["input_ids"]] * 2
    )
    scores = torch.zeros(2, len(byte_bpe))
    scores[0, 0] = 3.0  # the padding
    word = byte_bpe(" brown")["input_ids"][0]
    scores[:, word] = 1.0
    kept = constraint.apply(scores)
    assert kept.argmax(1).tolist() == [word, word]
    assert kept[:, 0].eq(-torch.inf).all()


def test_every_end_waits_for_the_minimum_and_is_allowed_after_it(byte_bpe):
    """Two ids end a text here; one is an ordinary token otherwise, and is banned like the other before the minimum."""
    full_stop, colon = (byte_bpe(mark)["input_ids"][0] for mark in ".:")
    written = [[*byte_bpe("The quick brown dog")["input_ids"][:4], full_stop]] * 2
    constraint = LengthConstraint(
        Meter(byte_bpe, "chars"), **limits(["at least 4000 chars", "2-5000 chars"]), eos=[2, colon], written=written
    )
    kept = constraint.apply(torch.zeros(2, len(byte_bpe)))[:, [2, colon]]
    assert kept[0].eq(-torch.inf).all()
    assert kept[1].eq(0).all()


def test_an_ample_room_changes_nothing_but_impossible_tokens(byte_bpe):
    meter = Meter(byte_bpe, "chars")
    constraint = LengthConstraint(meter, [0], [5000], eos=[2], written=[byte_bpe("The quick")["input_ids"]])
    scores = torch.randn(1, len(byte_bpe), generator=torch.Generator().manual_seed(1))
    same = constraint.apply(scores) == scores
    banned = {i for i in range(len(byte_bpe)) if not same[0, i]}
    control = {bytes([b]) for b in (*range(32), 127)}
    assert all(i in (0, 1, 2) or meter.utf8[0, i] < 0 or meter.pieces[i] in control for i in banned)


@pytest.mark.parametrize("high", [3, 3000])
def test_scores_wider_than_the_tokenizer(byte_bpe, high):
    constraint = LengthConstraint(Meter(byte_bpe, "chars"), [0], [high], eos=[2])
    kept = constraint.apply(torch.randn(1, len(byte_bpe) + 64))
    assert kept[0, len(byte_bpe) :].eq(-torch.inf).all()
    assert kept[0].isfinite().any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_number_formats(byte_bpe, dtype):
    text = byte_bpe("The quick brown dog")["input_ids"]
    constraint = LengthConstraint(Meter(byte_bpe, "words"), [3, 4], [4, 4], eos=[2], written=[text] * 2)
    scores = torch.randn(2, len(byte_bpe), generator=torch.Generator().manual_seed(1)).to(dtype)
    kept = constraint.apply(scores)
    assert kept.dtype == dtype
    assert torch.equal(kept.isfinite(), constraint.apply(scores.float()).isfinite())


@pytest.mark.parametrize(("text", "ends"), [("so (a.b.", True), ("so (a.", False), ("so (a.b.c", False)])
def test_a_last_word_with_many_full_stops_ends(text, ends):
    """A longer word costs nothing, and full stops are favoured, so ".!.!.!" would not end."""
    words = ["[UNK]", "[PAD]", "[EOS]", "so", "Ġ(a", ".", "b", "c"]
    pieces = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))
    pieces.decoder = decoders.ByteLevel()
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "eos_token": "[EOS]"}
    meter = Meter(PreTrainedTokenizerFast(tokenizer_object=pieces, **special), "words")
    written = [3, 4, *(words.index(letter) for letter in text.removeprefix("so (a"))]
    constraint = LengthConstraint(meter, [2], [2], eos=[2], written=[written])
    scores = np.full((1, len(words)), -9.0, np.float32)
    scores[0, [6, 7]] = 5.0  # the word goes on
    kept = constraint.apply(scores)
    assert (words[int(kept.argmax())] == "[EOS]") is ends


def test_full_stops(byte_bpe):
    constraint = LengthConstraint(Meter(byte_bpe, "chars"), [0], None, eos=[2])
    dot, comma = (byte_bpe(mark)["input_ids"][0] for mark in ".,")
    expected = [[True, False, False]]
    tokens = np.array([[dot, comma, len(byte_bpe) + 5]])  # the last is an id beyond the tokenizer's
    assert constraint.full_stops(tokens).tolist() == expected
    assert constraint.full_stops(torch.from_numpy(tokens)).tolist() == expected


def test_rows_are_selected_and_forked(byte_bpe):
    meter, generator = Meter(byte_bpe, "chars"), torch.Generator().manual_seed(3)
    written = [byte_words(meter, n) for n in (2, 5, 9)]
    options = {"low": [4, 0, 60], "high": [30, 40, 60], "limit": [40, 50, 60]}
    constraint = LengthConstraint(meter, **options, eos=[2], written=written)
    order = [2, 0, 0]
    constraint.select(torch.tensor(order))
    alone = [
        LengthConstraint(meter, **{k: [v[n]] for k, v in options.items()}, eos=[2], written=[written[n]]) for n in order
    ]
    for _ in range(12):
        scores = noise(generator, 3, len(byte_bpe))
        kept = constraint.apply(scores)
        assert torch.equal(kept, torch.cat([one.apply(scores[n : n + 1]) for n, one in enumerate(alone)]))
        tokens = torch.multinomial(kept.softmax(1), 1, generator=generator)[:, 0]
        constraint.update(tokens)
        for n, one in enumerate(alone):
            one.update(tokens[n : n + 1])


def test_torch_is_not_imported():
    code = "import sys, lengthwise.constraint.mask; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
