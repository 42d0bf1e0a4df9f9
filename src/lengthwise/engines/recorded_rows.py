"""Recorded rows: unfinished texts whose decoding step is a CUDA graph.

A step launches hundreds of small kernels. For a small model the CPU takes longer to launch them than the GPU takes to
run them; a graph launches all of them at once. A graph refers to tensors by address, so the KV cache has a fixed number
of rows and columns. Rows that no longer fit are moved into a larger step, and few rows of a large step into a smaller
one. Decoder-only models, and encoder-decoders that compute positions from the length of the cache (Marian, BART). On a
CPU a step runs without a graph; the tests compare it with `TransformersRows`.
"""

import weakref
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicLayer
from transformers.modeling_outputs import BaseModelOutput

from ..arrays import to_numpy
from ..controls.attention import CONTROLLED_ATTENTION
from ..controls.base import Signal
from ..controls.length_inputs import PER_ROW, StepInputs
from .cuda_graph import record
from .fixed_cache import FixedCache, FixedSourceCache, fewer_kernels, lowest

_COLUMNS = 128  # of the smallest step
_SOURCE = 32  # source tokens of the smallest step
_ENCODER_DECODERS = ("marian", "bart")  # by `config.model_type`
_LENGTHS = {f"decoder_{name}" for name in PER_ROW}
_KNOWN = {"attention_mask", "position_ids", "logits_to_keep", "past_key_values", "use_cache", "encoder_outputs"}


class RecordedRows:
    """Unfinished texts; see `engines.rows.Rows`. They go on from rows whose prompts have been read."""

    can_fork = can_select = True

    def __init__(
        self,
        steps: "RecordedSteps",
        ids: Tensor,
        scores: Tensor,
        processors: Any,
        inputs: dict[str, Any],
        hidden: Tensor | None = None,
    ) -> None:
        """Go on from these scores. `hidden`: the last hidden states, if steps return them."""
        self._steps, self._processors, self.hidden = steps, processors, hidden
        self.ids, self.scores = ids, scores
        lengths = {name: value for name, value in inputs.items() if name in _LENGTHS}
        self._controlled, self._inputs = bool(lengths), StepInputs(steps.model, ids, lengths)
        self._origin = np.arange(len(ids))  # the row whose source each row has
        mask, cache = inputs["attention_mask"], inputs["past_key_values"]  # without padding, the mask may be None
        self._source = 0  # tokens of the longest source
        if steps.model.config.is_encoder_decoder:
            source = cache.cross_attention_cache.layers
            self._source = source[0].keys.shape[2]
            self._step = self._taken(len(ids))
            self._step.read_sources(source, torch.ones(len(ids), self._source) if mask is None else mask)
            cache, mask = cache.self_attention_cache, None
        else:
            self._step = self._taken(len(ids))
        mask = torch.ones_like(ids) if mask is None else mask[:, : ids.shape[1]]
        self._position = mask.sum(1)  # of the next token
        self._step.read_texts(cache.layers, mask)

    @torch.inference_mode()
    def step(self, tokens: Any) -> None:
        tokens = tokens.to(self.ids)
        arguments = self._inputs.read(tokens)
        self.ids = torch.cat([self.ids, tokens[:, None]], dim=1)
        rows, columns = self.ids.shape
        if columns > self._step.size.columns:
            self._move(torch.arange(rows, device=self.ids.device))
        logits, hidden = self._step.run(arguments, self._position, columns - 1)
        self._position += 1
        if self.hidden is not None:
            self.hidden = hidden[:rows].to(copy=True, dtype=torch.float32)
        self.scores = self._processors(self.ids, logits[:rows].to(copy=True, dtype=torch.float32))

    @torch.inference_mode()
    def select(self, rows: Any) -> None:
        before, self._origin = self._origin, self._origin[to_numpy(rows)]
        rows = torch.as_tensor(rows, device=self.ids.device)
        self.ids, self.scores, self._position = self.ids[rows], self.scores[rows], self._position[rows]
        self.hidden = None if self.hidden is None else self.hidden[rows]
        self._inputs.select(rows)
        most = self._step.size.rows
        if most // 2 < len(rows) <= most:  # the beams of a source stay with it in most steps of a search
            same = np.array_equal(self._origin, before[: len(rows)])
            self._step.copy_rows(self._step, rows, self.ids.shape[1], sources=not same)
        else:
            self._move(rows)

    def _move(self, rows: Tensor) -> None:
        before, self._step = self._step, self._taken(len(rows))
        self._step.copy_rows(before, rows, min(self.ids.shape[1], before.size.columns))
        if before is not self._step:
            before.release()

    def _taken(self, rows: int) -> "_Step":
        columns = self.ids.shape[1] + 1
        return self._steps.take(self, rows, columns, self._source, self._controlled, self.hidden is not None)


class _Size(NamedTuple):
    rows: int
    columns: int  # tokens of a text, with the prompt of a decoder-only model
    source: int  # tokens of a source; 0 for a decoder-only model


