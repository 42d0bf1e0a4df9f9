"""Marian encoder-decoders on onnxruntime, without torch.

The rows of a source, such as the beams of a search, are query positions of one pass: they share the keys and values of
the source, and their own cache is masked, not reordered (`beam_cache.py`). Encoder outputs are kept for a while, so
that searches and scores of the same source encode it once. Numbers are those of the converted model
(`models/conversion/`).
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..length.meter import Integers, meter_of
from ..length.prompt_template import PromptTemplate
from ..models.onnx_marian_model import OnnxMarian
from .base import Engine, Ids, LengthInputs, Options, TokenLogProbs
from .beam_cache import HIDDEN, BeamCache
from .numpy_countdown_head import NumpyCountdownHead, UnitCounts
from .numpy_length_encoding import NumpyLengthEncoding
from .numpy_rows import least_tokens, token_log_probs
from .onnx_session import Session, wrapped
from .rows import Processor, SearchResult

Floats = NDArray[np.float32]

_SOURCE_TOKENS = 4096  # tokens of sources whose encoder outputs are kept
_FORWARD_TOKENS = 1024  # tokens of one forward pass: more is not faster
_NEUTRAL = ("renormalize_logits",)  # options that change nothing here


class MarianEngine(Engine):
    """A converted model, its tokenizer and its length controls."""

    encoder_decoder = True
    batch_tokens = _FORWARD_TOKENS
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
    ) -> "MarianRows":
        return self._continue(prompts, [[]] * len(prompts), lengths, options, each, hidden)

    def _continue(
        self,
        prompts: Sequence[Ids],
        prefixes: Sequence[Ids],
        lengths: LengthInputs | None,
        options: Options | None,
        each: int,
        hidden: bool = False,
    ) -> "MarianRows":
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
        size = max(1, self.batch_tokens // max(map(len, [*prompts, *texts])))
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        for first in range(0, len(texts), size):
            rows = order[first : first + size]
            own = None if lengths is None else lengths.select(rows)
            some = [texts[row] for row in rows]
            sources = self.graphs.encoded([prompts[row] for row in rows])
            inputs = self.text_inputs([text[:-1] for text in some], own)
            steps = [np.arange(len(text)) for text in some]
            logits = self.finished(self.graphs.read(sources, inputs, steps)[1])
            for row, text in zip(rows, some, strict=True):
                found[:, row, : len(text)] = token_log_probs(logits[: len(text)], text, self.eos)
                logits = logits[len(text) :]
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

    def text_inputs(self, texts: Sequence[Ids], lengths: LengthInputs | None) -> "TextInputs":
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


class TextInputs:
    """The decoder's inputs for texts of different lengths."""

    def __init__(self, embedded: Floats, sizes: Integers, states: list[Integers]) -> None:
        self.embedded = embedded  # (rows, time, width)
        self.sizes = sizes  # (rows,) tokens without padding
        self.states = states  # of the countdown head, (time,) each


class Sources:
    """Encoded sources: `cross` (2 · layers, sources, heads, time, size), keys and values, and the mask of padding."""

    def __init__(self, cross: Floats, sizes: Integers) -> None:
        self.cross, self.sizes = cross, sizes
        self.mask = np.where(np.arange(cross.shape[3]) < sizes[:, None], 0, HIDDEN).astype(np.float32)[:, None, None]

    def select(self, sources: Integers) -> "Sources":
        sizes = self.sizes[sources]
        return Sources(np.ascontiguousarray(self.cross[:, sources, :, : sizes.max()]), sizes)


