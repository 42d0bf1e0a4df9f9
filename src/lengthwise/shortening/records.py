"""Two records: `Source`, a text that must become shorter, and `Candidate`, a possible result."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ..length.budget import Budget
from .pieces import Piece


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

    An origin is the number of the sentence and the place in it; a short form has none. `likelihood`: log P after the
    source, by a model that was trained to shorten; 0 without one.
    """

    text: str
    route: str
    complete: bool
    cost: float = 0.0
    kept: tuple[tuple[Piece, tuple[int, int] | None], ...] = ()
    tokens: int = 0
    score: float = 0.0
    coverage: float = 0.0
    likelihood: float = 0.0
