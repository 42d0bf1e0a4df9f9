"""Mixtures: proportions, order, and resuming."""

from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.corpora import mix
from lengthwise.corpora.mixing import shuffled


def sources(sizes, weights):
    return [
        (lambda size=size, name=name: ((name, n) for n in range(size)), weight)
        for name, (size, weight) in enumerate(zip(sizes, weights, strict=True))
    ]


corpora = st.lists(st.tuples(st.integers(1, 30), st.floats(0.1, 10)), min_size=1, max_size=4)


@given(corpora, st.integers(0, 2**32), st.integers(1, 20), st.integers(0, 150), st.booleans())
@settings(deadline=None)
def test_mix_is_deterministic_and_resumable(corpora, seed, buffer, consumed, endless):
    made = sources(*zip(*corpora, strict=True))
    whole = list(islice(mix(made, seed, endless=endless, buffer=buffer), 200))
    assert list(islice(mix(made, seed, endless=endless, buffer=buffer), 200)) == whole
    rest = mix(made, seed, endless=endless, buffer=buffer, consumed=consumed)
    assert list(islice(rest, max(0, 200 - consumed))) == whole[consumed:]


@given(corpora, st.integers(0, 2**32), st.integers(1, 20))
@settings(deadline=None)
def test_one_epoch_has_everything_once(corpora, seed, buffer):
    sizes, weights = zip(*corpora, strict=True)
    found = list(mix(sources(sizes, weights), seed, buffer=buffer))
    assert sorted(found) == [(name, n) for name, size in enumerate(sizes) for n in range(size)]


def test_mix_keeps_proportions_and_shuffles_each_epoch_anew():
    found = list(islice(mix(sources([50, 50], [3, 1]), 1, endless=True, buffer=100), 4000))
    assert 2900 < sum(name == 0 for name, _ in found) < 3100
    first = [n for name, n in found if name == 0]
    epochs = [first[at : at + 50] for at in range(0, 2900, 50)]
    assert all(sorted(epoch) == list(range(50)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == len(epochs)
    assert list(islice(mix(sources([50, 50], [3, 1]), 2, endless=True), 4000)) != found


def test_mix_is_the_same_on_every_machine():
    found = [f"{name}{n}" for name, n in mix(sources([4, 3], [1, 2]), 7, buffer=2)]
    assert " ".join(found) == "01 10 12 11 00 03 02"


def test_unshuffled():
    assert list(shuffled(range(9), 1, Random(0))) == list(range(9))


@pytest.mark.parametrize(
    ("made", "options", "says"),
    [
        ([], {}, "nothing to mix"),
        (sources([1], [0]), {}, "above 0; got 0 for source 1"),
        (sources([1], [float("nan")]), {}, "above 0"),
        (sources([1], [1]), {"buffer": 0}, "buffer must be at least 1"),
        (sources([1], [1]), {"consumed": -1}, "consumed"),
    ],
)
def test_mix_refuses(made, options, says):
    with pytest.raises(ValueError, match=says):
        mix(made, **options)


def test_an_endless_mix_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="source 2 has no items in epoch 0"):
        list(islice(mix(sources([5, 0], [1, 1]), endless=True), 100))
