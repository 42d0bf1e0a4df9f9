"""Unfinished texts of a Marian model on onnxruntime, such as the beams of a search.

The rows of a source are query positions of one pass: they share the keys and values of the source, and their own cache
is masked, not reordered (`beam_cache.py`).
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..length.meter import Integers
from ..protocols import Tokenizer
from .base import Ids, LengthInputs
from .numpy_countdown_head import UnitCounts
from .onnx_marian_graphs import Floats, Graphs, Sources, TextInputs


class Decoder(Protocol):
    """What rows need of their engine."""

    tokenizer: Tokenizer
    eos: list[int]
    graphs: Graphs

    @property
    def units(self) -> tuple[str, ...]:
        """The units in which the attached control counts."""

    def text_inputs(self, texts: Sequence[Ids], lengths: LengthInputs | None) -> TextInputs:
        """Return the decoder's inputs for the start token and these texts."""

    def finished(self, logits: Floats) -> Floats:
        """Return the logits, in which ids that are never written are minus infinity."""


class MarianRows:
    """Unfinished texts; see `engines.rows.Rows`."""

    _order: Integers  # rows of the last logits and hidden states

    def __init__(
        self,
        engine: Decoder,
        sources: Sources,
        prefixes: Sequence[Ids],
        lengths: LengthInputs | None,
        least: int,
        hidden: bool,
    ) -> None:
        self._engine, self._sources, self._least, self._keeps_hidden = engine, sources, least, hidden
        self._lengths = lengths if engine.units else None
        self._counts: UnitCounts | None = None
        if self._lengths is not None:
            units = [engine.units[n] for n in self._lengths.unit]
            self._counts = UnitCounts(engine.tokenizer, units, [list(prefix) for prefix in prefixes])
        self._cache = engine.graphs.cache(len(prefixes))
        inputs = engine.text_inputs(prefixes, self._lengths)
        self._positions, self._steps = inputs.sizes, 0
        last = [np.array([size - 1]) for size in inputs.sizes]
        self._set(*engine.graphs.read(sources, inputs, last, self._cache))

    def step(self, tokens: Any) -> None:
        tokens, graphs = np.asarray(tokens), self._engine.graphs
        written = np.zeros(len(tokens), np.int64)
        if self._counts is not None:
            self._counts.advance(tokens)
            written = self._counts.written
        inputs = graphs.embedded(tokens, self._positions, self._lengths, written)
        self._positions, self._steps = self._positions + 1, self._steps + 1
        states = graphs.states(self._lengths, written)
        self._set(*graphs.step(self._sources, self._cache, inputs, states))

    def select(self, rows: Any) -> None:
        rows = np.asarray(rows, np.int64)
        kept = self._cache.select(rows)
        if kept is not None:
            self._sources = self._sources.select(kept)
        self._positions, self._order = self._positions[rows], self._order[rows]
        if self._lengths is not None and self._counts is not None:
            self._lengths = self._lengths.select(rows.tolist())
            self._counts.select(rows)

    def _set(self, hidden: Floats, logits: Floats) -> None:
        self._hidden, self._logits = hidden, self._engine.finished(logits)
        self._order = np.arange(len(logits))  # a search selects rows before a step: nothing is copied then
        if self._steps < self._least:
            self._logits[:, self._engine.eos] = -np.inf

    @property
    def scores(self) -> Floats:
        return self._in_order(self._logits)

    @property
    def hidden(self) -> Floats | None:
        return self._in_order(self._hidden) if self._keeps_hidden else None

    def _in_order(self, array: Floats) -> Floats:
        same = len(self._order) == len(array) and (self._order == np.arange(len(array))).all()
        return array if same else array[self._order]
