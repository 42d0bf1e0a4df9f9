"""Uncollected: no looks for garbage while much is made that stays.

Imports and models are nearly all that a start makes, and Python would look through it again and again. Knows neither.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
