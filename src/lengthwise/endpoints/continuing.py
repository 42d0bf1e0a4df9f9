"""Continuing: fitting with a server that has the hard budget and continues a text at any word.

Such a server counts by itself, so the prompt says nothing about the length. If a text is not complete, its last words
are removed and sampled again, more of them in each round, as in `generation/repair.py`; then whole texts are sampled.
"""

import re
from collections.abc import Callable
from typing import Any

from ..length.blocks import block_ends, breaks_off
from ..length.fences import in_code
from ..length.sentences import finished, finished_ends
from .calls import Messages
from .client import Reply
from .fitting import ENDINGS, MIN_END, Fitting, Found, bare

ROUNDS = ((10, 4), (16, 6), (40, 8))  # words before the target that are written again, and samples
_WORD_END = re.compile(r"(?<=\S)(?=\s)|(?<=[\u3040-\u30ff\u3400-\u9fff])(?=\w)")


class Continuing(Fitting):
    """The search for one text on a server that keeps the budget and continues the last message of the assistant."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.cuts: list[tuple[Found, str, list[int]]] = []  # of each text: its best ending, itself, where it may be cut

    def _rest(self, reply: Reply, kept: str) -> str:
        return reply.text if kept else bare(reply.text)

    def _space(self, kept: str, reply: Reply) -> str:
        return reply.space

    def _is_complete(self, text: str, kept: str, reply: Reply) -> bool:
        return finished(text) or block_ends(text)[-1:] == [len(text)] or (reply.ended and not breaks_off(text))

    def _ends(self, text: str) -> list[int]:
        return sorted({*finished_ends(text), *block_ends(text)})

    def _add_beginnings(self, text: str, free: Callable[[int], bool], best: Found) -> None:
        ends = {found.start() for found in _WORD_END.finditer(text)}
        kept = {
            end for _, other, some in self.cuts for end in some if text[:end] == other[:end]
        }  # in what it continues
        self.cuts.append((best, text, sorted(kept.union(filter(free, ends)))))

    # ---- the plan

    def _round(self) -> int:
        return sum(self.tried.values())

    def _next_beginning(self) -> str:
        """Return the best text without its last words; in the last rounds nothing."""
        if not self.cuts or self._round() >= len(ROUNDS):
            return ""
        _, text, ends = max(self.cuts, key=lambda one: one[0].quality(self.budget))
        # A text with only a maximum may end after any sentence, so it has none; another line does not complete code.
        deep = self.budget.is_limit or in_code(text)
        words = ROUNDS[-1 if deep else self._round()][0]
        for end in reversed(ends):
            if self.budget.target - self.unit.measure(text[:end]) >= words * self.per_word:
                return text[:end]
        return ""

    def _replies(self, kept: str) -> int:
        return ROUNDS[self._round()][1] if kept else ENDINGS

    def _aim(self, kept: str) -> float:
        return max(self.budget.target - self.unit.measure(kept), MIN_END * self.per_word)

    def _messages(self, kept: str, aim: float) -> Messages:
        asked = [{"role": "user", "content": self.prompt}]
        return [*asked, {"role": "assistant", "content": kept}] if kept else asked
