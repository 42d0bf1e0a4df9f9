"""Segments of a line: sentences to translate, and fixed text between them. The sentences share the line's budget.

The part of the budget that the chosen translations do not use is divided among the open sentences in proportion to
their lengths. So if one sentence is short, the next can be longer.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..length.budget import Budget
from ..length.sentences import finished_ends
from .placeholders import hard_breaks, translatable
from .records import Hypothesis
from .tags import Pair, find_pairs, inner_place

# The mark of a footnote, and tags that end, close a sentence as a bracket does.
_CLOSING = re.compile(r"(?<=[.!?…])(?:\{\d+\}|(?:</[A-Za-z][^<>]*>)+)(?=\s)")


class Segment(NamedTuple):
    """A sentence, or text that is copied."""

    text: str
    is_sentence: bool


def split(text: str) -> list[Segment]:
    """Return the segments of a line, in order and without gaps.

    >>> [segment.text for segment in split("  One. Two!") if segment.is_sentence]
    ['One.', 'Two!']
    """
    pairs, _ = find_pairs(text)
    segments: list[Segment] = []
    at = 0
    for start, end in [*hard_breaks(text), (len(text), len(text))]:
        segments += [*_split_sentences(text, pairs, at, start), Segment(text[start:end], False)]
        at = end
    return [segment for segment in segments if segment.text]


def _split_sentences(text: str, pairs: Sequence[Pair], at: int, end: int) -> Iterator[Segment]:
    """Yield the segments of a part of the line that has no line breaks."""
    first, last = inner_place(text, pairs, at, end)
    inside = _CLOSING.sub(lambda mark: ")" * len(mark[0]), text[first:last])
    begin = first
    for stop in sorted({*finished_ends(inside), len(inside)}):
        start, close = inner_place(text, pairs, begin, first + stop)
        yield Segment(text[at:start], False)
        yield Segment(text[start:close], translatable(text[start:close]))
        at, begin = close, first + stop
    yield Segment(text[at:end], False)


class Segments:
    """The state of a line during translation. Its sentences are numbered.

    `budget` is in counts; None allows any length. `spaced`: the target language has a space between sentences.
    """

    def __init__(self, text: str, budget: Budget | None, measure: Callable[[str], int], spaced: bool = True) -> None:
        self.text, self.budget, self.measure, self.spaced = text, budget, measure, spaced
        self.segments = split(text)
        self.places = [place for place, segment in enumerate(self.segments) if segment.is_sentence]
        self.sentences = [self.segments[place].text for place in self.places]
        self.chosen: dict[int, Hypothesis] = {}
        self.options: dict[int, list[Hypothesis]] = {}  # best first, for sentences that were searched within a share
        self.others: list[Hypothesis] = []  # for a line of one sentence, if candidates are asked for

    @property
    def open(self) -> list[int]:
        """The numbers of the sentences that have no translation yet."""
        return [number for number in range(len(self.sentences)) if number not in self.chosen]

    def join(self, chosen: Mapping[int, Hypothesis]) -> str:
        """Return the line with these translations in place of its sentences."""
        texts = [segment.text for segment in self.segments]
        for number, one in chosen.items():
            place = self.places[number]
            adjoining = place > 0 and self.segments[place - 1].is_sentence  # the source had no space, as after 。
            texts[place] = " " + one.text if adjoining and self.spaced else one.text
        return "".join(texts)

    def length(self, chosen: Mapping[int, Hypothesis]) -> int:
        """Return the length of the line with these translations. Tokens are counted as the model generated them."""
        if self.budget is None or self.budget.unit != "tokens":
            return self.measure(self.join(chosen))
        fixed = (segment.text for segment in self.segments if not segment.is_sentence and segment.text.strip())
        return sum(one.tokens for one in chosen.values()) + sum(map(self.measure, fixed))

    def sentence_length(self, one: Hypothesis) -> int:
        return one.tokens if self.budget and self.budget.unit == "tokens" else self.measure(one.text)

    def share(self, number: int) -> Budget:
        """Return the budget of one open sentence. The other open ones are assumed to use all of theirs."""
        assert self.budget is not None
        taken = self._least() - len(self.open)
        lengths = {n: max(1, self.measure(self.sentences[n])) for n in self.open}
        part = lengths[number] / sum(lengths.values())
        low = max(0, math.ceil((self.budget.low - taken) * part))
        target = max(1, low, round((self.budget.target - taken) * part))
        if self.budget.high is None:
            return Budget(max(1, low), None, target, self.budget.unit)
        high = max(1, math.floor((self.budget.high - taken) * part))
        return Budget(min(low, high), high, min(target, high), self.budget.unit)

    def _least(self) -> int:
        """Return the length of the line if each open sentence has one unit."""
        one_unit = Hypothesis(source="", text="x", tokens=1, complete=True)
        return self.length({n: self.chosen.get(n, one_unit) for n in range(len(self.sentences))})

    def settle(self, options: Mapping[int, list[Hypothesis]]) -> None:
        """Choose the first options if the line fits with them, or if what was chosen before leaves no room for others.

        Else choose options within their shares, if any.
        """
        if self.budget is None or not self.open:
            return
        first = {number: options[number][0] for number in self.open if options.get(number)}
        length = self.length(self.chosen | first) if len(first) == len(self.open) else None
        is_full = bool(self.chosen) and self.budget.high is not None and self._least() > self.budget.high
        if length is not None and (self.budget.fits(length) or is_full):
            self.chosen |= first
            return
        too_short = length is not None and length < self.budget.low
        while found := self._next_within_share(options, too_short):  # each choice changes the shares of the others
            self.chosen |= found

    def _next_within_share(self, options: Mapping[int, list[Hypothesis]], too_short: bool) -> dict[int, Hypothesis]:
        """Return the first open sentence that has an option within its share, with that option; else nothing.

        Only the share's maximum counts, or in a line that is too short its minimum; for the last open sentence, both.
        """
        several = len(self.open) > 1
        for number in self.open:
            share = self.share(number)
            for one in options.get(number, []):
                length = self.sentence_length(one)
                enough = length >= share.low or (several and not too_short)
                not_too_much = share.high is None or length <= share.high or (several and too_short)
                if enough and not_too_much:
                    return {number: one}
        return {}
