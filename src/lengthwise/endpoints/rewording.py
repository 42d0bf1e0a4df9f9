"""Rewording: a text in other words within a budget without logits, such as a translation or a shorter text.

Ask with a counted plan, measure, ask again for the part that is off: the one sentence that can make up for it, or
the placeholders that were lost. Replies are never cut, because a part of a translation would be wrong. Knows neither
HTTP nor threads: `ask` makes the calls.
"""

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..generation.endings import Ending
from ..length.budget import Budget
from ..length.sentences import finished_ends
from ..length.units import unit_named
from .calls import Ask, Messages
from .fitting import ENDINGS, MARGIN, TRIES, UNIT_NAMES, Gains, bare, per_word

MIN_SHARE = 0.4  # of its length, to which a sentence is shortened alone; else the whole text is asked for again
RUNAWAY = 3.0  # times the source's length, and some characters: more is no translation, but a talk about it
_LABEL = re.compile(r"[^\n]{0,60}:")
_DIGITS = re.compile(r"\d+")
# In the line of the text: "Here is the translation: ", "Shortened text: "
_SAME_LINE_LABEL = re.compile(
    r"\s*(?:(?:sure|certainly|of course|okay|ok|here(?:['’]s| is| are))\b[^\n:]{0,80}\b|(?:\w+[ ]){0,2})"
    r"(?:translation|translated|shorter|shortened|rewritten|reworded)\b[^\n:]{0,40}:[ \t]+(?=\S)",
    re.IGNORECASE,
)
_COLON = re.compile(r":\s|：")


@dataclass(frozen=True)
class Reworded(Ending):
    """A text with its length. `lost`: placeholders that are not as in the source."""

    lost: tuple[str, ...] = ()

    def quality(self, budget: Budget | None) -> tuple[Any, ...]:
        """Return a key, greater is better: placeholders are kept, it fits, it is complete, it is near the target."""
        return -len(self.lost), *((True, self.complete, 0.0) if budget is None else self.rank(budget))

    @property
    def good(self) -> bool:
        return self.fits and self.complete and not self.lost


