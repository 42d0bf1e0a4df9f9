"""A KV cache whose rows come and go: what each row has stored stays, and memory is returned."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.engines.kv_cache import KVCache, SlotCache


def filled(tokens, number):
    """Return a cache of one row whose keys and values are `number`."""
    cache = KVCache(layers=1, rows=1, heads=1, size=2)
    cache.reserve(tokens)
    cache.used[:] = tokens
    cache.buffers[:, :, :, :tokens] = number
    return cache


@given(st.lists(st.one_of(st.integers(1, 700), st.just("remove"), st.just("step")), max_size=40), st.randoms())
def test_rows_keep_what_they_have_stored(actions, random):
    slots, rows = SlotCache(layers=1, heads=1, size=2), []
    for number, action in enumerate(actions, 1):
        if action == "remove" and rows:
            row = random.randrange(len(rows))
            slots.remove(row)
            rows[row] = rows[-1]
            rows.pop()
        elif action == "step":
            slots.reserve(int(slots.used.max(initial=0)) + 1)
        elif action != "remove":
            slots.add(filled(action, number), 0)
            rows.append((action, number))
        assert slots.used.tolist() == [tokens for tokens, _ in rows]
        assert slots.buffers.shape[1] == len(rows)
        for row, (tokens, own) in enumerate(rows):
            assert (slots.buffers[:, row, :, :tokens] == own).all()


def test_memory_is_returned_when_many_rows_leave():
    slots = SlotCache(layers=1, heads=1, size=2)
    for _ in range(100):
        slots.add(filled(9, 1), 0)
    most = slots.buffers.base.nbytes
    for _ in range(98):
        slots.remove(0)
    slots.reserve(10)
    assert slots.buffers.base.nbytes < most / 4
    assert (np.asarray(slots.buffers)[:, :, :, :9] == 1).all()
