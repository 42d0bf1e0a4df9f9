"""A row's state is the measure of its text: read at once, advanced token by token, forked, dropped and moved."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from length_cases import KINDS, TEXTS, byte_words, everything, meters, spell
from lengthwise.constraint.length_state import LengthState
from lengthwise.length import utf8
from lengthwise.length.units import UNITS

NAMES = ("used", "used_at_end", "begun", "in_word", "utf8_state", "tokens", "last")
sample = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def values(state, row=0):
    return {name: getattr(state, name)[row].item() for name in NAMES} | {"written": state.written(row)}


def check_every_prefix(meter, text):
    ids = spell(meter, text)
    advanced = LengthState.of(meter, [[]])
    for t, token in enumerate(ids, 1):
        advanced.advance(np.array([token]))
        assert values(advanced) == values(LengthState.of(meter, np.array([ids[:t]]))), ids[:t]
        written = meter.spell(ids[:t])
        if meter.unit.name != "tokens" and not utf8.split(b"." + written)[2]:  # not inside a character
            assert advanced.used_at_end[0] == meter.unit.measure(written.decode()), (written.decode(), ids[:t])


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_the_state_after_every_token(request, kind, unit, text):
    check_every_prefix(meters(request, kind, unit), text)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
@sample
@given(text=everything)
def test_the_state_after_every_token_of_any_text(request, kind, unit, text):
    check_every_prefix(meters(request, kind, unit), text)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
@settings(sample, max_examples=10)
@given(some=st.lists(st.one_of(everything, st.sampled_from(TEXTS)), min_size=2, max_size=4), steps=st.integers(0, 12))
def test_rows_of_different_lengths_have_the_state_of_each_alone(request, kind, unit, some, steps):
    meter = meters(request, kind, unit)
    rows = [spell(meter, text) for text in some]
    wide = max(map(len, rows))
    steps = min(steps, wide)
    skip = np.array([max(0, wide - len(row) - steps) for row in rows])
    before = byte_words(meter, wide)
    rows = [[*before[:first], *row, *before][:wide] for first, row in zip(skip, rows, strict=True)]
    ids = np.array(rows, np.int64).reshape(len(rows), wide)
    advanced = LengthState.of(meter, [row[first : wide - steps] for row, first in zip(ids, skip, strict=True)])
    for at in range(wide - steps, wide + 1):
        whole = LengthState.of(meter, [row[first:at] for row, first in zip(ids, skip, strict=True)])
        alone = [LengthState.of(meter, [row[first:at]]) for row, first in zip(ids, skip, strict=True)]
        for n, one in enumerate(alone):
            assert values(whole, n) == values(one), at
            assert values(advanced, n) == values(one), at
        if at < wide:
            advanced.advance(ids[:, at])


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", KINDS)
@settings(sample, max_examples=10)
@given(data=st.data())
def test_rows_come_and_go(request, kind, unit, data):
    """In any order of steps (some rows advance, rows are selected, rows are added), each row is as if read alone."""
    meter = meters(request, kind, unit)
    text = st.one_of(everything, st.sampled_from(TEXTS))
    texts = [spell(meter, data.draw(text)) for _ in range(2)]
    state = LengthState.of(meter, texts)
    for _ in range(data.draw(st.integers(1, 8))):
        row = st.integers(0, len(texts) - 1)
        match data.draw(st.sampled_from(["advance", "select", "add"])):
            case "advance":
                rows = data.draw(st.lists(row, unique=True, min_size=1))
                possible = [(meter.utf8[state.utf8_state[n]] >= 0).nonzero()[0].tolist() for n in rows]
                tokens = [data.draw(st.sampled_from(some)) for some in possible]
                state.advance(np.array(tokens), rows)
                for n, token in zip(rows, tokens, strict=True):
                    texts[n] = [*texts[n], token]
            case "select":
                rows = data.draw(st.lists(row, min_size=1, max_size=5))
                state.select(rows)
                texts = [texts[n] for n in rows]
            case "add":
                new = [spell(meter, data.draw(text)) for _ in range(2)]
                state.add(new)
                texts += new
    assert len(state) == len(texts)
    for n, ids in enumerate(texts):
        assert values(state, n) == values(LengthState.of(meter, [ids]))
