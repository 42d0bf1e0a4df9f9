"""Plan, measure, repair: with models that count badly, and some that do worse."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise import Budget, measure
from lengthwise.endpoints.client import Reply
from lengthwise.endpoints.fitting import Fitting, Gains
from lengthwise.length.sentences import finished

WORDS = ["the", "sea", "is", "a", "wide", "and", "quiet", "place", "where", "ships", "pass", "at", "night", "in", "fog"]


def sentence(rng, words):
    made = " ".join(rng.choice(WORDS) for _ in range(max(1, words)))
    return made[0].upper() + made[1:] + "."


def counted(messages):
    """Return the number of words that the last message asks for."""
    return int(re.findall(r"(\d+) words", messages[-1]["content"])[-1])


def careless(seed, error=0.3):
    """Return a model that misses the number of words it is asked for by up to `error` of it."""
    rng = random.Random(seed)

    def ask(messages, n, max_tokens):
        replies = []
        for _ in range(n):
            left, text = round(counted(messages) * rng.uniform(1 - error, 1 + error)) or 1, []
            while left > 0:
                size = left if left < 22 else rng.randint(8, 18)
                text.append(sentence(rng, size))
                left -= size
            replies.append(Reply(" ".join(text), True))
        return replies

    return ask


def scripted(*answers):
    """Return a model with prepared answers (each a list of texts, or one), and the list of its requests."""
    seen, left = [], list(answers)

    def ask(messages, n, max_tokens):
        seen.append((messages, n, max_tokens))
        answer = left.pop(0)
        texts = [answer] if isinstance(answer, str | Reply) else answer
        return [one if isinstance(one, Reply) else Reply(one, True) for one in texts]

    return ask, seen


def fit(ask, budget, calls=8, candidates=1, prompt="Describe the sea."):
    made = iter(range(calls))
    fitting = Fitting(prompt, Budget.parse(budget), None, ask, candidates)
    fitting.run(lambda: next(made, None) is not None)
    return fitting


def test_a_good_first_text_takes_one_call():
    ask, seen = scripted("The sea is wide. It is blue.")
    found = fit(ask, "at most 40 chars")
    assert found.best.text == "The sea is wide. It is blue."
    assert (found.best.length, found.best.fits, found.best.complete, len(seen)) == (28, True, True, 1)


def test_the_first_request_has_a_counted_plan_and_a_net():
    ask, seen = scripted("The sea.")
    fit(ask, "at most 280 chars")
    [message], n, max_tokens = seen[0]
    assert message["role"] == "user"
    plan = "Length: at most 280 characters. Plan 3 sentences of 40 words in all."
    assert message["content"].startswith(f"Describe the sea.\n\n{plan}")
    assert n == 1
    assert 100 < max_tokens < 200


def test_a_text_that_is_too_long_loses_its_last_sentences():
    ask, seen = scripted("The sea is wide. It is blue. It is full of fish and ships.")
    found = fit(ask, "at most 30 chars")
    assert found.best.text == "The sea is wide. It is blue."
    assert len(seen) == 1


def test_the_last_sentence_is_repaired_first():
    start = "The sea is wide. It is blue and deep."
    ask, seen = scripted(f"{start} It is old.", ["It is cold.", "It is full of fish and of many ships."])
    found = fit(ask, "exactly 18 words")
    assert found.best.text == f"{start} It is full of fish and of many ships."
    assert found.best.complete
    assert len(seen) == 2
    messages, n, _ = seen[1]
    assert [message["content"] for message in messages] == [
        "Describe the sea.",
        start,
        "Continue with one last sentence of exactly 9 words.",
    ]
    assert n == 4


def test_a_short_text_is_lengthened():
    ask, seen = scripted("The sea is wide and blue.", "Many ships cross it in every season of the year.")
    found = fit(ask, "15-20 words")
    assert found.best.text == "The sea is wide and blue. Many ships cross it in every season of the year."
    assert len(seen) == 2


def test_a_paragraph_break_before_the_end_is_kept():
    first = "The sea is wide and blue.\n\nIt is cold, and deep, and old, and full of fish."
    ask, _ = scripted(first, "Many old ships cross it at night in fog.")
    assert (
        fit(ask, "exactly 15 words").best.text
        == "The sea is wide and blue.\n\nMany old ships cross it at night in fog."
    )


def test_text_without_spaces_is_joined_without_one():
    ask, _ = scripted("海は広い。" * 6, "船が夜の海を渡る様子はとてもいい。")
    best = fit(ask, "42-46 chars", prompt="海について書いて。").best
    assert best.fits
    assert " " not in best.text


@pytest.mark.parametrize(
    "reply",
    [
        "The sea is wide and blue. Many old ships cross it at night in fog.",  # the whole text again
        "The sea is wide and blue. The sea is wide and blue. Many old ships cross it at night in fog.",
        "Here is the last sentence:\n\nMany old ships cross it at night in fog.",
        '"Many old ships cross it at night in fog."',
        "Many old ships cross it at night in fog. (9 words)",
    ],
)
def test_what_models_put_around_an_ending_is_removed(reply):
    ask, _ = scripted("The sea is wide and blue. It is.", reply)
    assert (
        fit(ask, "exactly 15 words").best.text == "The sea is wide and blue. Many old ships cross it at night in fog."
    )


@pytest.mark.parametrize("text", ["Here are two tips:\n\nSleep. Eat.", "Sleep well.\n\nHere is the answer:\n\nEat."])
def test_what_belongs_to_the_text_stays(text):
    ask, _ = scripted(text)
    assert fit(ask, "at most 60 chars").best.text == text


def test_a_text_of_no_width_is_no_failure():
    ask, _ = scripted("\u200d", "The sea.")
    assert fit(ask, "2-20 cells").best.text == "The sea."


def test_a_text_that_the_net_cut_is_asked_for_without_it():
    ask, seen = scripted(Reply("", False), Reply("The sea is", False), "The sea is wide and blue today.")
    found = fit(ask, "5-9 words")
    assert found.best.text == "The sea is wide and blue today."
    assert [request[2] is None for request in seen] == [False, True, True]


def test_requests_are_corrected_by_what_came_before():
    ask, seen = scripted("sea " * 40, "sea " * 40, "sea " * 40)
    fit(ask, "exactly 20 words", calls=3)
    assert [counted(messages) for messages, _, _ in seen][:2] == [20, 10]


def test_what_does_not_fit_is_said_so_and_the_nearest_is_kept():
    ask, _ = scripted("One two three four five six", "One two three four five six seven", "One two three four")
    found = fit(ask, "exactly 2 words", calls=3)
    assert not found.best.fits
    assert found.best.text == "One two three four"


def test_a_short_rest_of_a_long_text_is_improved():
    long = "Yes. The sea is wide and blue and full of fish and ships and stars and many other things in the night."
    ask, seen = scripted(long, ["The sea is wide and blue and full of fish."])
    found = fit(ask, "at most 60 chars")
    assert found.best.text == "Yes. The sea is wide and blue and full of fish."
    assert len(seen) == 2


def test_candidates_are_the_other_texts_of_the_first_call():
    ask, seen = scripted(["The sea.", "The sea is wide and blue.", "The sea is wide."])
    found = fit(ask, "at most 30 chars", candidates=3)
    assert seen[0][1] == 3
    assert found.best.text == "The sea is wide and blue."
    assert [one.text for one in found.others] == ["The sea is wide.", "The sea."]


@pytest.mark.parametrize("budget", ["exactly 50 words", "60-80 words", "at most 280 chars", "at least 30 words"])
def test_a_model_that_counts_badly_fits_with_repair(budget):
    found = [fit(careless(seed), budget) for seed in range(40)]
    assert sum(one.best.fits and one.best.complete for one in found) >= 36


UNITS = ("words", "chars", "bytes", "graphemes", "cells", "tweet", "chars-nospace")
PIECES = [
    "The sea",
    " is wide.",
    "\n\n",
    "Dr. ",
    "海は広い。",
    "e\u0301",
    "<think>",
    '"',
    "**",
    "1. ",
    "! ",
    "?",
    "👩‍👧 ",
]


@settings(max_examples=50)
@given(
    low=st.integers(0, 60),
    width=st.integers(0, 40) | st.none(),
    unit=st.sampled_from(UNITS),
    calls=st.integers(1, 5),
    candidates=st.integers(1, 3),
    data=st.data(),
)
def test_never_more_calls_and_fits_is_what_is_measured(low, width, unit, calls, candidates, data):
    if low == 0 and not width:
        low = 1
    budget = Budget(low, None if width is None else low + width, unit=unit) if width is not None or low else None
    made = []

    def ask(messages, n, max_tokens):
        made.append(n)
        texts = data.draw(st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), max_size=n))
        return [Reply(text, data.draw(st.booleans())) for text in texts]

    fitting = Fitting("Describe the sea.", budget, None, ask, candidates)
    fitting.run(lambda: len(made) < calls)
    assert len(made) <= calls
    for one in fitting.found:
        assert one.length == measure(one.text, unit)
        assert one.fits == budget.fits(one.length)
        assert one.complete or not finished(one.text)
    if any(one.fits for one in fitting.found):
        assert fitting.best.fits


def test_the_next_length_is_corrected_by_recent_replies_of_its_kind():
    gains = Gains()
    assert gains.corrected(True, 100) == 100
    for received in (900, *[150] * 8):  # the last eight replies count
        gains.add(True, received, 100)
    assert gains.corrected(True, 60) == pytest.approx(40)
    assert gains.corrected(False, 60) == 60
    gains.add(False, 900, 100)
    assert gains.corrected(False, 60) == pytest.approx(60 / 2.01, abs=0.1)  # at most halved
    gains.add(False, 0, 100)
    gains.add(False, 0, 100)  # the median: too little
    assert gains.corrected(False, 60) == pytest.approx(60 * 2.01, abs=0.3)  # at most doubled
