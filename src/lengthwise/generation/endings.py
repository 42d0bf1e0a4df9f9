"""Endings: choose where a generated text stops: at its end, or at an earlier finished sentence, item or table row.

Takes one text and the model's scores of its tokens, chooses an end and says whether the text is complete there. A text
that stops in the middle of a sentence is returned with `complete` false, never cut in silence.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..length.blocks import block_ends, breaks_off
from ..length.budget import Budget
from ..length.fences import in_code
from ..length.sentences import finished, finished_ends

# A token is forced if the mask made it over 50 times as likely, relative to the best token: a full stop in the middle
# of a clause, letters that fill up the length. An ending is unforced if none of its last 8 tokens is forced.
MIN_AGREEMENT = 1 / 50
LAST_TOKENS = 8

_BEFORE_MARK = re.compile(r"(?:\s|(?<!\S)\*\*)+\Z")  # white space, and bold type that begins

Measure = Callable[[str, int], int]  # (text, tokens) -> length in the budget's unit


@dataclass(frozen=True)
class Draft:
    """A text as the model wrote it, before an end is chosen."""

    text: str
    reach: Sequence[int]  # for each token: characters of the text up to and including it
    agreement: Sequence[float]  # for each token: 1 if the mask did not change the choice, near 0 if it was forced
    end_ratio: float  # probability of the end over that of the best token; 0 if the text has no end token
    score: float  # mean over the tokens of log P(token) - log P(best token)
    ids: Sequence[int] = ()  # the tokens


EMPTY = Draft("", (), (), 0.0, 0.0)


@dataclass(frozen=True)
class Ending:
    """A choice of where the text stops."""

    text: str
    length: int
    tokens: int
    fits: bool
    complete: bool

    def rank(self, budget: Budget) -> tuple[bool, bool, float]:
        """Return a key, greater is better: a text that fits, then a complete one, then the one nearest the target."""
        if not self.fits:
            return False, self.complete, -float(budget.miss(self.length))
        return True, self.complete, -float(budget.distance(self.length))


def best_ending(draft: Draft, budget: Budget, measure: Measure, shown: int = 0, last: str = "") -> Ending:
    """Return the best ending of `draft`: all of it, or one of its finished prefixes of `shown` characters or more.

    `last`: an address with which the source ends; a text that ends with it as well is complete.
    """
    whole = draft.text.rstrip()

    def ending(text: str, tokens: int, complete: bool) -> Ending:
        length = measure(text, tokens)
        return Ending(text, length, tokens, bool(text) and budget.fits(length), complete)

    options = [ending(whole, len(draft.reach), _is_complete(draft, whole, last))]
    if code := _without_stop(draft, whole):
        bare = ending(code, bisect_left(draft.reach, len(code)) + 1, False)
        options = [bare] if bare.fits else options
    options += [ending(whole[:end], tokens, True) for end, tokens in unforced_ends(draft, whole) if shown <= end]
    return max(options, key=lambda option: option.rank(budget))


def without_odd_mark(ending: Ending, draft: Draft, budget: Budget, measure: Measure) -> Ending:
    """Return an ending of `draft` without a "!" or "?" that the mask forced behind it, if it fits without: "To be **!".

    For the best ending only: drafts that end without a mark are nearly one unit shorter, so others would be chosen.
    """
    if not draft.agreement or draft.agreement[-1] >= MIN_AGREEMENT or ending.text != draft.text.rstrip():
        return ending
    text = _BEFORE_MARK.sub("", ending.text[:-1]) if ending.text.endswith(("!", "?")) else ""
    tokens = bisect_left(draft.reach, len(text)) + 1
    length = measure(text, tokens)
    return (
        replace(ending, text=text, length=length, tokens=tokens, fits=True) if text and budget.fits(length) else ending
    )


def unforced_ends(draft: Draft, text: str) -> list[tuple[int, int]]:
    """Return (characters, tokens) of the finished proper prefixes of `text` whose ending was not forced."""
    found = sorted({*finished_ends(text), *block_ends(text)})
    ends = [(end, bisect_left(draft.reach, end) + 1) for end in found if end < len(text)]
    return [(end, tokens) for end, tokens in ends if _is_unforced(draft, tokens)]


def _is_complete(draft: Draft, whole: str, last: str) -> bool:
    if not whole or not _is_unforced(draft, len(draft.reach)):
        return False
    if last and whole.endswith(last):
        return True  # a full stop after it may be likelier, but the source has none
    if finished(whole) or block_ends(whole)[-1:] == [len(whole)]:
        return True
    # An end that is the model's best token is its own, but in code; a less likely one must not break the text off.
    broken = in_code(whole) if draft.end_ratio >= 1 else breaks_off(whole)
    return draft.end_ratio >= MIN_AGREEMENT and not broken


def _without_stop(draft: Draft, whole: str) -> str:
    """Return `whole` without a full stop that the mask forced behind unfinished code; empty if there is none."""
    forced = bool(draft.agreement) and draft.agreement[-1] < MIN_AGREEMENT
    return whole[:-1].rstrip() if forced and whole.endswith(".") and in_code(whole) else ""


def _is_unforced(draft: Draft, tokens: int) -> bool:
    """Return whether none of the last tokens up to here was forced."""
    return all(one >= MIN_AGREEMENT for one in draft.agreement[max(0, tokens - LAST_TOKENS) : tokens])
