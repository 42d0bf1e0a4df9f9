"""Two records: `Hypothesis`, a translation of one sentence on its way, and `Translation`, the result for a line.

The stages fill a hypothesis one after the other: search (tokens, error, complete, runaway), restoration of placeholders
and capitals (text), noisy channel (score), compression (dropped). Ranking marks copies of the source as incomplete.
"""

from dataclasses import dataclass
from typing import Any

from ..generation.generator import Written
from .compression import DroppedWords
from .placeholders import lost


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
    dropped: DroppedWords = frozenset()  # words of the source that the model did not receive

    @property
    def lost(self) -> list[str]:
        """The placeholders and numbers of the source that are not in the text."""
        return lost(self.source, self.text)

    @property
    def is_copy(self) -> bool:
        return self.text.casefold() == self.source.casefold()


@dataclass(frozen=True)
class Translation(Written):
    """The translation of a line. `budget` is empty where any length fits.

    `intact`: the placeholders and numbers are those of the source. `note`: what is wrong, and which words of the source
    were left out. `score`: the mean of the sentences' scores. `runaway`: only in candidates of the free search.
    """

    source: str = ""
    intact: bool = True
    note: str | None = None
    score: float | None = None
    runaway: bool | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are not None as plain values; candidates without those of their line."""
        fields = super().as_json()
        of_line = ("source", "intact", "note")
        fields["candidates"] = [_filled(other, but=of_line) for other in fields["candidates"]]
        return _filled(fields)


def _filled(fields: dict[str, Any], but: tuple[str, ...] = ()) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and name not in but}
