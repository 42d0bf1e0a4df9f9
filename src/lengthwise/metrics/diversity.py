"""Diversity: how much do outputs repeat themselves, and how varied are they together?"""

import numpy as np

from .tally import Tally, ratio_of, ratio_of_sums
from .texts import Texts


def repetition(texts: Texts, order: str = "4") -> Tally:
    """Return the share of n-grams that occurred before in the same output, over all outputs together.

    "a b a b a b" has bigrams ab ba ab ba ab: 3 of 5 are repeated.
    """
    if not order.isdecimal() or int(order) < 1:
        raise ValueError(f"n-grams have an order of at least 1, for example 'repetition:4'; got {order!r}")
    grams = [_ngrams(text, int(order)) for text in texts.hyps]
    counts = np.array([(len(seen) - len(set(seen)), len(seen)) for seen in grams], dtype=np.float64)
    return ratio_of(counts, f"repetition|ngram:{order}|words:ws-lc|v1")


def distinct(texts: Texts, _: str = "", *, order: int) -> Tally:
    """Return distinct n-grams / n-grams over all outputs (Li et al. 2016).

    It falls as the set grows, so compare sets of equal size. It has no interval: bootstrap resamples repeat texts.
    """
    seen: set[tuple[str, ...]] = set()
    counts = []
    for text in texts.hyps:
        grams = _ngrams(text, order)
        counts.append((len(set(grams) - seen), len(grams)))
        seen.update(grams)
    counted = np.array(counts, dtype=np.float64)
    return Tally(f"distinct|ngram:{order}|of:corpus|words:ws-lc|v1", counted, ratio_of_sums, resampled=False)


def _ngrams(text: str, order: int) -> list[tuple[str, ...]]:
    words = text.lower().split()
    return [tuple(words[at : at + order]) for at in range(len(words) - order + 1)]