class Rewording:
    """The search for one text. `task`: what is to be done with the source, as a sentence.

    `lost`: returns the placeholders that a text does not have as the source has them; `keep`: those of the source.
    """

    def __init__(
        self,
        task: str,
        source: str,
        budget: Budget | None,
        ask: Ask,
        *,
        lost: Callable[[str], list[str]],
        keep: list[str],
        candidates: int = 1,
    ) -> None:
        self.task, self.source, self.budget, self.ask = task, source.strip(), budget, ask
        self.lost, self.keep, self.candidates = lost, keep, candidates
        self.unit = unit_named("chars" if budget is None else budget.unit)
        self.per_word = per_word(self.unit.name, source)
        self.found: list[Reworded] = []
        self.tried: Counter[str] = Counter()
        self.gains = Gains()  # of requests for another text, and for the first
        self.net = True  # send max_tokens

    @property
    def ranked(self) -> list[Reworded]:
        """The different texts, best first."""
        return list(dict.fromkeys(sorted(self.found, key=lambda one: one.quality(self.budget), reverse=True)))

    @property
    def best(self) -> Reworded | None:
        return next(iter(self.ranked), None)

    def run(self, calls_left: Callable[[], bool]) -> None:
        """Make calls until a good text is found or no call is left."""
        while calls_left() and not (self.best and self.best.good):
            options: list[Reworded | None] = [*self.ranked[:TRIES], None]
            self.step(min(options, key=lambda one: self.tried[one.text if one else ""] // TRIES))

    def step(self, old: Reworded | None) -> None:
        """Make one call: ask for the text, or for another one in place of `old`, and measure what comes."""
        first = not self.tried
        self.tried[old.text if old else ""] += 1
        part = self._part(old) if old else (0, 0)
        head, tail = (old.text[: part[0]], old.text[part[1] :]) if old else ("", "")
        around = self.unit.measure(head) + self.unit.measure(tail)
        aim = self._aim(around, old is not None)
        messages = self._again(old, part, aim) if old else self._first(aim)
        for reply in self.ask(messages, self.candidates if first else ENDINGS, self._max_tokens(aim)):
            new = self._clean(reply.text)
            text = "" if self._repeats(messages[-1]["content"], new) else _joined(head, new, tail)
            if not text:
                self.net = self.net and reply.ended  # a reasoning model may use up max_tokens before its text begins
                continue
            if aim and reply.ended:
                self.gains.add(old is not None, self.unit.measure(text) - around, aim)
            self.net = self.net and (reply.ended or len(reply.text) > 2 * len(self.source))
            self.found.append(self._measured(text, reply.ended))

    # ---- measuring

    def _measured(self, text: str, ended: bool) -> Reworded:
        length = self.unit.measure(text)
        complete = ended and len(text) <= RUNAWAY * len(self.source) + 40
        fits = self.budget is None or self.budget.fits(length)
        return Reworded(text, length, 0, fits, complete, tuple(self.lost(text)))

    def _clean(self, reply: str) -> str:
        """Return a reply without what is around the text: of a source in one line, the first line with a text."""
        label = None if _COLON.search(self.source) else _SAME_LINE_LABEL.match(reply)
        text = bare(reply[label.end() :] if label else reply, self.source)
        if "\n" in self.source:
            return text
        lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
        announces = len(lines) > 1 and _LABEL.fullmatch(lines[0]) and not self.source.endswith(":")
        return lines[1] if announces else lines[0]

    def _repeats(self, request: str, reply: str) -> bool:
        """Return whether a sentence of the reply is one of the request, as weak models write ("This has 41 chars.")."""
        request, source = (_DIGITS.sub("0", text) for text in (request.removesuffix(self.source), self.source))
        text, start = _DIGITS.sub("0", reply), 0
        for end in [*finished_ends(text), len(text)]:
            sentence, start = text[start:end].strip(), end
            if len(sentence.split()) > 2 and sentence in request and sentence not in source:
                return True
        return False

    # ---- the plan

    def _part(self, old: Reworded) -> tuple[int, int]:
        """Return where the part of a text is that is asked for again: the last sentence that can make up for it all.

        All of it, if placeholders were lost or no sentence is long enough.
        """
        ends = [*finished_ends(old.text)]
        if self.budget is None or old.lost or old.fits or len(ends) < 2 or ends[-1] != len(old.text):
            return 0, len(old.text)
        over = old.length - self.budget.target * (MARGIN if self.budget.is_limit else 1.0)
        for start, end in zip(reversed([0, *ends[:-1]]), reversed(ends), strict=True):
            start += len(old.text[start:end]) - len(old.text[start:end].lstrip())
            length = self.unit.measure(old.text[start:end])
            if MIN_SHARE * length <= length - over <= 2 * length and not self._has_placeholder(old.text[start:end]):
                return start, end
        return 0, len(old.text)

    def _has_placeholder(self, part: str) -> bool:
        """Return whether a part of a text has a placeholder. It is then not asked for alone."""
        return any(mark in part for mark in self.keep)

    def _aim(self, around: int, again: bool) -> float | None:
        """Return how many units to ask for beside those `around`: the target, corrected by how replies missed it."""
        if self.budget is None:
            return None
        target = self.budget.target * (MARGIN if self.budget.is_limit and self.found else 1.0) - around
        return self.gains.corrected(again, max(target, 1.0))

    def _max_tokens(self, aim: float | None) -> int | None:
        """Return at how many tokens a reply is cut, so that a model that does not end costs no more."""
        chars = max(len(self.source), 0 if aim is None else 6 * aim / self.per_word)
        return 48 + math.ceil(3 * chars) if self.net else None  # a token has a byte or more, few characters more than 3

    def _first(self, aim: float | None) -> Messages:
        parts = [self.task]
        if self.budget is not None and aim is not None:
            limit = str(self.budget).replace(self.budget.unit, self._unit).replace("~", "about ")
            # A corrected number contradicts the limit, so only the first request names the limit.
            length = f"about {self._counted(aim)}" if self.found else f"{limit}{self._words(aim)}"
            parts.append(f"Length: {length}.")
        parts += [self._keep] if self.keep else []
        return [{"role": "user", "content": f"{' '.join(parts)} Write only the text.\n\n{self.source}"}]

    def _again(self, old: Reworded, part: tuple[int, int], aim: float | None) -> Messages:
        what = "Write it again"
        if part != (0, len(old.text)):
            what = f"Write only another sentence in place of “{old.text[part[0] : part[1]]}”"
        said = [f"This has {old.length} {self._unit}."] if not old.fits else []
        said += [f"It does not have {', '.join(old.lost)} as the source has it."] if old.lost else []
        length = f", in about {self._counted(aim)}" if aim is not None else ""
        keep = f" {self._keep}" if self.keep and part[0] == 0 else ""
        return [
            {"role": "user", "content": f"{self.task} Write only the text.\n\n{self.source}"},
            {"role": "assistant", "content": old.text},
            {"role": "user", "content": f"{' '.join([*said, what])}{length}.{keep}"},
        ]

    @property
    def _keep(self) -> str:
        return f"Keep {', '.join(self.keep)} as in the text."

    @property
    def _unit(self) -> str:
        return UNIT_NAMES[self.unit.name]

    def _counted(self, aim: float) -> str:
        return f"{max(1, round(aim))} {self._unit}{self._words(aim)}"

    def _words(self, aim: float) -> str:
        words = max(1, round(aim / self.per_word))
        return "" if self._unit == "words" else f", that is about {words} word{'s' * (words > 1)}"


def _joined(head: str, part: str, tail: str) -> str:
    """Return the whole text, or nothing if the part is missing. Some models repeat the sentences around the part."""
    before, after = head.strip(), tail.strip()
    if (before and part.startswith(before)) or (after and part.endswith(after)):
        around = len([*finished_ends(before)]) + len([*finished_ends(after)])
        if len([*finished_ends(part)]) > around:
            return part
        part = part.removeprefix(before).removesuffix(after).strip()
    return head + part + tail if part else ""
