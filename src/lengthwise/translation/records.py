"""Two records: `Hypothesis`, a possible translation of a sentence, and `Translation`, the result for a line.

The stages fill a hypothesis in this order: search (tokens, error, complete, runaway), restoration of placeholders and
capitals (text), noisy channel (score), compression (dropped), ranking (complete, if it is not fully translated),
omissions (omitted).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..generation.generator import Written
from .compression import DroppedWords
from .placeholders import lost

NO_FIT = "no complete translation that fits was found"  # the note of a translation
CONTEXTS = ("sliding", "segments", "revise")  # ways to translate sentences in context: `DECODINGS` of sliding.py
ALONE = "translated alone: in context, the number of sentences was wrong"  # another note


@dataclass(frozen=True)
class Hypothesis:
    """A translation of the sentence `source`. Its text is empty if there is an `error`."""

    source: str
    text: str
    tokens: int
    complete: bool
    error: str | None = None
    runaway: bool | None = None  # the free search reached its token limit; None for other searches
    score: float | None = None  # nats per token, higher is better; None if no model has scored it
    dropped: DroppedWords = frozenset()  # places of source words that the model did not receive
    omitted: DroppedWords = frozenset()  # places of source words that it did not translate

    @cached_property
    def lost(self) -> list[str]:
        """The placeholders that occur more or less often than in the source, and the numbers that are missing."""
        return lost(self.source, self.text)

    @property
    def left_out(self) -> DroppedWords:
        return self.dropped | self.omitted

    @property
    def is_copy(self) -> bool:
        return self.text.casefold() == self.source.casefold()


@dataclass(frozen=True)
class Translation(Written):
    """The translation of a line. `budget` is empty if any length fits.

    `intact`: the placeholders and numbers are those of the source. `note`: what is wrong, and which source words are
    left out. `score`: the mean of the sentences' scores. `runaway`: only in candidates of the free search.
    `calls`: of a model behind an API. `down`: its error is the same for all texts.
    """

    source: str = ""
    intact: bool = True
    note: str | None = None
    score: float | None = None
    runaway: bool | None = None
    calls: int | None = None
    down: bool | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are not None as plain values. Candidates do not repeat the fields of their line."""
        fields, of_line = super().as_json(), ("source", "intact")
        fields["candidates"] = [
            {name: value for name, value in other.items() if value is not None and name not in of_line}
            for other in fields["candidates"]
        ]
        return {name: value for name, value in fields.items() if value is not None}
