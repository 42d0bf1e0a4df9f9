"""Where should a written text end? The whole of it, or its longest finished part that the budget allows.

Sees one text and what is known of how it was written; chooses an end and says whether the text is complete there.
Never cuts in silence: a text that stops in the middle of a sentence is returned with `complete` false.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..length.budget import Budget
from ..length.sentences import finished, finished_ends

# A token is forced when the budget made it this much likelier than the model had it: a full stop in the middle of a
# clause, letters that fill up the room. An end is the model's own when none of its last tokens was forced.
FORCED = 1 / 50
LAST = 8


@dataclass(frozen=True)
class Draft:
    """A text as the model wrote it, before an end is chosen."""

    text: str
    reach: Sequence[int]  # for each token: how much of the text is there after it
    freedom: Sequence[float]  # for each token: near 0 where it was forced on the model
    end_ratio: float  # probability of the end over that of the favourite; 0 if the model wrote none
    score: float  # mean over the tokens: how near the text is to what the model would write unasked
    ids: Sequence[int] = ()  # the tokens


NOTHING = Draft("", (), (), 0.0, 0.0)


@dataclass(frozen=True)
class Ending:
    """A choice of where the text stops."""

    text: str
    length: int
    tokens: int
    fits: bool
    complete: bool

    def rank(self, budget: Budget) -> tuple[bool, bool, float]:
        """Greater is better: a text that fits, then a complete one, then the one nearest the target."""
        if not self.fits:
            return False, self.complete, -float(budget.miss(self.length))
        return True, self.complete, -float(budget.distance(self.length))


def choose(draft: Draft, budget: Budget, measure: Callable[[str, int], int], floor: int = 0) -> Ending:
    """The best ending of `draft`: all of it, or one of its finished prefixes of `floor` characters or more.

    `measure(text, tokens)` gives a length in the budget's unit.
    """
    whole = draft.text.rstrip()

    def ending(text: str, tokens: int, complete: bool) -> Ending:
        length = measure(text, tokens)
        return Ending(text, length, tokens, bool(text) and budget.fits(length), complete)

    options = [ending(whole, len(draft.reach), _complete(draft, whole))]
    options += [ending(whole[:end], tokens, True) for end, tokens in free_ends(draft, whole) if floor <= end]
    return max(options, key=lambda option: option.rank(budget))


def free_ends(draft: Draft, text: str) -> list[tuple[int, int]]:
    """(characters, tokens) of the finished prefixes of `text`, less the whole, that the model wrote freely."""
    ends = [(end, bisect_left(draft.reach, end) + 1) for end in finished_ends(text) if end < len(text)]
    return [(end, tokens) for end, tokens in ends if _free(draft, tokens)]


def _complete(draft: Draft, whole: str) -> bool:
    """Did the model mean to stop here, or at least end its sentence?"""
    if not whole or not _free(draft, len(draft.reach)):
        return False
    return finished(whole) or draft.end_ratio >= FORCED


def _free(draft: Draft, tokens: int) -> bool:
    """Was none of the last tokens up to here forced on the model?"""
    return all(freedom >= FORCED for freedom in draft.freedom[max(0, tokens - LAST) : tokens])
