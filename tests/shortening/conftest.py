"""Fixture: a shortener with a tiny random model. Its choices have no meaning; its guarantees must hold."""

import pytest

from families import tiny
from lengthwise import Shortener, Writer


@pytest.fixture(scope="module")
def shortener(byte_bpe):
    return Shortener(Writer(tiny("llama", byte_bpe), byte_bpe, name="tiny"))
