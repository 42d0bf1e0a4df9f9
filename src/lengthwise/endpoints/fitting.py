"""Fitting: a text within a budget without logits. Ask with a counted plan, measure, ask for another end.

There is one kind of request: continue a beginning to the end of the text, in so many units. The first call has no
beginning. If no reply has an end within the budget, the longest beginning that leaves room for a sentence is kept, and
the model writes another end for it ("last sentence first"); where that fails, a shorter beginning. Replies are measured
and cut only after a finished sentence. Knows neither HTTP nor threads: `ask` makes the calls.
"""

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from ..generation.endings import Ending
from ..length.budget import Budget
from ..length.sentences import finished, finished_ends
from ..length.units import unit_named
from .calls import Ask, Messages
from .client import Reply

ENDINGS = 4  # replies of a call for another end: the prompt is paid once, and the ends are short
TRIES = 2  # calls for the end of one beginning, before a shorter beginning is tried
MIN_END = 8  # words: the shortest end that is asked for
SENTENCE = 15  # words
MARGIN = 0.85  # of a maximum is asked for: models count badly
RECENT = 8  # replies by which the next length is corrected
MAX_GAIN = 0.7  # a length is at most about doubled or halved (e^0.7 = 2.0)
CHARS_PER_WORD, CHARS_PER_CJK_WORD = 6.0, 2.0  # with a space
UNIT_NAMES = {"chars": "characters", "chars-nospace": "characters without spaces", "cells": "columns"}
UNIT_NAMES |= {"graphemes": "characters", "tweet": "characters", "bytes": "bytes", "words": "words"}
UNIT_NAMES |= {"words-cjk": "words"}
_PREAMBLE = re.compile(
    r"\A(?:sure|certainly|of course|okay|ok|here(?:'s| is| are))\b"
    r"[^\n]{0,80}\b(?:words?|characters|sentences?|text|answer|response|version|translation|ending|continuation)\b[^\n]{0,80}:\s*\n+",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\s*[(\[](?:word count:? *|length:? *)?\d+ (?:words?|characters?|chars?)[)\]]\s*\Z", re.IGNORECASE)
_ENDS_IN_NUMBER = re.compile(r"[(\[（][^()\[\]（）]*\d[^()\[\]（）]*[)\]）]\W*\Z")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_QUOTED = re.compile(r'"([^"]+)"|“([^“”]+)”')


@dataclass(frozen=True)
class Found(Ending):
    """A text with its length. `whole`: the reply was not cut after one of its sentences."""

    whole: bool = True

    def quality(self, budget: Budget) -> tuple[Any, ...]:
        """Return a key, greater is better: it fits, it is complete, it is whole, it is near the target."""
        fits, complete, near = self.rank(budget)
        return fits, complete, self.whole, near

    def good(self, budget: Budget) -> bool:
        """Return whether no further call is worth its price. A short rest of a long reply is not."""
        return self.fits and self.complete and (self.whole or not budget.is_limit or 2 * self.length >= budget.target)


class Gains:
    """Received over requested lengths, by which the next length is corrected: models write too much or too little.

    Requests of two kinds have their own: those for a part of a text or for another text, and all others.
    """

    def __init__(self) -> None:
        self._logs: dict[bool, list[float]] = {True: [], False: []}

    def add(self, kind: bool, received: int, asked: float) -> None:
        """Note the length of a reply to a request for `asked` units."""
        self._logs[kind].append(math.log(max(received, 1) / asked))

    def corrected(self, kind: bool, target: float) -> float:
        """Return the length to ask for, so that the reply has about `target` units: 100 → 50 if replies had 2x."""
        gain = median(self._logs[kind][-RECENT:] or [0.0])
        return target / math.exp(min(max(gain, -MAX_GAIN), MAX_GAIN))


class Fitting:
    """The search for one text. `found` has every text seen, `drafts` the best one of each reply to the first call."""

    def __init__(self, prompt: str, budget: Budget, system: str | None, ask: Ask, candidates: int = 1) -> None:
        self.prompt, self.budget, self.system, self.ask, self.candidates = prompt, budget, system, ask, candidates
        self.unit = unit_named(budget.unit)
        self.per_word = per_word(budget.unit, prompt)
        self.found: list[Found] = []
        self.drafts: list[Found] = []
        self.beginnings: dict[str, str] = {"": ""}  # finished beginnings, each with the white space after it
        self.tried: Counter[str] = Counter()
        self.gains = Gains()  # of requests with a beginning, and without
        self.net = True  # send max_tokens

    @property
    def best(self) -> Found | None:
        return max(self.found, key=lambda one: one.quality(self.budget), default=None)

    @property
    def others(self) -> list[Found]:
        """The other drafts, the best first."""
        ranked = sorted(self.drafts, key=lambda one: one.quality(self.budget), reverse=True)
        return [one for one in ranked if one is not self.best][: self.candidates - 1]

    def run(self, calls_left: Callable[[], bool]) -> None:
        """Make calls until a good text is found or no call is left."""
        while calls_left() and not (self.best and self.best.good(self.budget)):
            self.step(self._next_beginning())

    def step(self, kept: str) -> None:
        """Make one call: ask for the text after `kept`, and measure what comes."""
        aim, first = self._aim(kept), not self.found
        replies = self.ask(self._messages(kept, aim), self._replies(kept), self._max_tokens(aim))
        self.tried[kept] += 1
        for reply in replies:
            rest = self._rest(reply, kept)
            if not rest:
                self.net = self.net and reply.ended  # a reasoning model may use up max_tokens before its text begins
                continue
            received = self.unit.measure(rest)
            if reply.ended:
                self.gains.add(bool(kept), received, aim)
            elif received < aim:
                self.net = False  # the text has more tokens than expected
            best = self._measure(kept, rest, reply)
            self.drafts += [best] if first else []

    def add(self, reply: Reply) -> None:
        """Add a text that was received before. Its end is asked for again if it is not good."""
        if rest := bare(reply.text):
            self.drafts.append(self._measure("", rest, reply))

    # ---- measuring

    def _measure(self, kept: str, rest: str, reply: Reply) -> Found:
        """Add the text `kept` + `rest` and its finished beginnings to what was found, and return the best of them."""
        text = kept + self._space(kept, reply) + rest if kept else rest
        moved = reply.text.find(rest) - (len(text) - len(rest))  # from offsets of the text to those of the reply

        def free(end: int) -> bool:
            return end > len(kept) and not any(end + moved in some for some in reply.forced)

        complete = free(len(text)) and self._is_complete(text, kept, reply)
        seen = [self._found(text, complete, whole=reply.ended)]
        for end in filter(free, self._ends(text)):
            if end < len(text):
                seen.append(self._found(text[:end], complete=True, whole=False))
        self.found += seen
        best = max(seen, key=lambda one: one.quality(self.budget))
        self._add_beginnings(text, free, best)
        return best

    def _is_complete(self, text: str, kept: str, reply: Reply) -> bool:
        """Return whether a text that was not forced to end here is complete."""
        return finished(text) or (reply.ended and not kept)

    def _ends(self, text: str) -> list[int]:
        """Return the offsets where the text may be cut."""
        return finished_ends(text)

    def _add_beginnings(self, text: str, free: Callable[[int], bool], best: Found) -> None:
        """Note the beginnings of `text` that another end may be written for; `best`: its best ending."""
        for end in filter(free, finished_ends(text)):
            after = text[end : len(text) - len(text[end:].lstrip())]
            self.beginnings.setdefault(text[:end], after or _space_after(text[:end]))

    def _space(self, kept: str, reply: Reply) -> str:
        """Return the white space between `kept` and its new end."""
        return self.beginnings[kept]

    def _rest(self, reply: Reply, kept: str) -> str:
        """Return the text of a reply that comes after `kept`."""
        return _rest(bare(reply.text), kept)

    def _found(self, text: str, complete: bool, whole: bool) -> Found:
        length = self.unit.measure(text)
        return Found(text, length, 0, self.budget.fits(length), complete, whole)

    # ---- the plan

    def _replies(self, kept: str) -> int:
        """Return how many replies to ask for."""
        return max(self.candidates, ENDINGS) if kept else self.candidates

    def _next_beginning(self) -> str:
        """Return the beginning to continue: the one tried least that leaves the least room, but room for a sentence."""
        room = {kept: self.budget.target - self.unit.measure(kept) for kept in self.beginnings}
        roomy = [kept for kept in room if room[kept] >= MIN_END * self.per_word] or [""]
        return min(roomy, key=lambda kept: (self.tried[kept] // TRIES, room[kept]))

    def _aim(self, kept: str) -> float:
        """Return how many units to ask for after `kept`: the target, corrected by how replies missed theirs so far."""
        target = self.budget.target * (MARGIN if self.budget.is_limit else 1.0) - self.unit.measure(kept)
        target = max(target, MIN_END * self.per_word if kept else 1.0)
        return self.gains.corrected(bool(kept), target)

    def _max_tokens(self, aim: float) -> int | None:
        """Return twice the tokens that the text should need, so that a model that does not end costs no more."""
        words = aim / self.per_word
        return 24 + math.ceil((3 if self.prompt.isascii() else 9) * words) if self.net else None

    def _messages(self, kept: str, aim: float) -> Messages:
        start: Messages = [{"role": "system", "content": self.system}] if self.system else []
        words = max(1, round(aim / self.per_word))
        sentences = max(1, round(words / SENTENCE))
        counted = f"{sentences} sentence{'s' * (sentences > 1)}"
        unit = UNIT_NAMES[self.budget.unit]
        exact = "exactly" if self.budget.low == self.budget.high else "about"
        in_words = "" if unit == "words" else f", that is about {words} words"
        limit = str(self.budget).replace(self.budget.unit, unit).replace("~", "about ")
        if not kept:
            plan = f"{counted} of {words} words in all" if sentences > 1 else f"one sentence of {words} words"
            # A corrected number contradicts the limit, so only the first request names the limit.
            length = f"Plan {plan}." if self.found else f"Length: {limit}. Plan {plan}."
            ask = f"{self.prompt}\n\n{length} Write only the text."
            return [*start, {"role": "user", "content": ask}]
        more = f"{counted} more" if sentences > 1 else "one last sentence"
        # Short on purpose: small models talk about longer instructions instead of following them.
        ask = f"Continue with {more} of {exact} {round(aim)} {unit}{in_words}."
        return [
            *start,
            {"role": "user", "content": self.prompt},
            {"role": "assistant", "content": kept},
            {"role": "user", "content": ask},
        ]


def per_word(unit: str, text: str) -> float:
    """Return how many units a word has, in the script of `text`."""
    if unit in ("words", "words-cjk"):
        return 1.0
    return CHARS_PER_CJK_WORD if _CJK.search(text) else CHARS_PER_WORD


def bare(reply: str, source: str = "") -> str:
    """Return the reply without what some models put around a text: an announcement, quotation marks, a word count.

    Quotation marks and a number in brackets stay where the text that was reworded, `source`, has them.
    """
    text = _PREAMBLE.sub("", reply.strip(), count=1)
    text = text if _ENDS_IN_NUMBER.search(source) else _COUNT.sub("", text).strip()
    quoted = None if source.startswith(('"', "“")) else _QUOTED.fullmatch(text)
    return (quoted[1] or quoted[2]).strip() if quoted else text


def _rest(reply: str, kept: str) -> str:
    """Return the part of a reply that comes after `kept`. Some models repeat the text that they are to continue."""
    if not kept:
        return reply
    reply, start = reply.removeprefix(kept), 0
    for end in finished_ends(reply):  # repeated sentences at the start
        if reply[start:end].strip() not in kept:
            break
        start = end
    return reply[start:].strip()


def _space_after(text: str) -> str:
    return "" if text[-1] in "。！？」』" else " "
