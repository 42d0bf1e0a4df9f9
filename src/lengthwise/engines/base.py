"""The engine protocol: what generation and scoring need of a model that continues texts.

An engine reads prompts (`prefill`) and returns rows. Rows hold the scores of the next token, take the chosen tokens
(`step`), and can be forked, dropped and reordered (`select`). Decoding, endings, repair and ranking are written once
against this protocol; every engine passes the same conformance tests (`tests/engines/test_conformance.py`).
An engine does not know budgets or units; it receives lengths as numbers, for models with an attached control.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..protocols import Tokenizer

Array = Any  # a torch tensor or a numpy array, on the engine's device
Options = Mapping[str, Any]  # decoding options of the engine's own, such as a repetition penalty


@dataclass(frozen=True)
class LengthInputs:
    """The lengths that a model with an attached control receives, one a row."""

    length: Sequence[int]  # units to write
    unit: Sequence[int]  # which of the control's units, by number
    at_most: Sequence[bool]  # the length is a limit that need not be reached
    written: Sequence[int]  # how many tokens at the end of the prompt are text already


@dataclass(frozen=True)
class Capabilities:
    """What an engine can do beyond `prefill`, `step` and `select`."""

    beams: bool = False  # it has a beam search of its own
    hidden: bool = False  # rows hold the last hidden state
    lengths: bool = False  # it passes `LengthInputs` on to an attached control


class Rows(Protocol):
    """Unfinished texts, one a row."""

    ids: Array  # (rows, time) prompt and text so far
    scores: Array  # (rows, vocabulary) of the next token, in float32
    hidden: Array | None  # (rows, width) the last hidden state, if the engine has it

    def step(self, tokens: Array) -> None:
        """Append one token to each row, (rows,), and compute the next scores."""

    def select(self, rows: Array) -> None:
        """Keep these rows in this order. A row that is named twice is forked, one that is not named is dropped."""


class Engine(Protocol):
    """A model that continues texts."""

    name: str
    tokenizer: Tokenizer
    eos: list[int]  # ids that end a text
    pad: int  # id that fills up a row
    window: int  # tokens that the model can attend to
    encoder_decoder: bool  # a prompt is the encoder's input and takes no room from the text
    can: Capabilities

    def prompt_ids(self, text: str, system: str | None = None) -> list[int]:
        """Return the token ids of `text` in the form this model was trained on: a chat template, or encoder input."""

    def text_logits(
        self, inputs: Any, written: Array, start: int, cache: Any, batch_tokens: int
    ) -> Iterator[tuple[slice, slice, Array]]:
        """Yield rows, columns and the logits that predict the given tokens `written[rows, columns]`."""

    def prefill(self, prompts: Sequence[Sequence[int]], lengths: LengthInputs | None, options: Options) -> Rows:
        """Read the prompts and return one row for each, with the scores of its first token."""
