"""Variants: shorter forms of a sentence, drawn at random from the parts that rules allow to leave out.

The search of `leaving_out.py` reads what is kept with a language model. Here nothing is read: for training data, models
choose among many variants later (`distill/shorter_pairs.py`).
"""

import math
import random
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate

from . import words
from .deletions import Deletion, deletions
from .joining import form_of, is_fragment, may_end, with_conjunction
from .pieces import FINAL, Piece, join_pieces, split_pieces

DRAWS = 96  # of a sentence; most are drawn several times or are no sentences
BIASES = (-1.0, 0.0, 1.0, 2.0)  # nats in favour of every deletion: for variants of different lengths
MAX_COST = 3.3  # of a part: no head of a phrase, no condition
REDUCED = 0.4  # cost of "that is" in "the file that is open"
# Lengths, in shares of the sentence's characters.
SHORTEST, LONGEST = 0.33, 0.9
RANGES = (0.5, 0.6, 0.7, 0.8, LONGEST)  # the ends of ranges
_BE = ("is", "are", "was", "were")
# Abbreviations: a reader accepts them in a label, not in every text.
TERSE = frozenset({"&", ":", "not", "info", "app", "apps", "max.", "min.", "e.g.", "%", "till", "us", "uk", "eu"})
# "N/A" is not in the training data either, but it is judged: without that it was chosen in a string that has room for
# "not available".
_NOT_DRAWN = TERSE | {"n/a"}


def variants(sentence: str, seed: int, each: int = 3) -> list[str]:
    """Return shorter forms of a sentence: in each range of lengths, the `each` that leave out least by the rules."""
    source = split_pieces(sentence)
    if not source:
        return []
    parts: list[list[Deletion]] = [[] for _ in range(len(source) + 1)]
    for one in _parts(source):
        parts[one.start].append(one)
    weights = [
        [list(accumulate((1.0, *(math.exp(bias - one.cost) for one in some)))) for some in parts] for bias in BIASES
    ]
    rng, costs = random.Random(seed), dict[str, float]()
    for number in range(DRAWS):
        drawn = _draw(source, parts, weights[number % len(BIASES)], rng)
        if drawn is not None:
            text, cost = drawn
            costs[text] = min(cost, costs.get(text, math.inf))
    found: list[str] = []
    for low, high in zip((SHORTEST, *RANGES), RANGES, strict=False):
        some = (text for text in costs if low * len(sentence) < len(text) <= high * len(sentence))
        found += sorted(some, key=lambda text: (costs[text], text))[:each]
    return found


def _parts(source: Sequence[Piece]) -> Iterator[Deletion]:
    for one in deletions(source):
        if one.instead is not None:
            if one.instead.lower not in _NOT_DRAWN:
                yield one
        elif one.cost <= MAX_COST and not _splits_coordination(source, one):
            yield one
    for place in range(1, len(source) - 2):
        relative, verb, following = source[place : place + 3]
        relates = relative.lower in ("that", "which", "who") and source[place - 1].is_word
        if relates and verb.lower in _BE and not words.is_negation(following):
            yield Deletion(place, place + 2, REDUCED)


def _splits_coordination(source: Sequence[Piece], one: Deletion) -> bool:
    """Return whether what is left out may belong to what stands beyond a conjunction.

    "text and (mathematics) fonts", "snapping (and dumping) the crossers", "(on a range of English) and Chinese texts".
    """
    following = source[one.end] if one.end < len(source) else None
    if following is None or not following.is_word:
        return False
    after_conjunction = one.start > 0 and source[one.start - 1].lower in words.CONJUNCTIONS
    if after_conjunction and words.is_content(following):
        return True
    if source[one.start].lower in words.CONJUNCTIONS:
        return words.is_content(following) or following.lower in words.DETERMINERS
    if following.lower in words.CONJUNCTIONS and one.end + 1 < len(source):
        joined = source[one.end + 1]
        clause = words.may_be_verb(joined) or joined.lower in words.DETERMINERS | words.PRONOUNS | words.PREPOSITIONS
        return any(map(words.is_content, source[one.start : one.end])) and not clause
    return False


def _draw(
    source: Sequence[Piece], parts: Sequence[Sequence[Deletion]], weights: Sequence[list[float]], rng: random.Random
) -> tuple[str, float] | None:
    """Return a variant and its cost; None if its pieces cannot stand side by side or are no sentence."""
    kept: list[Piece] = []
    places: list[int | None] = []
    place, after, cost = 0, 0, 0.0  # after: the place after the last piece that is kept
    while place < len(source):
        total = weights[place]
        chosen = bisect(total, rng.random() * total[-1]) if len(total) > 1 else 0
        part = parts[place][chosen - 1] if chosen else None
        piece = source[place] if part is None else part.instead
        end = place + 1 if part is None else part.end
        if piece is not None:
            form = form_of(piece, place, kept, after, source)
            if form is None:
                return None
            kept.append(form)
            places.append(place if part is None else None)
            after = end
        cost += part.cost if part else 0.0
        place = end
    if not kept or not cost or not may_end(kept[-1]) or is_fragment(kept, source):
        return None
    if (kept[-1].text in FINAL) != (source[-1].text in FINAL):
        return None
    return join_pieces(with_conjunction(tuple(kept), tuple(places), source)[0]), cost
