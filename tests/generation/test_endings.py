"""Where a draft stops that is no prose: lists, tables and code."""

from dataclasses import replace

import pytest

from lengthwise.generation.endings import Draft, best_ending, without_odd_mark
from lengthwise.length.budget import Budget
from lengthwise.length.units import measure

CODE = "Here:\n```python\ndef f(x):"
LIST = "Buy this:\n- Flour\n- Milk\n- Egg."


def draft(text, forced=0):
    """A text with a token for each character; the last `forced` tokens were forced."""
    agreement = [1.0] * (len(text) - forced) + [0.0] * forced
    return Draft(text, range(1, len(text) + 1), agreement, 0.0, 0.0, range(len(text)))


def ending(one, budget, last=""):
    return best_ending(one, Budget.parse(budget), lambda text, tokens: measure(text, "chars"), last=last)


def test_no_full_stop_is_put_behind_code():
    found = ending(draft(CODE + ".", forced=1), f"at most {len(CODE) + 1} chars")
    assert (found.text, found.length, found.complete) == (CODE, len(CODE), False)


def test_a_full_stop_stays_where_the_minimum_needs_it():
    found = ending(draft(CODE + ".", forced=1), f"exactly {len(CODE) + 1} chars")
    assert (found.text, found.fits, found.complete) == (CODE + ".", True, False)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The capital of!", "The capital of"),
        ("The capital of **!", "The capital of"),
        ("The capital of **France**!", "The capital of **France**"),
        ("The answer is: ?", "The answer is:"),
        ("The capital.", "The capital."),
        ("!", "!"),
    ],
)
def test_no_odd_mark_is_put_behind_a_text_that_is_cut(text, kept):
    def best(one, budget):
        return without_odd_mark(ending(one, budget), one, Budget.parse(budget), lambda text, tokens: len(text))

    found = best(draft(text, forced=1), "at most 80 chars")
    assert (found.text, found.length, found.tokens, found.complete) == (kept, len(kept), len(kept), False)
    exact = best(draft(text, forced=1), f"exactly {len(text)} chars")
    assert (exact.text, exact.fits, exact.complete) == (text, True, False)
    assert best(replace(draft(text), end_ratio=1.0), "at most 80 chars").text == text


def test_a_full_stop_of_the_models_own_stays():
    assert ending(draft(CODE + "."), "at most 200 chars").text == CODE + "."


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (LIST, "Buy this:\n- Flour\n- Milk"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | wor.", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("I go.\n\nRegards,\nJane Smith\n\nIt is wor.", "I go.\n\nRegards,\nJane Smith"),
        ("So:\n\n```\nprint(1)\n```\n\nIt prints wor.", "So:\n\n```\nprint(1)\n```"),
    ],
)
def test_a_text_with_a_forced_end_falls_back_to_a_whole_block(text, kept):
    found = ending(draft(text, forced=1), "at most 200 chars")
    assert (found.text, found.complete, found.tokens) == (kept, True, len(kept))


def test_a_whole_row_at_the_end_is_complete():
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    assert ending(draft(table), "at most 200 chars").complete
    assert not ending(replace(draft(table), agreement=[0.0] * len(table)), "at most 200 chars").complete


@pytest.mark.parametrize(
    ("text", "end_ratio", "complete"),
    [
        ("Paris", 0.1, True),
        ("Paris", 0.01, False),
        ("Paris (", 0.1, False),
        ("Yes:\n\n## Why", 0.1, False),
        ("Yes:", 1.0, True),
        ("```\nx = 1\n```", 1.0, True),
        ("```\nx = 1```", 1.0, False),  # the fence closes no code
    ],
)
def test_a_likely_end_completes_a_text_that_does_not_break_off(text, end_ratio, complete):
    assert ending(replace(draft(text), end_ratio=end_ratio), "at most 200 chars").complete is complete


def test_a_text_may_end_in_the_address_in_which_its_source_ends():
    text, budget = "Più informazioni: https://example.org", "at most 60 chars"
    assert not ending(draft(text), budget).complete
    assert ending(draft(text), budget, "https://example.org").complete
    assert not ending(draft(text), budget, "help@example.org").complete
    assert not ending(draft(text, forced=3), budget, "https://example.org").complete
