"""A line of text, its sentences, and how they share the room.

`Line` takes a line apart and puts it together again: nothing but the sentences changes. While they are translated it
says how much room each may take: what is left, in proportion to the lengths of those still open, so that what one
saves the next may use. It knows budgets and lengths; it knows neither models nor languages.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..generation.generator import Written
from ..length.budget import Budget
from ..length.sentences import finished_ends
from .placeholders import enclosed, hard_breaks, translatable


@dataclass(frozen=True)
class Part:
    """A sentence, or what stands between two and is carried over as it is."""

    text: str
    sentence: bool


def parts_of(text: str) -> list[Part]:
    """The text in parts: joined they are the text.

    >>> [part.text for part in parts_of("  One. Two!") if part.sentence]
    ['One.', 'Two!']
    """
    parts: list[Part] = []
    at = 0
    for start, end in [*hard_breaks(text), (len(text), len(text))]:
        parts += [*_sentences(text[at:start]), Part(text[start:end], False)]
        at = end
    return [part for part in parts if part.text]


def _sentences(text: str) -> list[Part]:
    if not text.strip():
        return [Part(text, False)]
    head, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    before, inside, after = enclosed(text.strip())
    if before:
        return [Part(head + before, False), *_sentences(inside), Part(after + tail, False)]
    parts: list[Part] = []
    at = 0
    for end in sorted({*finished_ends(inside), len(inside)}):
        sentence = inside[at:end].lstrip()
        parts += [Part(inside[at : end - len(sentence)], False), Part(sentence, translatable(sentence))]
        at = end
    return [Part(head, False), *parts, Part(tail, False)]


class Line:
    """A line under way. `budget`: in counts, or None where any length will do."""

    def __init__(self, text: str, budget: Budget | None, measure: Callable[[str], int], spaced: bool = True) -> None:
        self.text, self.budget, self.measure = text, budget, measure
        self.spaced = spaced  # does the target language put a space between sentences?
        self.parts = parts_of(text)
        self.places = [place for place, part in enumerate(self.parts) if part.sentence]
        self.sentences = [self.parts[place].text for place in self.places]
        self.done: dict[int, Written] = {}  # by number of the sentence
        self.options: dict[
            int, list[Written]
        ] = {}  # what a sentence was chosen from, where the line had its own search
        self.left_out: dict[tuple[int, str], str] = {}  # by number and translation: words of the sentence

    @property
    def open(self) -> list[int]:
        """The numbers of the sentences that are not done."""
        return [number for number in range(len(self.sentences)) if number not in self.done]

    def joined(self, chosen: Mapping[int, str]) -> str:
        """The line with these sentences in the places of its own."""
        texts = [part.text for part in self.parts]
        for number, text in chosen.items():
            place = self.places[number]
            meets = place > 0 and self.parts[place - 1].sentence  # behind 。 there is no space
            texts[place] = " " + text if meets and self.spaced else text
        return "".join(texts)

    def length(self, chosen: Mapping[int, Written]) -> int:
        """How long the line is with these sentences in it. Tokens are those that were written."""
        if self.budget is None or self.budget.unit != "tokens":
            return self.measure(self.joined({number: one.text for number, one in chosen.items()}))
        between = (part.text for part in self.parts if not part.sentence and part.text.strip())
        return sum(one.tokens for one in chosen.values()) + sum(map(self.measure, between))

    def share(self, number: int) -> Budget:
        """The room of one open sentence, if the others that are open take theirs."""
        assert self.budget is not None
        letter = Written("x", 1, self.budget.unit, "", True, True, "", 1)
        taken = self.length({n: self.done.get(n, letter) for n in range(len(self.sentences))}) - len(self.open)
        lengths = {n: max(1, self.measure(self.sentences[n])) for n in self.open}
        part = lengths[number] / sum(lengths.values())
        low = max(0, math.ceil((self.budget.low - taken) * part))
        aim = max(1, low, round((self.budget.target - taken) * part))
        if self.budget.high is None:
            return Budget(max(1, low), None, aim, self.budget.unit)
        high = max(1, math.floor((self.budget.high - taken) * part))
        return Budget(min(low, high), high, min(aim, high), self.budget.unit)

    def settle(self, options: Mapping[int, list[Written]]) -> None:
        """Takes what needs no more work: the first options if the line fits with them, else each that keeps its share.

        A sentence that settles leaves the others what it does not need, so it is asked again until no more settle.
        """
        if not self.open:
            return
        first = {number: options[number][0] for number in self.open if options.get(number)}
        if len(first) == len(self.open) and self._miss(self.done | first) == 0:
            self.done |= first
            return
        short = len(first) == len(self.open) and self._miss(self.done | first) < 0
        while found := {number: one for number in self.open if (one := self._within(number, options, short))}:
            self.done |= dict([next(iter(found.items()))])

    def _miss(self, chosen: Mapping[int, Written]) -> int:
        """How much too long the line is; below 0, too short."""
        if self.budget is None:
            return 0
        length = self.length(chosen)
        return self.budget.miss(length) * (-1 if length < self.budget.low else 1)

    def _within(self, number: int, options: Mapping[int, list[Written]], short: bool) -> Written | None:
        """The first option that takes no more than its share (of a line that is too short: no less).

        The last one that is open decides about the line, and has to keep both limits.
        """
        share, several = self.share(number), len(self.open) > 1
        for one in options.get(number, []):
            length = one.tokens if share.unit == "tokens" else self.measure(one.text)
            enough = length >= share.low or (several and not short)
            little = share.high is None or length <= share.high or (several and short)
            if enough and little:
                return one
        return None
