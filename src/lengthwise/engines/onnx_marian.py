"""Marian encoder-decoders on onnxruntime, without torch.

`onnx_marian_graphs.py` runs the graphs of the converted model (`models/conversion/`), `onnx_marian_rows.py` has the
unfinished texts. Numbers are those of the converted model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..length.meter import Integers, meter_of
from ..models.onnx_marian_model import OnnxMarian
from .base import Engine, Ids, LengthInputs, Options
from .numpy_rows import fill_log_probs, least_tokens
from .onnx_marian_graphs import FORWARD_TOKENS, SCORED_TOKENS, Floats, Graphs, TextInputs
from .onnx_marian_rows import MarianRows
from .rows import Processor, SearchResult, TokenLogProbs

_NEUTRAL = ("renormalize_logits",)  # options that change nothing here


class MarianEngine(Engine):
    """A converted model, its tokenizer and its length controls."""

    encoder_decoder = True
    batch_tokens = FORWARD_TOKENS
    max_rows = 96  # rows that end are dropped, so many rows wait for none

    def __init__(self, model: OnnxMarian) -> None:
        self.name, self.tokenizer = model.name, model.tokenizer
        self.eos, self.pad, self.window = model.eos, model.pad, model.shape.window
        self.graphs = Graphs(model)
        self._start, self._never = model.start, model.never

    @property
    def controls(self) -> list[Any]:
        encoding, head, template = self.graphs.encoding, self.graphs.head, self.graphs.template
        return [one for one in (encoding, head if head.units else None, template) if one is not None]

    # ---- step by step

    def prefill(
        self,
        prompts: Sequence[Ids],
        lengths: LengthInputs | None = None,
        options: Options | None = None,
        *,
        each: int = 1,
        max_new_tokens: int | None = None,
        hidden: bool = False,
    ) -> MarianRows:
        return self._continue(prompts, [[]] * len(prompts), lengths, options, each, hidden)

    def _continue(
        self,
        prompts: Sequence[Ids],
        prefixes: Sequence[Ids],
        lengths: LengthInputs | None,
        options: Options | None,
        each: int,
        hidden: bool = False,
    ) -> MarianRows:
        """Return `each` rows for every prompt, whose texts begin with these prefixes."""
        given = {name: value for name, value in (options or {}).items() if name not in _NEUTRAL}
        rows = MarianRows(self, self.graphs.encoded(prompts), prefixes, lengths, least_tokens(given, "onnx"), hidden)
        if each > 1:
            rows.select(np.arange(len(prompts)).repeat(each))
        return rows

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
        options = dict(options or {})
        penalty = options.pop("length_penalty", 1.0)
        begun = [[]] * len(prompts) if prefixes is None else prefixes
        rows = self._continue(prompts, begun, lengths, options, beams)
        return self._searched(rows, max_new_tokens, processors, beams, sequences, penalty)

    # ---- scoring given texts

    def score(
        self, prompts: Sequence[Ids], texts: Sequence[Ids], lengths: LengthInputs | None = None, cache: Any = None
    ) -> TokenLogProbs:
        found = np.zeros((3, len(texts), max(map(len, texts))), np.float32)
        texts = [self._ended(text) for text in texts]
        size = max(1, SCORED_TOKENS // max(map(len, [*prompts, *texts])))
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        for first in range(0, len(texts), size):
            rows = order[first : first + size]
            own = None if lengths is None else lengths.select(rows)
            some = [texts[row] for row in rows]
            sources = self.graphs.encoded([prompts[row] for row in rows])
            inputs = self.text_inputs([text[:-1] for text in some], own)
            steps = [np.arange(len(text)) for text in some]
            logits = self.finished(self.graphs.read(sources, inputs, steps)[1])
            fill_log_probs(found, rows, texts, logits, self.eos)
        return TokenLogProbs(*found)

    def _ended(self, text: Ids) -> Ids:
        """Return the text up to its first end token: a search pads its results with more of them."""
        return text[: next((place for place, token in enumerate(text, 1) if token in self.eos), len(text))]

    def forget(self) -> None:
        """Delete the encoder outputs that are kept."""
        self.graphs.forget([], 0)

    # ---- inputs and outputs of the graphs

    def finished(self, logits: Floats) -> Floats:
        """Return the logits, in which ids that are never written, such as padding, are minus infinity."""
        logits[:, self._never] = -np.inf
        return logits

    def text_inputs(self, texts: Sequence[Ids], lengths: LengthInputs | None) -> TextInputs:
        """Return the decoder's inputs for the start token and these texts."""
        rows = [[self._start, *text] for text in texts]
        written = [self._written(text, lengths, row) for row, text in enumerate(texts)]
        width = max(map(len, rows))
        embedded = np.zeros((len(rows), width, self.graphs.shape.width), np.float32)
        for row, (ids, units) in enumerate(zip(rows, written, strict=True)):
            own = None if lengths is None else lengths.select([row] * len(ids))
            embedded[row, : len(ids)] = self.graphs.embedded(np.array(ids), np.arange(len(ids)), own, units)
        states = [
            self.graphs.states(None if lengths is None else lengths.select([row] * len(units)), units)
            for row, units in enumerate(written)
        ]
        return TextInputs(embedded, np.array([len(ids) for ids in rows]), states)

    def _written(self, text: Ids, lengths: LengthInputs | None, row: int) -> Integers:
        """Return the units that are written before each token that follows the start token and this text."""
        if lengths is None or not self.units or not text:
            return np.zeros(1 + len(text), np.int64)
        meter = meter_of(self.tokenizer, self.units[lengths.unit[row]])
        return np.concatenate([[0], meter.running(np.array([text]))[0]])
