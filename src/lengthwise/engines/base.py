"""The engine protocol: the methods of a language model that generation and scoring call.

An engine reads prompts (`prefill`) and returns rows. Rows hold the scores of the next token, take the chosen tokens
(`step`), and can be forked, dropped and reordered (`select`). An engine also returns the log-probabilities of given
texts (`score`). Decoding, endings, repair, ranking and scoring are written once against this protocol, and every engine
passes the same tests (`tests/engines/test_conformance.py`).
An engine does not handle budgets or units. It receives lengths as numbers, for models with an attached control.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..arrays import Array, converter, to_numpy
from ..protocols import Tokenizer
from .beam_search import beam_search
from .future_discriminator import FutureDiscriminator
from .rows import Processor, Rows, SearchResult, TokenLogProbs, closing

Ids = Sequence[int]
Options = Mapping[str, Any]  # decoding options of the engine's own, such as a repetition penalty


@dataclass(frozen=True)
class LengthInputs:
    """The lengths that a model with an attached control receives, one per row."""

    length: Sequence[int]  # units to write
    unit: Sequence[int]  # which of the control's units, by number
    at_most: Sequence[bool]  # whether the length is an upper limit
    written: Sequence[int]  # how many tokens at the end of the prompt belong to the text

    def select(self, rows: Ids) -> "LengthInputs":
        """Return the lengths of these rows, in this order."""
        return LengthInputs(*([column[row] for row in rows] for column in vars(self).values()))


class AttachedControl(Protocol):
    """What generation uses of a length control; `controls/base.py` says the same of those that torch runs."""

    units: tuple[str, ...] = ()  # the units in which it counts; none: it does not count
    needs_length: bool = True  # whether the model is wrong without a length
    at_most: bool = False  # whether it was trained with upper limits as well
    reads_length_first: bool = False  # whether the length itself, not a class of lengths, stands before the source

    def prefix(self, text: str, target: int, unit: str, tokenizer: Any = None) -> str:
        """Return the prompt, edited for an output of `target` units."""
        return text


class Engine(Protocol):
    """A model that continues texts. A subclass defines the attributes, `prefill` and `score`; the rest has defaults."""

    name: str
    tokenizer: Tokenizer
    eos: list[int]  # ids that end a text
    pad: int  # id that fills up a row
    window: int  # tokens that the model can attend to
    encoder_decoder: bool = False  # a prompt is the encoder's input and takes nothing from the window of the text
    batch_tokens: int = 4096  # tokens of one forward pass of `score`, with padding: logits are wide
    batch_size: int = 16  # texts that a writer decodes together
    discriminator: FutureDiscriminator | None = None  # predicts ends of sentences and items; generation steers by it
    max_rows: int = 40  # rows to decode at once: with more, rows wait for the longest; with fewer, cores are idle

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

        A prompt may end with the beginning of its text, which is then continued. `options`: an engine raises a
        `ValueError` for those that it does not support. `max_new_tokens`: how many steps are taken at most. `hidden`:
        rows also hold the last hidden state.
        """

    def score(
        self, prompts: Sequence[Ids], texts: Sequence[Ids], lengths: LengthInputs | None = None, cache: Any = None
    ) -> TokenLogProbs:
        """Return the log-probabilities of each text after its prompt: (rows, longest text).

        A text may or may not include its end token. Beyond the end of a shorter text the values have no meaning.
        `cache`: what `prompt_cache` returned for these prompts.
        """

    # ---- optional, with defaults

    def prompt_ids(self, text: str, system: str | None = None) -> list[int]:
        """Return the token ids of `text` in the form this model was trained on: a chat template, or encoder input."""
        messages = [{"role": "system", "content": system}] if system else []
        return self.chat_ids([*messages, {"role": "user", "content": text}])

    def chat_ids(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Return the token ids of a conversation, up to where the model's next message begins."""
        if self.encoder_decoder:
            if len(messages) > 1:
                raise ValueError("a translation model takes no system text and no conversation")
            return self.tokenizer(messages[0]["content"])["input_ids"]
        if not self.tokenizer.chat_template:
            return self.tokenizer("\n\n".join(message["content"] for message in messages))["input_ids"]
        try:
            chat = self.tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, return_dict=True)
        except Exception as error:  # a template is a program that comes with the model, and fails in its own ways
            raise ValueError(f"the model's chat template raised an error for this prompt: {error}") from error
        return chat["input_ids"]

    @property
    def forced_start(self) -> list[int]:
        """Ids that are forced at the start of each text, such as the target language of a multilingual translator."""
        return []

    def steps(self, options: Options) -> bool:
        """Return whether `prefill` and `step` support these options; if not, `search` does."""
        return True

    def search(
        self,
        prompts: Sequence[Ids],
        lengths: LengthInputs | None = None,
        *,
        prefixes: Sequence[Ids] | None = None,
        max_new_tokens: int,
        processors: Sequence[Processor] = (),
        beams: int = 1,
        sequences: int = 1,
        scores: bool = False,
        options: Options | None = None,
    ) -> SearchResult:
        """Run a search of the engine's own (beam search) and return `sequences` texts for each prompt.

        `prefixes`: ids with which each text begins; the result is what follows them. `scores`: return the scores of a
        beam search, which takes memory. The default searches over `prefill` and `step`.
        """
        options = dict(options or {})
        penalty = options.pop("length_penalty", 1.0)
        if prefixes is not None:
            if self.encoder_decoder:
                raise ValueError(f"{self.name} cannot continue a given text")
            prompts = [[*prompt, *prefix] for prompt, prefix in zip(prompts, prefixes, strict=True)]
        with closing(self.prefill(prompts, lengths, options, each=beams, max_new_tokens=max_new_tokens)) as rows:
            return self._searched(rows, max_new_tokens, processors, beams, sequences, penalty)

    def _searched(
        self,
        rows: Rows,
        max_new_tokens: int,
        processors: Sequence[Processor],
        beams: int,
        sequences: int,
        length_penalty: float,
    ) -> SearchResult:
        """Return the result of a search over `beams` equal rows of each prompt."""
        if beams == sequences == 1:
            texts = self._greedy(rows, max_new_tokens, processors)
            return SearchResult(texts, [0.0] * len(texts))
        return beam_search(
            rows,
            beams=beams,
            sequences=sequences,
            max_new_tokens=max_new_tokens,
            eos=self.eos,
            processors=processors,
            length_penalty=length_penalty,
        )

    def _greedy(self, rows: Rows, steps: int, processors: Sequence[Processor]) -> list[list[int]]:
        """Return the most probable token of each step, until every row has ended."""
        texts = np.full((len(rows.scores), 0), self.eos[0])
        live = np.arange(len(texts))  # rows that have not ended; without processors, the others are dropped
        while texts.shape[1] < steps:
            scores = rows.scores
            convert = converter(scores)
            for processor in processors:
                scores = processor(texts, scores)
            tokens = to_numpy(scores.argmax(1))
            if processors:
                ended = np.isin(texts, self.eos).any(1)
                tokens = np.where(ended, self.eos[0], tokens)
            texts = np.pad(texts, ((0, 0), (0, 1)), constant_values=self.eos[0])
            texts[live, -1] = tokens
            going = np.flatnonzero(~np.isin(tokens, self.eos))
            if not len(going) or texts.shape[1] == steps:
                break
            if len(going) < len(live) and not processors:
                live, tokens = live[going], tokens[going]
                rows.select(convert(going))
            rows.step(convert(tokens))  # the scores of selected rows would be a copy
        return texts.tolist()

    def share(self) -> bool:
        """Let several threads use the engine at once, their rows in the same forward passes; False if it cannot."""
        return False

    def prompt_cache(self, prompts: Sequence[Ids], each: int = 1, options: Options | None = None) -> Any:
        """Return a KV cache of the prompts, repeated `each` times, for `score`; None if that is not possible."""
        return None

    def embedded(self, tokens: Array) -> Array:
        """Return the embeddings of these tokens, in the library of `hidden`: (rows, n) -> (rows, n, width).

        Only an engine with a discriminator needs it.
        """
        problem = f"the engine of {self.name} does not give embeddings, so no discriminator can be used with it"
        raise NotImplementedError(problem)

    # ---- attached controls

    @property
    def controls(self) -> Sequence[AttachedControl]:
        """The length controls that are attached to the model."""
        return ()

    @property
    def units(self) -> tuple[str, ...]:
        """The units in which the attached controls count; empty if none of them counts."""
        counting = [control.units for control in self.controls if control.units]
        return counting[0] if counting else ()

    @property
    def plain_without_length(self) -> bool:
        """Whether the model works without length inputs: no control needs them."""
        return not any(control.needs_length for control in self.controls)

    def takes_limits_in(self, unit: str) -> bool:
        """Return whether the model was trained only with length inputs, and with upper limits in this unit.

        Such a model can receive a limit so large that it has no effect.
        """
        trained = [control for control in self.controls if control.needs_length]
        return bool(trained) and all(control.at_most and unit in control.units for control in trained)
