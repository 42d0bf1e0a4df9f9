"""Realignment: the sentences of a document's output assigned to its references where their numbers differ.

Sentence scores (s-BLEU, s-chrF) need one output per reference. Whole output sentences are assigned in order: neighbours
may share a reference, and a reference may get none. The assignment with the largest number of shared character 3-grams
is found by dynamic programming. Each 3-gram has the weight ln(1 + m / its references), m being the number of
references, because one that is in all of them says nothing about which. Matusov et al. (2005) do the same with words
and the word error rate; here no sentence is split.
"""

from collections.abc import Sequence

import numpy as np

from .texts import Array

_ORDER = 3


def realign(outputs: Sequence[str], references: Sequence[str]) -> list[str]:
    """Return one text per reference, which together have every word of the outputs once and in order.

    As many outputs as references are returned unchanged.

    >>> realign(["A cat sat.", "It slept", "all day long."], ["The cat sat.", "It was asleep all day."])
    ['A cat sat.', 'It slept all day long.']
    """
    if len(outputs) == len(references):
        return list(outputs)
    if not references:
        raise ValueError(f"{len(outputs)} output sentences need at least one reference; got none")
    merged: list[list[str]] = [[] for _ in references]
    for text, place in zip(outputs, _assigned(_similarity(outputs, references)), strict=True):
        merged[place].append(text.strip())
    return [" ".join(filter(None, texts)) for texts in merged]


def _assigned(similarity: Array) -> list[int]:
    """Return the reference of each output: numbers that never decrease and have the largest sum of similarities."""
    sums: list[Array] = []  # (references,) for each output: the largest sum up to it, if it has this reference
    for row in similarity:
        sums.append(row + np.maximum.accumulate(sums[-1]) if sums else row)
    places: list[int] = []
    for row in reversed(sums):
        places.append(int(row[: places[-1] + 1 if places else None].argmax()))
    return places[::-1]


def _similarity(outputs: Sequence[str], references: Sequence[str]) -> Array:
    """Return the weighted number of 3-grams that each output shares with each reference: (outputs, references)."""
    n, m = len(outputs), len(references)
    found: dict[str, list[int]] = {}
    for place, text in enumerate(references):
        for gram in _grams(text):
            found.setdefault(gram, []).append(place)
    inverted = {gram: (np.array(places), np.log1p(m / len(places))) for gram, places in found.items()}
    # Where no 3-gram decides, a sentence keeps its relative position in the document.
    similarity: Array = -1e-9 * np.abs((np.arange(n)[:, None] + 0.5) / n - (np.arange(m) + 0.5) / m)
    for row, text in zip(similarity, outputs, strict=True):
        for gram in _grams(text) & inverted.keys():
            places, weight = inverted[gram]
            row[places] += weight
    return similarity


def _grams(text: str) -> set[str]:
    padded = f" {' '.join(text.lower().split())} "  # a text of one character has a 3-gram, too
    return {padded[start : start + _ORDER] for start in range(len(padded) - _ORDER + 1)}
