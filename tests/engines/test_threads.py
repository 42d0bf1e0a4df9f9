"""OMP_NUM_THREADS as the engines read it."""

import pytest

from lengthwise.engines.threads import thread_limit, threads


@pytest.mark.parametrize(("given", "limit"), [("3", 3), ("2,1", 2), ("0", None), ("", None), ("many", None)])
def test_the_limit(monkeypatch, given, limit):
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert thread_limit() == limit
    assert threads() == limit or (limit is None and threads() >= 1)
