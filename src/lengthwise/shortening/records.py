"""Two records: `Source`, a text that must become shorter, and `Candidate`, a possible result."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ..length.budget import Budget
from .pieces import Piece


@dataclass(frozen=True)
class Source:
    """A text that must become shorter. `information`: nats of each piece, sentence by sentence."""

    text: str
    budget: Budget
    length: Callable[[str], int]
    sentences: list[list[Piece]]
    information: list[list[float]] = field(default_factory=list)

    @property
    def limit(self) -> int:
        return int(self.budget.high or self.budget.target)


@dataclass(frozen=True)
class Candidate:
    """A possible result. `cost`: of its deletions."""

    text: str
    route: str
    complete: bool
    cost: float = 0.0
    tokens: int = 0
    score: float = 0.0
    coverage: float = 0.0
