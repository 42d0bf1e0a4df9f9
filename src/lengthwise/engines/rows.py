"""Rows: the unfinished texts of an engine, and what a search over them returns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from numpy.typing import NDArray

from ..arrays import Array

# Edits the scores (rows, vocabulary) of a search, given the text ids so far (rows, n), without the prompt.
Processor = Callable[[Array, Array], Array]


@runtime_checkable
class Follower(Protocol):
    """A processor with a state for each row, one for each prompt at first. It need not read all ids in each step."""

    def apply(self, scores: Array) -> Array:
        """Return the edited scores of the rows."""

    def select(self, rows: Array) -> None:
        """Keep these rows in this order; see `Rows.select`."""

    def update(self, tokens: Array) -> None:
        """Append the chosen tokens, one for each row."""


class TokenLogProbs(NamedTuple):
    """Log-probabilities in nats at each token of a text, in numpy: (rows, time), or (time,) for one text."""

    token: NDArray[Any]  # of the token itself
    best: NDArray[Any]  # of the most probable token
    end: NDArray[Any]  # of the most probable end token


@dataclass(frozen=True)
class SearchResult:
    """The texts of a search, prompt by prompt, each list with the best first."""

    ids: list[list[int]]  # without the prompts; padded to one length with the end token
    scores: list[float]  # log P / tokens^length_penalty; 0 without beams
    log_probs: TokenLogProbs | None = None  # as `Engine.score` returns them, if the search has noted them


class Rows(Protocol):
    """Unfinished texts, one per row. Arrays are torch tensors or numpy arrays: the engine decides.

    Three attributes are optional. `can_select` false: rows cannot be selected. `can_fork` true: they can, and are cheap
    to add, so that decoding tries several tokens. `close()`: give back what the rows hold; see `closing`.
    """

    @property
    def scores(self) -> Array:
        """(rows, vocabulary) of the next token, logits in float32; at least as wide as the tokenizer."""

    @property
    def hidden(self) -> Array | None:
        """(rows, width) the last hidden state, before controls edit it, if `prefill` was asked for it."""

    def step(self, tokens: Array) -> None:
        """Append one token to each row, (rows,), and compute the next scores."""

    def select(self, rows: Array) -> None:
        """Keep these rows in this order. A row that is named twice is forked, one that is not named is dropped."""


_Rows = TypeVar("_Rows", bound=Rows)


@contextmanager
def closing(rows: _Rows) -> Iterator[_Rows]:
    """Close the rows at the end, if they can be closed. After an error, its traceback would keep them."""
    try:
        yield rows
    finally:
        if hasattr(rows, "close"):
            rows.close()