class RecordedSteps:
    """The steps of a model that have been recorded, by their sizes. Each is used by one batch of rows at a time."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._known: dict[tuple[Any, ...], _Step] = {}  # the one that was used last is the last
        self._pool: Any = None

    def can_record(self, inputs: dict[str, Any]) -> bool:
        """Return whether a step with these arguments can be recorded: a plain KV cache, and no unknown argument."""
        config, cache = self.model.config, inputs.get("past_key_values")
        if config.is_encoder_decoder:
            if config.model_type not in _ENCODER_DECODERS:
                return False
            cache = getattr(cache, "self_attention_cache", None)
        layers = getattr(cache, "layers", None)
        plain = bool(layers) and all(type(layer) is DynamicLayer for layer in layers or ())
        own = all(name in _KNOWN | _LENGTHS for name in inputs)
        attention = getattr(config, "_attn_implementation", CONTROLLED_ATTENTION)
        usual = attention != CONTROLLED_ATTENTION and not _on_several_devices(self.model)
        return plain and own and usual and self._can_change_attention

    @cached_property
    def _can_change_attention(self) -> bool:
        try:
            with fewer_kernels(self.model):
                return True
        except ValueError:
            return False

    def take(
        self, owner: RecordedRows, rows: int, columns: int, source: int, controlled: bool, hidden: bool
    ) -> "_Step":
        """Return a step of at least this size. It serves `owner` from now on."""
        size = _Size(rounded(rows, 1), rounded(columns, _COLUMNS), rounded(source, _SOURCE) if source else 0)
        key = (size, controlled, hidden, *recorded_state(self.model))
        step = self._known.pop(key, None)
        if step is None or step.owner() not in (None, owner):
            step = _Step(self.model, size, self._memory(), hidden)
        self._known[key] = step
        step.owner = weakref.ref(owner)
        self._forget()
        return step

    def _memory(self) -> Any:
        if self._pool is None and self.model.device.type == "cuda":
            self._pool = torch.cuda.graph_pool_handle()
        return self._pool

    def _forget(self) -> None:
        """Forget the steps that were used the longest time ago, if all caches take a quarter of the GPU's memory."""
        if self.model.device.type != "cuda":
            return
        allowed = torch.cuda.mem_get_info(self.model.device)[1] // 4
        for key in list(self._known)[:-1]:
            if sum(step.bytes for step in self._known.values()) > allowed:
                del self._known[key]


