"""Paragraph: keep a text to one paragraph without a list, a table or code, which seldom end at a given length."""

from functools import lru_cache

import numpy as np
import regex

from ..arrays import Array, converter
from ..length.meter import Integers, Meter
from ..length.vocabulary import Vocabulary

_OPENS_BLOCK = regex.compile(r"\n|```|~~~|\|")
_OPENS_SENTENCE = regex.compile(r"\p{Lu}|\p{Lt}|\p{Lo}")
_LOWERED = 1000.0  # nats: such a token is chosen only if no other is allowed


class Paragraph:
    """Lowers the scores of tokens that end the paragraph; at its start, of all that do not begin a sentence."""

    def __init__(self, meter: Meter) -> None:
        self._lowered = _tokens(meter.vocabulary)

    def apply(self, scores: Array, first: bool) -> Array:
        """Return the scores (rows, vocabulary) of the `first` step or a later one."""
        tokens = self._lowered[0 if first else 1]
        kept = scores + 0
        kept[:, converter(scores)(tokens[tokens < scores.shape[1]])] -= _LOWERED
        return kept


@lru_cache(maxsize=8)
def _tokens(vocabulary: Vocabulary) -> tuple[Integers, Integers]:
    """Return the tokens that do not begin a sentence, and those that begin a block. Cached: the vocabulary is large."""
    texts = vocabulary.texts
    first = [n for n, text in enumerate(texts) if _OPENS_SENTENCE.match(text) is None]
    later = [n for n, text in enumerate(texts) if _OPENS_BLOCK.search(text) is not None]
    return np.array(sorted({*first, *later})), np.array(later, np.int64)
