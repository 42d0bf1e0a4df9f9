"""Fixture: a shortener with a tiny random model. Its choices have no meaning; its guarantees must hold."""

import pytest

from families import tiny
from lengthwise import Shortener, Writer


@pytest.fixture(scope="module")
def shortener(byte_bpe):
    model = tiny("llama", byte_bpe)
    model.config.max_position_embeddings = 1024  # the prompt holds an example
    return Shortener(Writer(model, byte_bpe, name="tiny"))
