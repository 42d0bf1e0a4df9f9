"""Tails: where a text has not come to an end in time, its last stretch is written again, in several ways.

An exact length is met by force if need be: a full stop in mid-clause. The model may never have been told a length, and
one that was cannot plan for long. But most beginnings can be ended in time by some continuation that the model itself
finds natural; a few short ones cost less than as many whole texts. Where none will do, more is taken back.
Knows drafts; what is generated, and which end is best, is decided elsewhere.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from .endings import Draft

TAILS = (12, 24, 48)  # tokens that are taken back, in this order
EACH = 16  # continuations of each
LONGER = 3  # times what was taken back: so many tokens may be written in its place
DEEPEST = sum(TAILS)  # of a first draft: what is taken back may have been written again, and with fewer tokens


def beginning(draft: Draft, tail: int, pieces: Sequence[bytes], shown: int = 0) -> Draft:
    """`draft` without its last `tail` tokens, or a few less, so that a word begins there; of `shown` characters all."""
    cut = max(0, len(draft.ids) - tail, bisect_left(draft.reach, shown) + 1 if shown else 0)
    words = (n for n in range(cut, min(cut + 6, len(draft.ids))) if pieces[draft.ids[n]][:1].isspace())
    cut = next(words, cut) if cut else 0
    return replace(draft, reach=draft.reach[:cut], freedom=draft.freedom[:cut], ids=draft.ids[:cut])
