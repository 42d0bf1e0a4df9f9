"""Pause the garbage collector while modules and weights are loaded.

Nearly all objects created at start-up stay alive, so repeated collections only cost time.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable garbage collection inside the block, and enable it afterwards if it was enabled before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
