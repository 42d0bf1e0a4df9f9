"""Where rows could end within their budgets: with a full stop, a list item, a fence of code."""

import sys

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from length_cases import limits, noise, text_and_length
from lengthwise.constraint import closings
from lengthwise.constraint.closings import Closings
from lengthwise.constraint.mask import LengthConstraint
from lengthwise.constraint.mixed import MixedConstraint
from lengthwise.constraint.token_costs import token_costs_of
from lengthwise.length.meter import Meter


@pytest.mark.parametrize("unit", ["chars", "words", "tokens", "bytes"])
def test_a_full_stop_after_a_closing_token_gives_the_exact_length(byte_bpe, unit):
    meter, generator = Meter(byte_bpe, unit), torch.Generator().manual_seed(3)
    written = byte_bpe("The dog has the fox. It is a cold", add_special_tokens=False)["input_ids"]
    _, before = text_and_length(byte_bpe, unit, np.array(written))
    lengths = []
    for length in range(before + 1, before + 9):
        for scores in (noise(generator, 1, len(byte_bpe)), noise(generator, 1, len(byte_bpe)).numpy()):
            limits = {"low": [length], "high": [length], "eos": [2], "limit": [99]}
            constraint = LengthConstraint(meter, **limits, written=[written])
            rows, tokens = Closings(constraint).before_full_stop(scores, constraint.apply(scores), -99.0, 5)
            assert set(rows) <= {0}
            assert len(tokens) <= 5
            assert sorted(tokens, key=lambda token: -scores[0, token]) == tokens
            for token in tokens:
                closed = LengthConstraint(meter, **limits, written=[[*written, token]])
                [stop] = closed.stops(closed.apply(scores)).tolist()
                text, found = text_and_length(byte_bpe, unit, np.array([*written, token, stop]))
                assert (found, text[-1] in ".!?") == (length, True)
            lengths += [length] * len(tokens)
    assert lengths
    assert unit != "chars" or len(set(lengths)) > 3


@pytest.mark.parametrize(("low", "high"), [(0, 36), (34, 37), (1, 500), (500, 500)])
def test_only_an_exact_length_near_its_end_has_closing_tokens(byte_bpe, low, high):
    written = byte_bpe("The dog has the fox. It is a cold", add_special_tokens=False)["input_ids"]
    constraint = LengthConstraint(Meter(byte_bpe, "chars"), [low], [high], eos=[2], written=[written])
    scores = noise(torch.Generator().manual_seed(3), 1, len(byte_bpe))
    assert Closings(constraint).before_full_stop(scores, constraint.apply(scores), -99.0, 5) == ([], [])


def test_a_tokenizer_without_a_bare_full_stop_has_no_closing_tokens():
    words = ["[UNK]", "[PAD]", "[SEP]", "the", "dog", ".", "##s", "a"]  # WordPiece: "." is decoded as " ."
    pieces = Tokenizer(models.WordPiece({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))
    pieces.decoder = decoders.WordPiece(cleanup=False)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pieces, unk_token="[UNK]", pad_token="[PAD]", eos_token="[SEP]"
    )
    constraint = LengthConstraint(Meter(tokenizer, "chars"), [9], [9], eos=[2], written=[[3]])
    scores = torch.zeros(1, len(words))
    assert Closings(constraint).before_full_stop(scores, constraint.apply(scores), -99.0, 5) == ([], [])


# ---- ends of blocks

BLOCKS = ["[UNK]", "[PAD]", "[EOS]", "```", "Ċ", "x", "Ġ=", "Ġ1", "-", "Ġflour", "Ġof", "Ġmilk", ".", "1", "``"]


def block_constraint(text, unit, budget, limit=99):
    """Return the constraint of a row that has written `text`, which is spelled as in `BLOCKS`."""
    pieces = Tokenizer(models.WordLevel({word: n for n, word in enumerate(BLOCKS)}, unk_token="[UNK]"))
    pieces.decoder = decoders.ByteLevel()
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "eos_token": "[EOS]"}
    meter = Meter(PreTrainedTokenizerFast(tokenizer_object=pieces, **special), unit)
    written = [BLOCKS.index(word) for word in text.split()]
    return LengthConstraint(meter, **limits([budget]), eos=[2], limit=[limit], written=[written])


def likely(**words):
    """Return scores of one row: the log of the probability of these words, and little for the others."""
    scores = np.full((1, len(BLOCKS)), -20.0, np.float32)
    for word, probability in words.items():
        scores[0, BLOCKS.index({"fence": "```", "line": "Ċ"}.get(word, word))] = np.log(probability)
    return scores


