"""Where should a written text end? The whole of it, or its longest finished part that the budget allows.

Sees one text and what is known of how it was written; chooses an end and says whether the text is complete there.
Never cuts in silence: a text that stops in the middle of a sentence is returned with `complete` false.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..budget import Budget
from ..sentences import finished, finished_ends

# A token is forced when the model itself preferred another by more than this factor: a full stop in the middle of a
# clause, letters that fill up the room. An end is the model's own when none of its last tokens was forced.
FORCED = 1 / 50
LAST = 8


@dataclass(frozen=True)
class Draft:
    """A text as the model wrote it, before an end is chosen."""

    text: str
    ids: Sequence[int]
    liking: Sequence[float]  # for each token: its probability over that of the model's favourite
    end_liking: float  # the same for the end-of-text token behind them; 0 if the model wrote none
    score: float  # mean log of `liking`: how near the text is to what the model would write unasked


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


def choose(
    draft: Draft, budget: Budget, measure: Callable[[str, int], int], spell: Callable[[Sequence[int]], str]
) -> Ending:
    """The best ending of `draft`: all of it, or one of its finished prefixes.

    `measure(text, tokens)` gives a length in the budget's unit; `spell(ids)` the text of tokens.
    """
    whole = draft.text.rstrip()
    lengths = _token_ends(draft, spell) if whole else []

    def ending(text: str, tokens: int, complete: bool) -> Ending:
        length = measure(text, tokens)
        return Ending(text, length, tokens, budget.fits(length), complete)

    options = [ending(whole, len(draft.ids), _complete(draft, whole))]
    for end in finished_ends(whole):
        if end < len(whole) and (tokens := _tokens_to(lengths, end)) and _free(draft, tokens):
            options.append(ending(whole[:end], tokens, True))
    return max(options, key=lambda option: option.rank(budget))


def _complete(draft: Draft, whole: str) -> bool:
    """Did the model mean to stop here, or at least end its sentence?"""
    if not whole:
        return False
    if not _free(draft, len(draft.ids)):
        return False
    return finished(whole) or draft.end_liking >= FORCED


def _free(draft: Draft, tokens: int) -> bool:
    """Was none of the last tokens up to here forced on the model?"""
    return all(liked >= FORCED for liked in draft.liking[max(0, tokens - LAST) : tokens])


def _token_ends(draft: Draft, spell: Callable[[Sequence[int]], str]) -> list[int]:
    """The number of characters written after each token."""
    return [len(spell(draft.ids[:n])) for n in range(1, len(draft.ids) + 1)]


def _tokens_to(lengths: list[int], end: int) -> int | None:
    """How many tokens write the first `end` characters."""
    return next((n for n, length in enumerate(lengths, 1) if length >= end), None)
