"""Candidates: which translations are good examples, by their text and by their scores."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from lengthwise.distill.candidates import (
    Candidate,
    Margins,
    ending,
    malformed,
    score,
    select,
    well_formed,
    whole_and_tail,
)


@pytest.mark.parametrize(
    ("text", "mark"),
    [("Go.", "."), ("Où ?", "?"), ("« Où ? »", "?"), ("(Go!)", "!"), ("Name :", ":"), ("Go", ""), ("…", "."), ("", "")],
)
def test_how_a_text_ends(text, mark):
    assert ending(text) == mark


@pytest.mark.parametrize(
    ("source", "text", "reason"),
    [
        ("Open %s now.", "Ouvrez %s maintenant.", None),
        ("Open %s now.", "Ouvrez maintenant.", "lost a number or placeholder"),
        ("All 12 of them.", "Tous les 13.", "lost a number or placeholder"),
        ("Open it.", "Ouvrez-le", "ends otherwise"),
        ("Open", "Ouvrir.", "ends otherwise"),
        ("Why?", "Pourquoi ?", None),
        ("Stop.", "stop.", "copied"),
        ("Stop.", "", "empty"),
        ("Stop.", "Va va va. " * 4, "repetitive"),
    ],
)
def test_malformed(source, text, reason):
    assert malformed(source, text.strip()) == reason


def test_well_formed_texts_once_and_none_without_the_best():
    why = Counter()
    texts = ["Ouvrez le fichier.", None, "Ouvrez le file.", "Ouvrez ce fichier.", "Ouvrez ce fichier.", "Ouvrez"]
    found = well_formed("Open the file.", texts, why)
    assert [(one.text, one.length, one.best) for one in found] == [(texts[0], 18, True), (texts[3], 18, False)]
    assert why == {"unfinished": 1, "left a word as it is": 1, "duplicate": 1, "ends otherwise": 1}
    assert well_formed("Open the file.", ["Ouvrez", "Ouvrez le fichier."], Counter()) == []
    assert well_formed("Open the file.", [None, "Ouvrez le fichier."], Counter()) == []


OWN = Candidate("x" * 100, 100, True, -0.5, -0.4, 0.0, -0.3, -2.0)


def other(length, **known):
    return replace(OWN, text="y" * length, length=length, best=False, **known)


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({}, None),
        ({"score": -0.74, "tail": -0.64, "worst": 3.9, "likelihood": -0.59, "lowest": -4.9}, None),
        ({"score": -0.76}, "says less"),
        ({"tail": -0.66}, "says less at its end"),
        ({"worst": 4.1}, "leaves out a word"),
        ({"likelihood": -0.61}, "no good translation"),
        ({"lowest": -5.1}, "no good translation"),
    ],
)
def test_margins(known, reason):
    why = Counter()
    chosen = select([OWN, other(90, **known)], Margins(), 4, why)
    assert [one.length for one in chosen] == ([100, 90] if reason is None else [100])
    assert [name for name, count in why.items() if count] == ([reason] if reason else [])


def test_the_shortest_is_kept_and_a_spread():
    many = [OWN, *(other(length) for length in (80, 81, 82, 90, 99, 110, 130))]
    assert [one.length for one in select(many, Margins(), 3, Counter())] == [100, 80, 90]
    assert [one.length for one in select(many, Margins(), 7, Counter())] == [100, 80, 81, 82, 90, 99, 130]
    assert [one.length for one in select(many, Margins(), 9, Counter())] == [100, 80, 81, 82, 90, 99, 130]
    assert [one.length for one in select([OWN, other(110), other(120)], Margins(), 4, Counter())] == [100, 120]
    assert [one.length for one in select(many, Margins(), 2, Counter())] == [100, 80]
    assert [one.length for one in select(many, Margins(), 1, Counter())] == [100]
    why = Counter()
    twins = [OWN, other(80, score=-0.6), other(80, score=-0.4), other(100, score=0.0)]
    assert select(twins, Margins(), 4, why) == [twins[0], twins[2]]
    assert why["as long as another"] == 2
    assert select([], Margins(), 4, Counter()) == []


# (score, tail, worst, likelihood, lowest) as opus-mt-fr-en and opus-mt-en-fr gave them in single precision.
WAVES = (
    "Les ondes sonores sont créées lorsque les molécules se déplacent à travers une substance, comme l'air ou l'eau.",
    (-0.21, -0.14, 0.0, -0.28, -1.14),
)
SUN = (
    "Vous aurez besoin de fournir la bonne quantité de soleil et la bonne quantité d'eau.",
    (-0.4, -0.13, 0.0, -0.25, -1.09),
)
REAL = [
    # Sound waves are created when molecules move through a substance, such as air or water.
    (WAVES, "Des ondes sonores sont créées lorsque les molécules traversent une substance, comme l'air ou l'eau.",
     (-0.45, -0.14, 3.79, -0.36, -1.63), True),
    (WAVES, "Les ondes sonores sont créées lorsque les molécules se déplacent à travers une substance.",
     (-1.51, -2.81, 6.86, -0.71, -5.97), False),
    (WAVES, "Les ondes sonores sont créées lorsque les molécules se déplacent à travers",
     (-2.12, -3.12, 9.27, -1.18, -10.55), False),
    # You'll need to provide the right amount of sunlight and the right amount of water.
    (SUN, "Vous devrez fournir la bonne quantité de soleil et la bonne quantité d'eau.",
     (-0.48, -0.13, 0.51, -0.26, -0.95), True),
    (SUN, "Vous aurez besoin de fournir la bonne quantité de soleil et la bonne.",
     (-0.73, -1.63, 4.42, -1.0, -10.8), False),
    # This one is refused, too: the reverse model does not repeat what the translation says once.
    (SUN, "Vous aurez besoin de fournir la bonne quantité de soleil et d'eau.",
     (-0.89, -0.17, 7.38, -0.54, -4.07), False),
]  # fmt: skip


@pytest.mark.parametrize(("best", "text", "numbers", "kept"), REAL)
def test_real_translations(best, text, numbers, kept):
    """Paraphrases pass; a translation that was cut, with its full stop or without, does not."""
    own = Candidate(best[0], len(best[0]), True, *best[1])
    assert (len(select([own, Candidate(text, len(text), False, *numbers)], Margins(), 4, Counter())) == 2) == kept


def test_scores_are_compared_with_the_best():
    class Fixed:
        """A scorer with given log-probabilities."""

        def __init__(self, known):
            self.known = known

        def log_probs(self, sources, outputs):
            pairs = list(enumerate(zip(sources, outputs, strict=True)))
            yield from ((row, np.array(self.known[pair])) for row, pair in reversed(pairs))

    back = Fixed({("s", "long"): [-1.0, -1, -2, -2, -9], ("s", "cut"): [-1.0, -1, -2, -8, 0], ("t", "own"): [-1.0, -9]})
    there = Fixed({("long", "s"): [-1.0, -3], ("cut", "s"): [-2.0, -6], ("own", "t"): [-1.0]})
    options = [[Candidate("long", 4, True), Candidate("cut", 3)], [], [Candidate("own", 3, True)]]
    found = score(back, there, ["s", "empty", "t"], options)
    assert found == [
        [Candidate("long", 4, True, -1.5, -5 / 3, 0.0, -2.0, -3.0), Candidate("cut", 3, False, -3, -11 / 3, 6, -4, -6)],
        [],
        [Candidate("own", 3, True, -1.0, -1.0, 0.0, -1.0, -1.0)],
    ]


def test_the_last_quarter_of_the_tokens_or_three_of_them():
    assert whole_and_tail(np.array([-1.0] * 12 + [-5.0] * 4)) == (-2.0, -5.0)
    assert whole_and_tail(np.array([-1.0, -1, -1, -5, -5, -5])) == (-3.0, -5.0)
    assert whole_and_tail(np.array([-1.0, -3.0])) == (-2.0, -2.0)