class _Step:
    """A decoding step of fixed size. Its tensors are changed in place."""

    def __init__(self, model: Any, size: _Size, pool: Any, hidden: bool) -> None:
        self.model, self.size, self._pool, self._keeps_hidden = model, size, pool, hidden
        self.owner: Callable[[], RecordedRows | None]  # returns the rows that use this step
        self.release()
        device = model.device
        self._column = torch.zeros(1, dtype=torch.long, device=device)
        self._position = torch.zeros(size.rows, 1, dtype=torch.long, device=device)
        self._bias = self._hidden(size.columns)
        self._source_bias = self._hidden(size.source)
        self._text = FixedCache(size.rows, size.columns, self._column)
        self._source: FixedSourceCache | None = None  # that of an encoder-decoder
        self._arguments: dict[str, Tensor] = {}
        self._signal: dict[str, Tensor] = {}
        self._logits, self._last = torch.empty(0), torch.empty(0)
        self._run: Callable[[], None] | None = None  # the recorded step

    def _hidden(self, columns: int) -> Tensor:
        """Return an attention bias (rows, columns) that hides all keys: the lowest number. Those with 0 are seen."""
        shape = self.size.rows, columns
        return torch.full(shape, lowest(self.model), dtype=self.model.dtype, device=self.model.device)

    @property
    def bytes(self) -> int:
        return sum(one.nbytes for layer in [*self._text.kept.values(), *self._sources] for one in layer)

    @property
    def _sources(self) -> list[tuple[Tensor, Tensor]]:
        """The keys and values of the sources, (rows, heads, tokens, size), of each layer."""
        layers = [] if self._source is None else self._source.cross_attention_cache.layers
        return [(layer.keys, layer.values) for layer in layers]

    def release(self) -> None:
        """Let another batch use this step."""
        self.owner = lambda: None

    def read_texts(self, layers: list[Any], mask: Tensor) -> None:
        """Take over the KV cache of the texts so far; `mask` (rows, columns) is 1 where there is a token."""
        rows, columns = mask.shape
        for number, layer in enumerate(layers):
            new = layer.keys, layer.values
            for kept, one in zip(self._text.layer(number, *new), new, strict=True):
                kept[:rows, :, :columns] = one
        self._show(self._bias, mask)

    def read_sources(self, layers: list[Any], mask: Tensor) -> None:
        """Take over the keys and values of the sources; `mask` (rows, tokens) is 1 where there is a token."""
        rows, tokens = mask.shape
        self._make_sources(layers)
        for kept, layer in zip(self._sources, layers, strict=True):
            kept[0][:rows, :, :tokens], kept[1][:rows, :, :tokens] = layer.keys, layer.values
        self._show(self._source_bias, mask.to(self._bias.device))

    def _make_sources(self, like: list[Any]) -> None:
        if self._source is None:  # a cache without tokens is false
            self._source = FixedSourceCache(self._text, self.size.source, like)

    def _show(self, bias: Tensor, mask: Tensor) -> None:
        bias.fill_(lowest(self.model))
        bias[: len(mask), : mask.shape[1]].masked_fill_(mask.bool(), 0)

    def copy_rows(self, other: "_Step", rows: Tensor, columns: int, *, sources: bool = True) -> None:
        """Take over these rows of another step, or of this one, in this order. `columns`: how many are filled.

        `sources` false: each row keeps its source.
        """
        count = len(rows)
        for number, layer in other._text.kept.items():
            for kept, old in zip(self._text.layer(number, *layer), layer, strict=True):
                kept[:count, :, :columns] = old[rows, :, :columns]
        self._copy_bias(self._bias, other._bias[rows, :columns])
        if sources and other._source is not None:
            self._make_sources(other._source.cross_attention_cache.layers)
            for mine, theirs in zip(self._sources, other._sources, strict=True):
                for kept, old in zip(mine, theirs, strict=True):
                    kept[:count] = old[rows]
            self._copy_bias(self._source_bias, other._source_bias[rows])

    def _copy_bias(self, kept: Tensor, new: Tensor) -> None:
        kept.fill_(lowest(self.model))
        kept[: len(new), : new.shape[1]] = new

    def run(self, arguments: dict[str, Any], position: Tensor, column: int) -> tuple[Tensor, Tensor]:
        """Return the logits (at least as many rows as `position`, vocabulary) after these inputs, and hidden states.

        The last hidden states, (rows, width), are empty unless this step was made to keep them.
        """
        signal = arguments.pop("decoder_signal", None)
        self._put(self._arguments, arguments)
        self._put(self._signal, {} if signal is None else {k: v for k, v in vars(signal).items() if v is not None})
        self._position[: len(position), 0] = position
        self._column.fill_(column)
        with torch.cuda.device_of(self._column):  # type: ignore[no-untyped-call]  # nothing on a CPU
            if self._run is None:
                self._run = record(self.model, self._forward, self._pool)[0] if self._column.is_cuda else self._forward
            self._run()
        return self._logits, self._last

    def _put(self, kept: dict[str, Tensor], values: dict[str, Tensor]) -> None:
        """Write `values`, one for each row, into the first rows of the tensors of `kept`, made on first use."""
        for name, value in values.items():
            if name not in kept:
                kept[name] = value.new_zeros(self.size.rows, *value.shape[1:])
            kept[name][: len(value)] = value

    def _forward(self) -> None:
        """Run the model. A second run with the same inputs changes nothing."""
        self._bias.index_fill_(1, self._column, 0)
        control = {"decoder_signal": Signal(**self._signal)} if self._signal else {}
        text: dict[str, Any] = {"past_key_values": self._text, "position_ids": self._position}
        mask = "attention_mask"
        if self._source is not None:
            keys = self._sources[0][0]  # only the shape of the encoder's output is read
            memory = keys.new_zeros(()).expand(*self._source_bias.shape, keys.shape[1] * keys.shape[3])
            text = {"past_key_values": self._source, "encoder_outputs": BaseModelOutput(last_hidden_state=memory)}
            text[mask], mask = self._source_bias[:, None, None], "decoder_attention_mask"
        text[mask] = self._bias[:, None, None]
        with fewer_kernels(self.model):
            found = self.model(
                **self._arguments, **control, **text, use_cache=True, output_hidden_states=self._keeps_hidden
            )
        self._logits = found.logits[:, -1]
        if self._keeps_hidden:
            states = found.decoder_hidden_states if self._source is not None else found.hidden_states
            self._last = states[-1][:, -1]


def recorded_state(model: Any) -> tuple[Any, ...]:
    """Return what a recording depends on beside its sizes: where the weights are, and which adapters are in use."""
    layer = next((one for one in model.modules() if hasattr(one, "base_layer")), None)  # of PEFT; alike everywhere
    adapters = None if layer is None else (*layer.active_adapters, layer.disable_adapters, layer.merged)
    return model.device, model.dtype, adapters, next(model.parameters()).data_ptr()


def _on_several_devices(model: Any) -> bool:
    return len(set(getattr(model, "hf_device_map", {}).values())) > 1


def rounded(count: int, least: int) -> int:
    """Return the smallest number of 1, 2, 3, 4, 6, 8, 12, 16, … times `least` that is not below `count`.

    >>> [rounded(n, 1) for n in (1, 3, 5, 9, 40)], rounded(200, 128)
    ([1, 3, 6, 12, 48], 256)
    """
    size = least
    while size < count and 3 * size // 2 < count:
        size *= 2
    return size if size >= count else 3 * size // 2
