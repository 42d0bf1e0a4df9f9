"""A server with the hard budget continues a text at any word: how much of it is kept, and what comes of it."""

import pytest

from lengthwise import Budget
from lengthwise.endpoints.client import Reply
from lengthwise.endpoints.continuing import ROUNDS, Continuing

TEXT = " ".join(f"w{n}" for n in range(1, 51)) + "."  # 50 words; the full stop is forced
FORCED = (range(len(TEXT), len(TEXT) + 1),)


def search(budget, first, *answers, calls=9):
    """Return the search that begins with a reply, and its requests (what is kept, replies)."""
    seen, left = [], list(answers)

    def ask(messages, n, max_tokens):
        assert messages[0] == {"role": "user", "content": "Count."}  # the prompt itself, without a length
        assert [message["role"] for message in messages[1:]] in ([], ["assistant"])
        seen.append((messages[1]["content"] if len(messages) > 1 else "", n))
        return left.pop(0) if left else [Reply("no end", False)]

    found = Continuing("Count.", Budget.parse(budget), None, ask)
    found.add(first)
    found.run(lambda: len(seen) < calls)
    return found, seen


def test_each_round_removes_more_words_and_the_last_ones_keep_none():
    _, seen = search("exactly 50 words", Reply(TEXT, True, FORCED), calls=5)
    assert [(50 - len(kept.split()), n) for kept, n in seen[:3]] == [*ROUNDS]
    assert [kept for kept, _ in seen[3:]] == ["", ""]


def test_a_better_text_of_an_early_round_is_cut_as_far_back_as_the_first_one():
    def reply(kept):  # 50 words that end with a comma
        return [Reply(" ".join(f"x{n}" for n in range(kept + 1, 50)) + " so,", True, (), " ")]

    first = Reply(TEXT.removesuffix("."), False)  # cut by the server, so worse than what follows
    _, seen = search("exactly 50 words", first, *(reply(50 - words) for words, _ in ROUNDS), calls=3)
    assert [(50 - len(kept.split()), n) for kept, n in seen] == [*ROUNDS]


@pytest.mark.parametrize(("space", "joined"), [(" ", "w40 and"), ("", "w40and"), ("\n\n", "w40\n\nand")])
def test_white_space_is_that_of_the_server(space, joined):
    rest = "and" + " x" * 8 + " end."
    found, seen = search("40-60 words", Reply(TEXT, True, FORCED), [Reply(rest, True, (), space)])
    assert len(seen) == 1
    assert found.best.text == f"{seen[0][0]}{space}{rest}"
    assert joined in found.best.text
    assert found.best.complete


def test_a_cut_is_not_made_behind_a_forced_token():
    early = (range(len("w1 w2 w3"), len(TEXT) + 1),)
    _, [(kept, _), *_] = search("exactly 50 words", Reply(TEXT, True, early))
    assert kept == "w1 w2"


TABLE = "| a | b |\n|---|---|\n| one | two |\n| three"


def test_a_table_is_cut_after_a_row_and_costs_no_call():
    found, seen = search("at most 60 chars", Reply(TABLE, False))
    assert (found.best.text, found.best.complete) == (TABLE[: TABLE.rindex("\n")], True)
    assert seen == []


def test_code_is_not_completed_by_another_last_line():
    code = "See:\n```python\n" + "x = 1\n" * 15 + "x ="
    _, [(kept, n), *_] = search("exactly 50 words", Reply(code, False))
    assert (len(kept.split()), n) == (10, ROUNDS[0][1])


@pytest.mark.parametrize(("text", "complete"), [("Milk and flour", True), ("Milk and flour,", False)])
def test_an_end_of_the_models_own_is_complete_unless_it_breaks_off(text, complete):
    found, seen = search("at most 90 chars", Reply(text, True), calls=1)
    assert found.best.complete is complete
    assert len(seen) == (not complete)
