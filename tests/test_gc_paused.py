"""Python looks for garbage again afterwards, and only if it did before."""

import gc

import pytest

from lengthwise.gc_paused import gc_paused


@gc_paused()
def failing():
    raise RuntimeError("still on" if gc.isenabled() else "off")


@pytest.mark.parametrize("before", [True, False])
def test_is_afterwards_as_it_was_before_even_if_it_failed(before):
    try:
        (gc.enable if before else gc.disable)()
        with pytest.raises(RuntimeError, match="off"):
            failing()
        assert gc.isenabled() == before
    finally:
        gc.enable()