@pytest.mark.parametrize(
    ("text", "budget", "fence", "closable"),
    [
        ("``` Ċ x Ġ= Ġ1 Ċ", "at most 14 chars", 0.05, True),  # 10 characters, and the fence
        ("``` Ċ x Ġ= Ġ1 Ċ", "at most 14 chars", 0.01, False),  # not likely
        ("``` Ċ x Ġ= Ġ1 Ċ", "exactly 13 chars", 0.05, True),
        ("``` Ċ x Ġ= Ġ1 Ċ", "exactly 14 chars", 0.05, False),
        ("``` Ċ x Ġ= Ġ1 Ċ", "at most 12 chars", 0.05, False),  # too long
        ("``` Ċ x Ġ= Ġ1 Ċ", "at most 30 chars", 0.05, False),  # too short: the model may go on
        ("``` Ċ x Ġ= Ġ1", "at most 14 chars", 0.05, False),  # inside a line
        ("``` Ċ", "at most 8 chars", 0.05, False),  # no code
        ("``` Ċ x Ċ ``` Ċ x Ċ", "at most 14 chars", 0.05, False),  # closed already
    ],
)
def test_code_is_closed_where_the_model_would_close_it(text, budget, fence, closable):
    scores = likely(line=0.9, fence=fence)
    for one in (scores, torch.tensor(scores)):
        rows, token = Closings(block_constraint(text, "chars", budget)).of_code(one, np.log(1 / 50))
        assert (rows, BLOCKS[token]) == ([0] if closable else [], "```")
    short = block_constraint(text, "chars", budget, limit=len(text.split()))
    assert Closings(short).of_code(scores, -9.0)[0] == []


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("``` Ċ x Ġ= Ġ1", "1"), ("x Ġ= Ġ1 Ġflour", "."), ("``` Ċ x Ċ ``` Ċ x", ".")],
)
def test_the_last_unit_is_kept_for_a_full_stop_outside_code_only(text, chosen):
    scores = likely(**{"1": 0.9, "x": 0.05})
    length = len(text.replace("Ċ", "\n").replace(" ", "").replace("Ġ", " ")) + 1
    for one in (scores, torch.tensor(scores)):
        kept = block_constraint(text, "chars", f"exactly {length} chars").apply(one)
        assert BLOCKS[int(kept.argmax())] == chosen


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("``` Ċ x Ġ= Ġ1", "Ċ"),
        ("``` Ċ x Ġ= ``", "Ċ"),
        ("``` Ċ x Ġ= Ġ1 Ċ", "```"),
        ("x Ġ= Ġ1", "```"),
        ("x Ġ= ``` x", "```"),
    ],
)
def test_near_the_end_no_fence_is_put_behind_code_in_its_line(text, chosen):
    scores = likely(**{"``": 0.4, "fence": 0.5, "line": 0.1})
    scores[:, BLOCKS.index("``")] -= 9.0 * (chosen == "```")
    length = len(text.replace("Ċ", "\n").replace(" ", "").replace("Ġ", " ")) + 4
    for one in (scores, torch.tensor(scores)):
        kept = block_constraint(text, "chars", f"exactly {length} chars").apply(one)
        assert BLOCKS[int(kept.argmax())] == chosen


@pytest.mark.parametrize(
    ("text", "unit", "length", "line", "ends"),
    [
        ("- Ġflour", "chars", 7, 0.2, True),
        ("- Ġflour", "words", 2, 0.2, True),
        ("- Ġflour", "tokens", 2, 0.2, True),
        ("- Ġflour", "chars", 7, 0.01, False),  # "- flour of" is likelier
        ("- Ġflour", "chars", 8, 0.2, False),  # too short
        ("- Ġflour Ġof", "chars", 10, 0.2, False),
        ("x Ġflour", "chars", 7, 0.2, False),  # no item
        ("- Ġflour .", "words", 2, 0.2, False),  # a sentence
    ],
)
def test_an_item_ends_where_its_line_is_likely_to_end(text, unit, length, line, ends):
    constraint = block_constraint(text, unit, f"exactly {length} {unit}")
    for scores in (likely(line=line, Ġof=1 - line), torch.tensor(likely(line=line, Ġof=1 - line))):
        assert Closings(constraint).line_ends(scores) == ([0] if ends else [])
    window = block_constraint(text, unit, f"{length - 1}-{length} {unit}")
    assert not Closings(window).line_ends(likely(line=line))


@pytest.mark.parametrize(
    ("text", "budget", "milk", "closes"),
    [
        ("- Ġflour Ġof", "exactly 15 chars", 0.2, True),  # 10 characters, and " milk"
        ("- Ġflour Ġof", "exactly 4 tokens", 0.2, True),
        ("- Ġflour Ġof", "exactly 4 tokens", 0.01, False),  # not likely
        ("- Ġflour Ġof", "exactly 16 chars", 0.2, False),  # too short
        ("- Ġflour Ġof", "14-15 chars", 0.2, False),
        ("- Ġflour Ġof", "exactly 4 words", 0.2, False),  # the last word may go on
        ("x Ġflour Ġof", "exactly 15 chars", 0.2, False),  # no item
    ],
)
def test_a_token_may_end_an_item_at_its_exact_length(text, budget, milk, closes):
    scores = likely(Ġmilk=milk, Ġof=1 - milk)
    for one in (scores, torch.tensor(scores)):
        constraint = block_constraint(text, budget.split()[-1], budget)
        mixed = MixedConstraint([([0], constraint)])
        for either in (constraint, mixed):
            rows, tokens = Closings(either).of_blocks(one, np.log(1 / 50), 2)
            assert (rows, [BLOCKS[token] for token in tokens]) == (([0], ["Ġmilk"]) if closes else ([], []))


