"""Consistency: is a term translated alike throughout a document?

A *term* is a source word that is in at most half as many documents as it would be if its occurrences were spread at
random (residual IDF ≥ ln 2, Church & Gale 1995): "macro" and "footnote", not "the" and "also". No list of function
words is needed, but documents of one corpus. Words are cut to 5 letters, so that most inflected forms are one word.

The translation of a term in a sentence is the output word e with the highest √(t(e|f) · t(f|e)), if that is at least
0.1. Both tables are those of IBM model 1 (Brown et al. 1993), fitted on the sources and their first references. The
output has no part in them, so all systems share one table. A term in k sentences of a document has k − 1 repetitions.
Those with the document's most frequent translation of it are alike: of "datei datei file datei", 2 of 3. A sentence
without a translation of the term differs from all others, and a term without any is left out.

Reference translations vary too, and a compound ("Tabellenfeld") hides a term: compare with `consistency-ref`, the same
for the references. Lyu et al. (2021) count pairs of occurrences, so that a term in 50 sentences weighs as 1225 pairs.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
import regex

from .tally import Tally, ratio_of
from .texts import Texts

Lexicon = dict[tuple[str, str], float]  # (source word, target word) -> √(t(e|f) · t(f|e))

_WORD = regex.compile(r"[\p{L}\p{M}]{2,}")
_LETTERS = 5  # of a word that are compared
_LEAST = 0.1  # association of a term and its translation
_ITERATIONS = 5
_SIGNATURE = f"consistency|of:term-repetitions|words:{_LETTERS}-letters-lc|table:ibm1-src-ref|least:{_LEAST}|v1"


def consistency(texts: Texts, _: str = "", *, of_references: bool = False) -> Tally:
    """Return the share of term repetitions with the document's most frequent translation; 0 if there are no terms."""
    sources, references = tuple(texts.srcs or ()), tuple(refs[0] for refs in texts.refs or ())
    outputs, lexicon = references if of_references else texts.hyps, _lexicon(sources, references)
    terms = _terms([_words(text) for text in texts.as_documents().srcs or ()])
    occurrences: dict[object, dict[str, list[str | None]]] = {name: {} for name in texts.docs or ()}
    for name, source, output in zip(texts.docs or (), sources, outputs, strict=True):
        there = set(_words(output))
        for term in terms.intersection(_words(source)):
            found = max(((lexicon.get((term, word), 0.0), word) for word in there), default=(0.0, ""))
            occurrences[name].setdefault(term, []).append(found[1] if found[0] >= _LEAST else None)
    counts = [np.sum([(0, 0), *map(_alike, found.values())], axis=0) for found in occurrences.values()]
    return ratio_of(np.array(counts, dtype=np.float64), _SIGNATURE)  # one row per document


def _alike(translations: list[str | None]) -> tuple[int, int]:
    """Return how many repetitions are alike, and how many there are.

    >>> _alike(["datei", "datei", "file", None, "datei"]), _alike([None, None])
    ((2, 4), (0, 0))
    """
    found = Counter(word for word in translations if word is not None)
    return (max(found.values()) - 1, len(translations) - 1) if found else (0, 0)


def _words(text: str) -> list[str]:
    return [word[:_LETTERS] for word in _WORD.findall(text.lower())]


def _terms(documents: Sequence[list[str]]) -> set[str]:
    """Return the words that are in at most half as many documents as if they were spread at random."""
    sizes = np.array([len(words) for words in documents], dtype=np.float64)
    shares = sizes / max(1, sizes.sum())  # of a random occurrence to be in each document
    occurrences = Counter(word for words in documents for word in words)
    spread = Counter(word for words in documents for word in set(words))
    expected = {count: (1 - np.exp(-count * shares)).sum() for count in set(occurrences.values())}
    return {word for word, count in occurrences.items() if 2 * spread[word] <= expected[count]}


@lru_cache(maxsize=2)  # of the output, of the reference and of a second system it is the same
def _lexicon(sources: tuple[str, ...], references: tuple[str, ...]) -> Lexicon:
    """Return the association of each source word with each target word of the same sentence."""
    left, right = ([list(dict.fromkeys(_words(text))) for text in side] for side in (sources, references))
    there, back = _ibm1(left, right), _ibm1(right, left)
    return {(f, e): (p * back[e, f]) ** 0.5 for (f, e), p in there.items() if f}


def _ibm1(sources: Sequence[list[str]], targets: Sequence[list[str]]) -> Lexicon:
    """Return t(target word | source word) by expectation maximisation; "" is the source word of what has none."""
    known = {word: n for n, word in enumerate(dict.fromkeys(["", *chain(*sources)]))}
    other = {word: n for n, word in enumerate(dict.fromkeys(chain(*targets)))}
    parts, seen = [], 0
    for source, target in zip(sources, targets, strict=True):
        rows, columns = np.array([known[word] for word in ("", *source)]), [other[word] for word in target]
        pairs = np.stack(np.broadcast_arrays(rows[:, None], columns, seen + np.arange(len(columns))))
        parts.append(pairs.reshape(3, -1).astype(np.int64))
        seen += len(columns)
    f, e, token = np.concatenate(parts, axis=1)  # one entry for each pair of words of each sentence
    width = max(1, len(other))
    pairs, entry = np.unique(f * width + e, return_inverse=True)
    p, of = np.ones(len(pairs)), pairs // width
    for _ in range(_ITERATIONS):
        expected = p[entry] / np.bincount(token, p[entry])[token]
        counts = np.bincount(entry, expected)
        p = counts / np.bincount(of, counts)[of]
    names, others = list(known), list(other)
    return {(names[n // width], others[n % width]): share for n, share in zip(pairs.tolist(), p.tolist(), strict=True)}
