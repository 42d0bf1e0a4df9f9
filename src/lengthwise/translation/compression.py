"""Sentence compression: drop words of a source sentence, so that its translation is shorter.

A search within a limit omits the end of a sentence. Here the omitted words can be anywhere. First every run of a few
words is dropped alone, to find the length that it saves and the score that it costs. Then several runs are dropped
together: those that should save enough and cost least. The less must be saved, the shorter the runs are.
"""

import math
import re
from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np

MIN_RUN, MAX_RUN = 2, 4  # words of the longest run that is tried: few where little must be saved
MIN_WORDS = 4  # a sentence with fewer is not compressed
LONG_SENTENCE = 60  # words; from this length on, not every run is tried
MAX_RUNS = 3  # dropped together
RUNS_IN_TRIPLES = 24  # only the cheapest runs: all would give too many triples
_END = re.compile(r"[.!?…:;؟۔।。！？]+(?=[\"'”’»)\]]*$)")  # the marks that end a text
_PAUSES = ",;:—–-"
_LOWER = re.compile(r"[^\W\d_A-Z]+(?:['’-]\w+)?\W*")  # no name, address or placeholder
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"), ("«", "»"), ("“", "”"))
# Never dropped, because the rest would mean the opposite: in English, and the most common ones of five languages.
NEGATIONS = re.compile(
    r"\b(?:not|no|never|cannot|without|nor|neither|none|nothing|nobody|nowhere|unless|except|un\w*able"
    r"|ne|pas|jamais|sans|rien|aucun\w*|non|mai|senza|niente|nessun\w*|nunca|sin|nada"
    r"|nicht|nichts|kein\w*|nie|niemals|ohne)\b|\bn['’]|n['’]t\b",
    re.IGNORECASE,
)

DroppedWords = frozenset[int]  # positions in `text.split()`
Result = tuple[int, float]  # length and score of a translation


def runs(text: str, excess: float) -> list[DroppedWords]:
    """Return the runs that can be dropped: at most half of the sentence, without a negation.

    `excess`: the share of the length that must be saved. Two of the longest runs have that share of the words.

    >>> [sorted(dropped) for dropped in runs("Do not open it.", 0.2)]
    [[0], [2], [3], [2, 3]]
    """
    words = text.split()
    if len(words) < MIN_WORDS:
        return []
    longest = min(MAX_RUN, max(MIN_RUN, math.ceil(len(words) * excess / 2)), len(words) // 2)
    sizes, step = range(1, longest + 1), 1 + len(words) // LONG_SENTENCE
    found = [range(first, first + size) for size in sizes for first in range(0, len(words) - size + 1, step)]
    return [frozenset(run) for run in found if not any(NEGATIONS.search(words[place]) for place in run)]


def without(text: str, dropped: DroppedWords) -> str:
    """Return the text without these words. It keeps its first capital and its end marks.

    >>> without("Open the file, if you can.", frozenset([3, 4, 5]))
    'Open the file.'
    """
    words = text.split()
    left = [word for place, word in enumerate(words) if place not in dropped]
    if 0 in dropped and words[0][:1].isupper() and _LOWER.fullmatch(left[0]):
        left[0] = left[0][:1].upper() + left[0][1:]
    if len(words) - 1 in dropped:
        while len(left) > 1 and not left[-1].strip(_PAUSES):
            left.pop()
        last = left[-1].rstrip(_PAUSES)
        left[-1] = last if _END.search(last) else last + "".join(_END.findall(words[-1]))
    return " ".join(left)


def listed(text: str, dropped: DroppedWords) -> str:
    """Return the dropped words in the order of the text, with an ellipsis for each gap between them.

    >>> listed("Open the very old file now.", frozenset([2, 3, 5]))
    'very old … now.'
    """
    words = text.split()
    return " ".join(f"{'' if n == min(dropped) or n - 1 in dropped else '… '}{words[n]}" for n in sorted(dropped))


def balanced(text: str) -> bool:
    """Return whether every bracket and quotation mark is closed.

    >>> balanced("Open it (now."), balanced('Open "it" (now).')
    (False, True)
    """
    return text.count('"') % 2 == 0 and all(text.count(start) == text.count(end) for start, end in _PAIRS)


def combine_runs(
    words: int, tried: Mapping[DroppedWords, Result], full: Result, fits: Callable[[int], bool], limit: int
) -> list[DroppedWords]:
    """Return up to `limit` combinations of runs to drop, the cheapest first. At least half of `words` are kept.

    `tried`: the translation without each run. The length saved and the score lost are estimated as sums over the runs.
    """
    length, score = full
    saved = {run: length - shorter for run, (shorter, _) in tried.items() if shorter < length}
    cost = {run: score - tried[run][1] for run in saved}
    cheapest = sorted(saved, key=lambda run: cost[run] / saved[run])
    dropped = np.zeros((len(cheapest), words), np.bool_)
    for row, run in enumerate(cheapest):
        dropped[row, list(run)] = True
    savings, costs = (np.array([values[run] for run in cheapest]) for values in (saved, cost))
    found: list[tuple[float, list[int]]] = []
    for number in range(2, MAX_RUNS + 1):
        among = len(cheapest) if number == 2 else min(len(cheapest), RUNS_IN_TRIPLES)
        some = np.array(list(combinations(range(among), number)), np.int64).reshape(-1, number)
        count = dropped[some].sum(1)  # (combinations, words): how many of the runs have each word
        lengths = length - savings[some].sum(1)
        fitting = [one for one in np.unique(lengths).tolist() if fits(one)]
        good = (count.max(1, initial=0) == 1) & (count.sum(1) <= words // 2) & np.isin(lengths, fitting)
        found += zip(costs[some].sum(1)[good].tolist(), some[good].tolist(), strict=True)
    best: dict[DroppedWords, None] = {}
    for _, places in sorted(found, key=lambda one: one[0]):
        if len(best) == limit:
            break
        if (together := frozenset().union(*(cheapest[place] for place in places))) not in tried:
            best[together] = None
    return list(best)