@pytest.mark.parametrize(
    ("token", "budget"),
    [
        ("Ċ", "exactly 9 chars"),  # costs 2 with the word after it
        ("Ċ", "exactly 3 tokens"),  # of which the text would have 2
        ("Ġ", "exactly 9 chars"),
        ("âĢ", "exactly 8 chars"),  # two bytes of three
        ("âĢ", "exactly 10 bytes"),
        ("ĠðŁ", "exactly 9 chars"),
    ],
)
def test_no_token_ends_an_item_in_white_space_or_inside_a_character(token, budget, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "BLOCKS", [*BLOCKS, "Ġ", "âĢ", "ĠðŁ"])
    scores = likely(**{token: 0.9, "Ġof": 0.05})
    constraint = block_constraint("- Ġflour", budget.split()[-1], budget)
    assert Closings(constraint).of_blocks(scores, np.log(1 / 50), 2)[0] == []


def test_a_less_likely_token_ends_an_item_where_the_likeliest_cannot():
    constraint = block_constraint("- Ġflour", "tokens", "exactly 3 tokens")
    rows, tokens = Closings(constraint).of_blocks(likely(Ċ=0.6, Ġmilk=0.3), np.log(1 / 50), 1)
    assert (rows, [BLOCKS[token] for token in tokens]) == ([0], ["Ġmilk"])


def test_no_token_ends_an_item_beyond_the_limit_of_tokens():
    for limit, closes in ((3, []), (4, [0])):
        constraint = block_constraint("- Ġflour Ġof", "chars", "exactly 15 chars", limit=limit)
        assert Closings(constraint).of_blocks(likely(Ġmilk=0.9), np.log(1 / 50), 2)[0] == closes


def test_a_letter_ends_with_its_signature(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "BLOCKS", [*BLOCKS, "Thanks", ",", "Jane"])
    scores, begun = likely(Jane=0.5, Ġmilk=0.2), "x Ċ Thanks , Ċ"
    for formula, rows in ((begun, [0]), ("x Ċ Ġflour , Ċ", [])):
        constraint = block_constraint(formula, "chars", "exactly 14 chars")
        assert Closings(constraint).of_blocks(scores, np.log(1 / 50), 2)[0] == rows
    written = block_constraint(begun + " Jane", "chars", "exactly 14 chars")
    assert Closings(written).line_ends(likely(line=0.2, Ġof=0.8)) == [0]
    assert Closings(written).line_ends(likely(line=0.01, Ġof=0.9)) == []


@pytest.mark.parametrize(
    ("budget", "tables"), [("at most 13 chars", []), ("exactly 99 chars", []), ("exactly 13 chars", [False])]
)
def test_costs_without_a_full_stop_are_computed_near_an_exact_end_only(budget, tables, monkeypatch):
    made = []
    monkeypatch.setattr(
        closings, "token_costs_of", lambda meter, finish: made.append(finish) or token_costs_of(meter, finish)
    )
    Closings(block_constraint("- Ġflour", "chars", budget)).of_blocks(likely(line=0.5), -1, 4)
    assert made == tables


def test_rows_of_several_units_keep_their_places():
    """Each part of a mixed constraint has some of the rows; what is found has the places among all rows."""
    item = block_constraint("- Ġflour Ġof", "tokens", "exactly 4 tokens")
    code = block_constraint("``` Ċ x Ġ= Ġ1 Ċ", "chars", "exactly 13 chars")
    line = block_constraint("- Ġflour", "words", "exactly 2 words")
    closings = Closings(MixedConstraint([([2], item), ([0], code), ([1], line)]))
    rows = [likely(line=0.9, fence=0.05), likely(line=0.2, Ġof=0.8), likely(Ġmilk=0.2, Ġof=0.8)]
    for scores in (np.concatenate(rows), torch.tensor(np.concatenate(rows))):
        milk = BLOCKS.index("Ġmilk")
        assert closings.of_blocks(scores, np.log(1 / 50), 2) == ([2], [milk])
        assert closings.of_code(scores, np.log(1 / 50)) == ([0], BLOCKS.index("```"))
        assert closings.line_ends(scores) == [1]


@pytest.mark.parametrize("width", [len(BLOCKS) - 2, len(BLOCKS) + 3])
def test_a_model_may_have_fewer_or_more_tokens_than_its_tokenizer(width):
    constraint = block_constraint("- Ġflour Ġof", "chars", "exactly 15 chars")
    scores = np.full((1, width), -20.0, np.float32)
    scores[0, [BLOCKS.index("Ġmilk"), -1]] = np.log(0.3), np.log(0.5)
    assert Closings(constraint).of_blocks(scores, np.log(1 / 50), 2) == ([0], [BLOCKS.index("Ġmilk")])