class Graphs:
    """Sessions of onnxruntime that run the encoder and the decoder."""

    def __init__(self, model: OnnxMarian) -> None:
        self.shape = model.shape
        self._tables, self._positions = model.embeddings, model.positions
        self._encoder, self._decoder = Session(model.encoder), Session(model.decoder)
        self.encoding: NumpyLengthEncoding | None = None
        self.head = NumpyCountdownHead.none(model.shape.width)
        self.template: PromptTemplate | None = None
        if model.control is not None:
            config, learnt = model.control
            if config["control"] == "encoding":
                self.encoding = NumpyLengthEncoding(config, float(learnt["factor"]))
            elif config["control"] == "prompt":
                self.template = PromptTemplate(config["template"], needs_length=not config.get("plain_share"))
            else:
                self.head = NumpyCountdownHead.of(config, learnt)
        self._head = {name: wrapped(array) for name, array in self.head.arrays.items()}
        self._known: OrderedDict[tuple[int, ...], Floats] = OrderedDict()  # (2 · layers, heads, time, size) by ids

    # ---- inputs

    def embedded(self, ids: Integers, positions: Integers, lengths: LengthInputs | None, written: Integers) -> Floats:
        """Return the decoder's inputs: embeddings, positions and the length encoding, (n,) each -> (n, width)."""
        found = self._tables[-1][ids] + self._positions[positions]
        if self.encoding is not None and lengths is not None:
            given = lengths.length, lengths.unit, lengths.at_most
            found += self.encoding.vectors(*given, written, self.shape.width)
        return found

    def states(self, lengths: LengthInputs | None, written: Integers) -> Integers:
        """Return the states of the countdown head: (n,)."""
        if lengths is None or not self.head.units:
            return np.full(len(written), self.head.identity)
        return self.head.states(lengths, written)

    # ---- encoder

    def encoded(self, prompts: Sequence[Ids]) -> Sources:
        """Return the encoded prompts; equal ones, and those that were encoded shortly before, are encoded once."""
        keys = [tuple(prompt) for prompt in prompts]
        new = sorted({key for key in keys if key not in self._known}, key=len)
        while new:
            size = max(1, _FORWARD_TOKENS // len(new[-1]))
            self._encode(new[-size:])
            del new[-size:]
        found = [self._known[key] for key in keys]
        sizes = np.array([len(key) for key in keys])
        layers, heads, _, head_size = found[0].shape
        cross = np.zeros((layers, len(keys), heads, int(sizes.max()), head_size), np.float32)
        for row, one in enumerate(found):
            cross[:, row, :, : one.shape[2]] = one
        self.forget(keys)
        return Sources(cross, sizes)

    def _encode(self, prompts: list[tuple[int, ...]]) -> None:
        sizes = np.array([len(prompt) for prompt in prompts])
        inputs = np.zeros((len(prompts), int(sizes.max()), self.shape.width), np.float32)
        for row, prompt in enumerate(prompts):
            inputs[row, : len(prompt)] = self._tables[0][np.array(prompt)] + self._positions[: len(prompt)]
        mask = np.where(np.arange(inputs.shape[1]) < sizes[:, None], 0, HIDDEN).astype(np.float32)[:, None, None]
        [cross] = self._encoder.run(["cross"], {"inputs": inputs, "mask": mask})
        for row, prompt in enumerate(prompts):
            self._known[prompt] = cross[:, row, :, : len(prompt)].copy()

    def forget(self, used: Sequence[tuple[int, ...]], kept: int = _SOURCE_TOKENS) -> None:
        """Delete encoder outputs that were not used for long, until those of `kept` tokens are left."""
        for key in used:
            self._known.move_to_end(key)
        tokens = sum(map(len, self._known))
        while tokens > kept:
            key, _ = self._known.popitem(last=False)
            tokens -= len(key)

    # ---- decoder

    def cache(self, sources: int, **options: int) -> BeamCache:
        """Return an empty KV cache."""
        return BeamCache(self.shape.layers, sources, self.shape.heads, self.shape.head_size, **options)

    def read(
        self, sources: Sources, inputs: TextInputs, steps: Sequence[Integers], cache: BeamCache | None = None
    ) -> tuple[Floats, Floats]:
        """Read texts, one per source, into an empty cache; return hidden states and logits of `steps` of each."""
        stored, cache = cache is not None, cache or self.cache(len(inputs.sizes), capacity=1)
        time = inputs.embedded.shape[1]
        places = np.concatenate([row * time + own for row, own in enumerate(steps)])
        states = np.concatenate([own[some] for own, some in zip(inputs.states, steps, strict=True)])
        hidden, logits, new = self._run(sources, cache, inputs.embedded, cache.text_mask(time), places, states)
        if stored:
            cache.append_text(new, inputs.sizes)
        return hidden, logits

    def step(self, sources: Sources, cache: BeamCache, embedded: Floats, states: Integers) -> tuple[Floats, Floats]:
        """Append one token to each row, (rows, width) of inputs; return hidden states and logits of each."""
        mask = cache.step_mask()
        grid = np.zeros((cache.sources, cache.slots, self.shape.width), np.float32)
        grid[cache.source, cache.slot] = embedded
        places = cache.source * cache.slots + cache.slot
        hidden, logits, new = self._run(sources, cache, grid, mask, places, states)
        cache.append_step(new)
        return hidden, logits

    def _run(
        self, sources: Sources, cache: BeamCache, inputs: Floats, mask: Floats, steps: Integers, state: Integers
    ) -> tuple[Floats, Floats, Floats]:
        binding = self._binding(sources, cache)
        shape = self.shape
        hidden = np.empty((len(steps), shape.width), np.float32)
        logits = np.empty((len(steps), shape.vocabulary), np.float32)
        new = np.empty((2 * shape.layers, len(inputs), shape.heads, inputs.shape[1], shape.head_size), np.float32)
        given: dict[str, NDArray[Any]] = {"inputs": inputs, "mask": mask, "steps": steps, "state": state}
        made = {"hidden": hidden, "logits": logits} | {f"new_{_name(n)}": one for n, one in enumerate(new)}
        for name, array in given.items():
            binding.bind_ortvalue_input(name, wrapped(array))
        for name, array in made.items():
            binding.bind_ortvalue_output(name, wrapped(array))
        self._decoder.run_with_iobinding(binding)
        return hidden, logits, new

    def _binding(self, sources: Sources, cache: BeamCache) -> Any:
        """Return the inputs that do not change from step to step, bound once per buffer."""
        if cache.binding is None:
            cache.binding = self._decoder.io_binding()
            cache.binding.bind_ortvalue_input("source_mask", wrapped(sources.mask))
            for name, value in self._head.items():
                cache.binding.bind_ortvalue_input(name, value)
            for n, (buffer, cross) in enumerate(zip(cache.buffers, sources.cross, strict=True)):
                cache.binding.bind_ortvalue_input(_name(n), wrapped(buffer))
                cache.binding.bind_ortvalue_input(f"cross_{_name(n)}", wrapped(cross))
        return cache.binding


def _name(n: int) -> str:
    """Return the name of one of the 2 · layers keys and values in the graph."""
    return f"{('key', 'value')[n % 2]}.{n // 2}"


class MarianRows:
    """Unfinished texts; see `engines.rows.Rows`."""

    _order: Integers  # rows of the last logits and hidden states

    def __init__(
        self,
        engine: MarianEngine,
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
