"""Realignment: which reference gets which sentences, and that no word is lost, doubled or moved."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.metrics import realign

REFS = [
    "The lighthouse stands on the northern cliff.",
    "Its lamp is visible for twenty miles.",
    "A keeper lived there until 1962.",
    "Today the tower is open to visitors.",
]


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (REFS[:1] + REFS[2:], [REFS[0], "", *REFS[2:]]),  # one is missing
        (REFS[1:], ["", *REFS[1:]]),
        (REFS[:3], [*REFS[:3], ""]),
        ([REFS[0], "Its lamp is visible", "for twenty miles.", *REFS[2:]], REFS),  # one is split
        ([*REFS, "And now", "something else."], [*REFS[:3], f"{REFS[3]} And now something else."]),
        ([REFS[0], f"{REFS[1]} {REFS[2]}", REFS[3]], [REFS[0], f"{REFS[1]} {REFS[2]}", "", REFS[3]]),  # two are one
        (["The lighthouse is on the north cliff.", "Visitors can enter the tower."], None),
        ([], [""] * 4),
    ],
)
def test_by_hand(outputs, expected):
    found = realign(outputs, REFS)
    assert found == (expected or [outputs[0], "", "", outputs[1]])


def test_what_nothing_decides_keeps_its_relative_position():
    assert realign(["x", "y"], ["a", "b", "c", "d"]) in (["x", "", "y", ""], ["", "x", "", "y"], ["x", "", "", "y"])
    assert realign(["u", "v", "x", "y"], ["a", "b"]) == ["u v", "x y"]


def test_no_reference():
    assert realign([], []) == []
    with pytest.raises(ValueError, match="2 output sentences need at least one reference; got none"):
        realign(["a", "b"], [])


texts = st.lists(st.text("abc, \n", max_size=12), max_size=8)


@given(texts, texts.filter(bool))
def test_every_word_once_and_in_order(outputs, references):
    found = realign(outputs, references)
    assert len(found) == len(references)
    assert " ".join(found).split() == " ".join(outputs).split()
    if len(outputs) == len(references):
        assert found == outputs


@given(st.data())
def test_a_copy_with_missing_and_split_sentences_goes_home(data):
    """Sentences without common words are found again wherever others are missing or cut in two."""
    references = [" ".join(chr(0x4E00 + 50 * n + k) * 3 for k in range(8)) for n in range(10)]
    outputs, expected = [], []
    for text in references:
        fate = data.draw(st.sampled_from(["kept", "missing", "split"]))
        words = text.split()
        outputs += {"kept": [text], "missing": [], "split": [" ".join(words[:3]), " ".join(words[3:])]}[fate]
        expected.append("" if fate == "missing" else text)
    if len(outputs) != len(references):
        assert realign(outputs, references) == expected


def test_hundreds_of_sentences_take_less_than_a_second():
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 10))) for _ in range(3000)]
    references = [" ".join(rng.choices(words, k=20)) for _ in range(400)]
    outputs = [text for n, text in enumerate(references) if n % 7]
    start = time.process_time()
    found = realign(outputs, references)
    assert time.process_time() - start < 1
    assert found == [text if n % 7 else "" for n, text in enumerate(references)]
