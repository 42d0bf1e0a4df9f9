"""Records: `Source`, a text that must become shorter, `Candidate`, a possible result, and `Shortened`, the result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..generation.generator import Written
from ..length.budget import Budget
from .leaving_out import Kept
from .pieces import Piece

Progress = Callable[[str], None]  # is called with what is being done, such as "rewriting"


def no_progress(what: str) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Source:
    """A text that must become shorter. Of each piece, sentence by sentence:

    `nats`: −log P of the piece after all before it. `information`: what a text without it loses, in nats.
    """

    text: str
    budget: Budget
    length: Callable[[str], int]
    sentences: list[list[Piece]]
    nats: list[list[float]] = field(default_factory=list)
    information: list[list[float]] = field(default_factory=list)

    @property
    def limit(self) -> int:
        return int(self.budget.high or self.budget.target)


@dataclass(frozen=True)
class Candidate:
    """A possible result. `cost`: of its deletions. `kept`: its pieces, if words were left out, with their origins.

    An origin is the number of the sentence and the place in it; a short form has none. `sentences`: the short forms of
    which it was put together, with the numbers of their sentences. `likelihood`: log P after the source, by a model
    that was trained to shorten; 0 without one.
    """

    text: str
    route: str
    complete: bool
    cost: float = 0.0
    kept: tuple[tuple[Piece, tuple[int, int] | None], ...] = ()
    sentences: tuple[tuple[int, Kept], ...] = ()
    tokens: int = 0
    score: float = 0.0
    coverage: float = 0.0
    likelihood: float = 0.0


@dataclass(frozen=True)
class Shortened(Written):
    """A shortened text. `route`: "unchanged", "left out" or "rewritten". `model`: which found it; "" if unchanged.

    `intact`: it has the placeholders of the source, without addresses. `note`: names, numbers, negations and
    placeholders of the source that it lacks, and words that the source lacks. `score`, `coverage`: see `choosing.py`.
    `calls`: of a model behind an API. `down`: its error is the same for all texts.
    """

    source: str = ""
    route: str = ""
    intact: bool = True
    note: str | None = None
    score: float | None = None
    coverage: float | None = None
    calls: int | None = None
    down: bool | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are not None as plain values. Candidates do not repeat the fields of their text.

        Those of another model name it.
        """
        fields = super().as_json()
        for shown, one in zip(fields["candidates"], self.candidates, strict=True):
            shown["source"], shown["model"] = None, one.model if one.model != self.model else None
        fields["candidates"] = [
            {name: value for name, value in shown.items() if value is not None} for shown in fields["candidates"]
        ]
        return {name: value for name, value in fields.items() if value is not None}


def check_minimum(budget: Budget, length: int) -> None:
    """Raise if the minimum is above the length of the source: no shorter text has it.

    >>> check_minimum(Budget.parse("at least 500 words"), 3)
    Traceback (most recent call last):
    ValueError: the text has 3 words and the minimum is 500; give a smaller one, or lengthwise write for a longer text
    """
    if length < budget.low:
        advice = "give a smaller one, or lengthwise write for a longer text"
        raise ValueError(f"the text has {length:,} {budget.unit} and the minimum is {budget.low:,}; {advice}")
