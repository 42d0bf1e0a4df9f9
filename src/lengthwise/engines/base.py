"""The engine protocol: what generation and scoring need of a model that continues texts.

An engine reads prompts (`prefill`) and returns rows. Rows hold the scores of the next token, take the chosen tokens
(`step`), and can be forked, dropped and reordered (`select`). An engine also returns the log-probabilities of given
texts (`score`). Decoding, endings, repair, ranking and scoring are written once against this protocol, and every engine
passes the same tests (`tests/engines/test_conformance.py`).
An engine has no notion of budgets or units. It receives lengths as numbers, for models with an attached control.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..protocols import Tokenizer

if TYPE_CHECKING:
    from ..controls.base import Control

Array = Any  # a torch tensor
Ids = Sequence[int]
Options = Mapping[str, Any]  # decoding options of the engine's own, such as a repetition penalty
# Edits the scores (rows, vocabulary) of a search, given the text ids so far (rows, n), without the prompt.
Processor = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class LengthInputs:
    """The lengths that a model with an attached control receives, one per row."""

    length: Sequence[int]  # units to write
    unit: Sequence[int]  # which of the control's units, by number
    at_most: Sequence[bool]  # the length is a limit that need not be reached
    written: Sequence[int]  # how many tokens at the end of the prompt are text already

    def select(self, rows: Ids) -> "LengthInputs":
        """Return the lengths of these rows, in this order."""
        return LengthInputs(*([column[row] for row in rows] for column in vars(self).values()))


class TokenLogProbs(NamedTuple):
    """Log-probabilities in nats at each token of a text: (rows, time), or (time,) for one text."""

    token: Array  # of the token itself
    best: Array  # of the most probable token
    end: Array  # of the most probable end token


@dataclass(frozen=True)
class SearchResult:
    """The texts of a search, prompt by prompt, each list with the best first."""

    ids: list[list[int]]  # without the prompts; padded after the end token
    scores: list[float]  # log P / tokens^length_penalty; 0 without beams


class Rows(Protocol):
    """Unfinished texts, one per row."""

    scores: Array  # (rows, vocabulary) of the next token, in float32
    hidden: Array | None  # (rows, width) the last hidden state, if `prefill` was asked for it

    def step(self, tokens: Array) -> None:
        """Append one token to each row, (rows,), and compute the next scores."""

    def select(self, rows: Array) -> None:
        """Keep these rows in this order. A row that is named twice is forked, one that is not named is dropped."""


class Engine(Protocol):
    """A model that continues texts. A subclass defines the attributes, `prefill` and `score`; the rest has defaults."""

    name: str
    tokenizer: Tokenizer
    encoder_decoder: bool = False  # a prompt is the encoder's input and takes nothing from the window of the text

    @property
    def eos(self) -> list[int]:
        """The ids that end a text."""

    @property
    def pad(self) -> int:
        """The id that fills up a row."""

    @property
    def window(self) -> int:
        """The number of tokens that the model can attend to."""

    def prefill(
        self,
        prompts: Sequence[Ids],
        lengths: LengthInputs | None = None,
        options: Options | None = None,
        *,
        each: int = 1,
        max_new_tokens: int | None = None,
        hidden: bool = False,
    ) -> Rows:
        """Read the prompts and return `each` rows for every one, with the scores of the first text token.

        `max_new_tokens`: how many steps are taken at most. `hidden`: rows also hold the last hidden state.
        """

    def score(
        self, prompts: Sequence[Ids], texts: Sequence[Ids], lengths: LengthInputs | None = None, cache: Any = None
    ) -> TokenLogProbs:
        """Return the log-probabilities of each text after its prompt, on the CPU: (rows, longest text).

        Beyond the end of a shorter text they have no meaning. `cache`: what `prompt_cache` returned for these prompts;
        then all texts must have the same length.
        """

    # ---- what a simple engine need not define

    @property
    def batch_tokens(self) -> int:
        """The number of tokens of one forward pass of `score`, padding included: logits are wide."""
        return 4096

    @property
    def max_rows(self) -> int:
        """The number of rows to decode at once. With more, rows wait for the longest; with fewer, cores are idle."""
        return 40

    def prompt_ids(self, text: str, system: str | None = None) -> list[int]:
        """Return the token ids of `text` in the form this model was trained on: a chat template, or encoder input."""
        if self.encoder_decoder:
            if system:
                raise ValueError("a translation model takes no system text")
            return self.tokenizer(text)["input_ids"]
        if not self.tokenizer.chat_template:
            return self.tokenizer(f"{system}\n\n{text}" if system else text)["input_ids"]
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": text})
        try:
            chat = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
        except Exception as error:  # a template is a program that comes with the model, and fails in its own ways
            raise ValueError(f"the model's chat template refuses this prompt: {error}") from error
        return chat["input_ids"]

    @property
    def forced_start(self) -> list[int]:
        """Ids that the engine puts before each text, such as the target language of a multilingual translator."""
        return []

    def steps(self, options: Options) -> bool:
        """Return whether `prefill` and `step` can carry out these options; if not, `search` can."""
        return True

    def search(
        self,
        prompts: Sequence[Ids],
        lengths: LengthInputs | None = None,
        *,
        max_new_tokens: int,
        processors: Sequence[Processor] = (),
        beams: int = 1,
        sequences: int = 1,
        scores: bool = False,
        options: Options | None = None,
    ) -> SearchResult:
        """Run a search of the engine's own (beam search) and return `sequences` texts for each prompt.

        `scores`: return the scores of a beam search, which takes memory.
        """
        raise ValueError(f"{self.name} has no beam search; leave num_beams at 1")

    def prompt_cache(self, prompts: Sequence[Ids], each: int = 1, options: Options | None = None) -> Any:
        """Return the prompts, read once, as the `cache` of `score`, `each` times; None if that is not possible."""
        return None

    # ---- what follows from the attached controls

    @property
    def controls(self) -> Sequence["Control"]:
        """The length controls that are attached to the model."""
        return ()

    @property
    def units(self) -> tuple[str, ...]:
        """The units in which the attached controls count; empty if none of them counts."""
        counting = [control.units for control in self.controls if control.units]
        return counting[0] if counting else ()

    @property
    def plain_without_length(self) -> bool:
        """Whether the model, without length inputs, is the model that it was before controls were attached."""
        return all(control.edits_hidden or control.scales_queries for control in self.controls)

    def takes_limits_in(self, unit: str) -> bool:
        """Return whether the model was always trained with a length that may be a limit, in this unit.

        Such a model can be given a limit so distant that it does not matter.
        """
        trained = [c for c in self.controls if not (c.edits_hidden or c.scales_queries)]
        return bool(trained) and all(getattr(c, "at_most", False) and unit in c.units for c in trained)
