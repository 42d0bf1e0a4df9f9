"""Compression: which words of a sentence can be dropped, and what is left of it."""

import re
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise import Budget, at_most
from lengthwise.translation.compression import combine_runs, runs, without


@given(st.integers(0, 30), st.integers(0, 10).map(lambda tenths: tenths / 10))
def test_two_of_the_longest_runs_save_enough(words, excess):
    found = runs(" ".join("x" * words), excess)
    longest = 2 if words * excess <= 4 else 3 if words * excess <= 6 else 4
    assert len(set(found)) == len(found)
    assert set(found) == {
        frozenset(range(first, last))
        for first in range(words)
        for last in range(first + 1, words + 1)
        if last - first <= longest and 2 * (last - first) <= words and words >= 4
    }


LETTERS = st.text("abcéxABÉ%", min_size=1, max_size=4)


@st.composite
def cuts(draw):
    """Words, and the places of up to half of them."""
    marks = st.sampled_from(["", "", "", ",", ";", ":", ".", "!", "?", "…"])
    words = draw(st.lists(st.tuples(LETTERS, marks).map("".join), min_size=3, max_size=8))
    words.append(draw(LETTERS) + draw(st.sampled_from(["", ".", "!", "?", "…"])))
    return words, draw(st.frozensets(st.integers(0, len(words) - 1), max_size=len(words) // 2))


@given(cuts(), st.sampled_from([" ", "  "]))
def test_the_rest_begins_and_ends_like_the_sentence(cut, space):
    words, dropped = cut
    left = [word for place, word in enumerate(words) if place not in dropped]
    found = without(space.join(words), dropped).split(" ")
    assert len(found) == len(left)
    assert found[1:-1] == left[1:-1]
    # a capital for a capital, unless the word is a name
    capital = 0 in dropped and words[0][0].isupper() and not re.search("[AB%]", left[0].rstrip("%,;:.!?…"))
    assert found[0][0] == (left[0][0].upper() if capital else left[0][0])
    # the same end mark, without a pause before it
    end, last = words[-1][-1], left[-1]
    if len(words) - 1 not in dropped or last[-1] in ".!?…":
        assert found[-1][1:] == last[1:]
    elif end in ".!?…":
        assert found[-1][1:] == last[1:].rstrip(",;:") + end
    else:
        assert found[-1][1:].rstrip(",;:") == last[1:].rstrip(",;:")


@pytest.mark.parametrize(
    ("text", "dropped", "left"),
    [
        ("Oh, open the file, if you can!", {0, 4, 5, 6}, "Open the file!"),
        ("Is it really. Here?", {3}, "Is it really."),  # one end is enough
        ("open the big file", {0, 3}, "the big"),
        ("Élan {name} is here.", {0}, "{name} is here."),
        ("Open   the old\tfile.", {2}, "Open the file."),
        ("Please enter your name:", {3}, "Please enter your:"),
        ("Open the old file...", {3}, "Open the old..."),
        ("Are you really sure?!", {3}, "Are you really?!"),
        ("Open the file, if possible", {3, 4}, "Open the file"),
        ("هل تريد حذف الملف؟", {3}, "هل تريد حذف؟"),
        ('He said "open the old file."', {5}, 'He said "open the old.'),
        ("Open the file — now.", {3, 4}, "Open the file."),
        ("Attention : fichier ouvert", {2, 3}, "Attention"),
        ("Open iPhone settings now", {0}, "iPhone settings now"),
        ("Visit https://a.org for more", {0}, "https://a.org for more"),
        ("Now open, please, the file", {0}, "Open, please, the file"),
    ],
)
def test_the_rest_of_a_sentence(text, dropped, left):
    assert without(text, frozenset(dropped)) == left


def trials(seed):
    """Return words, and lengths and scores without some of their runs (in halves, whose sums are exact)."""
    random = Random(seed)
    words, often = random.randint(4, 10), random.random()
    every = [dropped for dropped in runs(" ".join("x" * words), 1.0) if words - 1 in dropped or random.random() < often]
    return words, {dropped: (random.randint(20, 41), -random.randint(0, 9) / 2) for dropped in every}, (40, -1.0)


@given(st.integers(0, 10**6).map(trials), st.integers(1, 40), st.integers(0, 20), st.integers(1, 60))
def test_several_runs_are_dropped_together(trial, low, window, most):
    words, tried, whole = trial
    budget = Budget(low, low + window)
    found = combine_runs(words, tried, whole, budget.fits, most)
    assert len(found) == len(set(found)) <= most
    # all combinations, by brute force
    saved = {dropped: whole[0] - length for dropped, (length, _) in tried.items() if length < whole[0]}
    costs = {}
    for some in [*combinations(saved, 2), *combinations(saved, 3)]:
        dropped = frozenset().union(*some)
        apart = not any(a & b for a, b in combinations(some, 2))
        if apart and 2 * len(dropped) <= words and budget.fits(whole[0] - sum(saved[one] for one in some)):
            costs[dropped] = min(costs.get(dropped, 99.0), sum(whole[1] - tried[one][1] for one in some))
    costs = {dropped: cost for dropped, cost in costs.items() if dropped not in tried}
    assert set(found) <= costs.keys()
    if len(saved) <= 24:  # of more runs not all triples are tried
        assert [costs[dropped] for dropped in found] == sorted(costs.values())[:most]


def test_the_estimate_for_words_is_that_of_their_cheapest_runs():
    scores = {(0,): -1.0, (1, 2): -1.0, (0, 1): -3.0, (2,): -3.0, (4,): -1.5, (6, 7): -1.5}
    tried = {frozenset(run): (9, score) for run, score in scores.items()}
    found = combine_runs(8, tried, (10, 0.0), at_most(8, "chars").fits, 99)
    # 2 nats, with other runs 6; and 3
    assert found.index(frozenset([0, 1, 2])) < found.index(frozenset([4, 6, 7]))


@given(
    st.lists(st.sampled_from(["do", "not", "open", "never", "can't", "without", "it", "n'est"]), min_size=4, max_size=9)
)
def test_negations_are_never_dropped(words):
    negations = {place for place, word in enumerate(words) if word in ("not", "never", "can't", "without", "n'est")}
    assert all(not dropped & negations for dropped in runs(" ".join(words), 1.0))


def test_not_every_run_of_a_long_sentence_is_tried():
    assert len(runs("x " * 59, 1.0)) == 59 + 58 + 57 + 56
    assert len(runs("x " * 300, 1.0)) < 300


def test_a_name_is_no_negation():
    assert frozenset([0]) in runs("Python's old file is here", 0.1)
