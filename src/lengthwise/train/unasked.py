"""Models that do not wait for the device in the middle of a step.

The decoders of BART's family make a mask of ones where they are given none, and then ask the device whether it hides
anything: in every step the processor waits until the GPU has done all that it was given, and only then goes on to give
it more. While PyTorch compiles they do not ask, so here they are told that it does. Knows that one question of theirs.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..attachment import core_of

_QUESTION = "is_torchdynamo_compiling"


@contextmanager
def unasked(model: Any) -> Iterator[None]:
    """Inside, a decoder that is given no mask uses none: right for batches that are padded on the right."""
    # Where transformers wrote the model down; a sharded model is of a class made from that.
    kinds = [kind.__module__ for kind in type(core_of(model)).__mro__ if "transformers.models" in kind.__module__]
    source = sys.modules[kinds[0]] if kinds else None
    if not hasattr(source, _QUESTION):
        yield
        return
    answer = getattr(source, _QUESTION)
    setattr(source, _QUESTION, lambda: True)
    try:
        yield
    finally:
        setattr(source, _QUESTION, answer)
