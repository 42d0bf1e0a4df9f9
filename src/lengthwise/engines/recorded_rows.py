"""Recorded rows: unfinished texts of a decoder-only model whose decoding step is a CUDA graph.

A step launches hundreds of small kernels. For a small model the CPU takes longer to launch them than the GPU takes to
run them; a graph launches all of them at once. A graph refers to tensors by address, so the KV cache has a fixed number
of rows and columns. Rows that no longer fit are moved into a larger step, and few rows of a large step into a smaller
one. On a CPU a step runs without a graph; the tests compare it with `TransformersRows`.
"""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicLayer

from ..controls.attach import CONTROLLED_ATTENTION, step_inputs
from ..controls.base import Signal
from .cuda_graph import record
from .fixed_cache import FixedCache, grouped_attention, lowest

_COLUMNS = 128  # of the smallest step
_KNOWN = {"attention_mask", "position_ids", "logits_to_keep", "past_key_values", "use_cache"}  # arguments of a step


class RecordedRows:
    """Unfinished texts; see `engines.rows.Rows`. They go on from rows whose prompts have been read."""

    can_fork = can_select = True
    hidden = None

    def __init__(self, steps: "RecordedSteps", ids: Tensor, scores: Tensor, processors: Any, inputs: dict[str, Any]):
        self._steps, self._processors = steps, processors
        self.ids, self.scores = ids, scores
        mask = inputs["attention_mask"]  # None: there is no padding
        self._mask = torch.ones_like(ids) if mask is None else mask[:, : ids.shape[1]]
        self._lengths = {name: value for name, value in inputs.items() if name.startswith("decoder_")}
        self._step = self._taken(len(ids))
        self._step.read_prompts(inputs["past_key_values"].layers, self._mask)

    @torch.inference_mode()
    def step(self, tokens: Any) -> None:
        self.ids = torch.cat([self.ids, tokens[:, None].to(self.ids)], dim=1)
        self._mask = torch.nn.functional.pad(self._mask, (0, 1), value=1)
        rows = len(self.ids)
        if self.ids.shape[1] > self._step.columns:
            self._move(torch.arange(rows, device=self.ids.device))
        arguments = step_inputs(self._steps.model, self.ids, self._mask, self._lengths)
        logits = self._step.run(arguments, self._mask.sum(1) - 1, self.ids.shape[1] - 1)
        self.scores = self._processors(self.ids, logits[:rows].to(copy=True, dtype=torch.float32))

    @torch.inference_mode()
    def select(self, rows: Tensor) -> None:
        rows = torch.as_tensor(rows, device=self.ids.device)
        self.ids, self.scores, self._mask = self.ids[rows], self.scores[rows], self._mask[rows]
        self._lengths = {name: value[rows] for name, value in self._lengths.items()}
        if self._step.rows // 2 < len(rows) <= self._step.rows:
            self._step.copy_rows(self._step, rows)
        else:
            self._move(rows)

    def _move(self, rows: Tensor) -> None:
        before, self._step = self._step, self._taken(len(rows))
        self._step.copy_rows(before, rows)
        if before is not self._step:
            before.release()

    def _taken(self, rows: int) -> "_Step":
        return self._steps.take(self, rows, self.ids.shape[1] + 1, bool(self._lengths))


class RecordedSteps:
    """The steps of a model that have been recorded, by their sizes. Each is used by one batch of rows at a time."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._known: dict[tuple[Any, ...], _Step] = {}  # the one that was used last is the last
        self._pool: Any = None

    def can_record(self, inputs: dict[str, Any]) -> bool:
        """Return whether a step with these arguments can be recorded: a plain KV cache, and no unknown argument."""
        layers = getattr(inputs.get("past_key_values"), "layers", None)
        plain = bool(layers) and all(type(layer) is DynamicLayer for layer in layers or ())
        own = all(name in _KNOWN or name.startswith("decoder_") for name in inputs)
        attention = getattr(self.model.config, "_attn_implementation", CONTROLLED_ATTENTION)
        return plain and own and attention != CONTROLLED_ATTENTION and not _on_several_devices(self.model)

    def take(self, owner: RecordedRows, rows: int, columns: int, controlled: bool) -> "_Step":
        """Return a step for these numbers of rows and columns, or somewhat more. It serves `owner` from now on."""
        sizes = _size(rows, 1), _size(columns, _COLUMNS)
        key = (*sizes, controlled, *recorded_state(self.model))
        step = self._known.pop(key, None)
        if step is None or step.owner() not in (None, owner):
            step = _Step(self.model, *sizes, self._memory())
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

    def __init__(self, model: Any, rows: int, columns: int, pool: Any) -> None:
        self.model, self.rows, self.columns, self._pool = model, rows, columns, pool
        self.owner: Callable[[], RecordedRows | None]  # of the rows that use it
        self.release()
        device = model.device
        self._column = torch.zeros(1, dtype=torch.long, device=device)
        self._position = torch.zeros(rows, 1, dtype=torch.long, device=device)
        self._bias = torch.full((rows, columns), lowest(model), dtype=model.dtype, device=device)  # 0: attended
        self._cache = FixedCache(rows, columns, self._column)
        self._arguments: dict[str, Tensor] = {}
        self._signal: dict[str, Tensor] = {}
        self._logits = torch.empty(0)
        self._graph: Any = None

    @property
    def bytes(self) -> int:
        return sum(one.nbytes for layer in self._cache.kept.values() for one in layer)

    def release(self) -> None:
        """Let another batch use this step."""
        self.owner = lambda: None

    def read_prompts(self, layers: list[Any], mask: Tensor) -> None:
        """Take over the KV cache of the prompts, (rows, columns) of which `mask` is 1 where there is a token."""
        rows, columns = mask.shape
        for number, layer in enumerate(layers):
            new = layer.keys, layer.values
            for kept, one in zip(self._cache.layer(number, *new), new, strict=True):
                kept[:rows, :, :columns] = one
        self._bias.fill_(lowest(self.model))
        self._bias[:rows, :columns].masked_fill_(mask.bool(), 0)

    def copy_rows(self, other: "_Step", rows: Tensor) -> None:
        """Take over these rows of another step, or of this one, in this order."""
        count, columns = len(rows), min(self.columns, other.columns)
        for number, layer in other._cache.kept.items():
            for kept, old in zip(self._cache.layer(number, *layer), layer, strict=True):
                kept[:count, :, :columns] = old[rows, :, :columns]
        bias = other._bias[rows, :columns]
        self._bias.fill_(lowest(self.model))
        self._bias[:count, :columns] = bias

    def run(self, arguments: dict[str, Any], position: Tensor, column: int) -> Tensor:
        """Return the logits (at least as many rows as `position`, vocabulary) after these inputs."""
        signal = arguments.pop("decoder_signal", None)
        self._put(self._arguments, arguments)
        self._put(self._signal, {} if signal is None else {k: v for k, v in vars(signal).items() if v is not None})
        self._position[: len(position), 0] = position
        self._column.fill_(column)
        with torch.cuda.device_of(self._column):  # type: ignore[no-untyped-call]  # nothing on a CPU
            if self._graph is not None:
                self._graph.replay()
                return self._logits
            with grouped_attention(self.model):
                if self._column.is_cuda:
                    self._graph, _ = record(self._forward, self._pool)
                    self._graph.replay()
                else:
                    self._forward()
        return self._logits

    def _put(self, kept: dict[str, Tensor], values: dict[str, Tensor]) -> None:
        """Write `values`, one for each row, into the first rows of the tensors of `kept`, made on first use."""
        for name, value in values.items():
            if name not in kept:
                kept[name] = value.new_zeros(self.rows, *value.shape[1:])
            kept[name][: len(value)] = value

    def _forward(self) -> None:
        """Run the model. A second run with the same inputs changes nothing."""
        self._bias.index_fill_(1, self._column, 0)
        control = {"decoder_signal": Signal(**self._signal)} if self._signal else {}
        self._logits = self.model(
            **self._arguments,
            **control,
            position_ids=self._position,
            attention_mask=self._bias[:, None, None],
            past_key_values=self._cache,
            use_cache=True,
        ).logits[:, -1]


def recorded_state(model: Any) -> tuple[Any, ...]:
    """Return what a recording depends on beside its sizes: where the weights are, and which adapters are in use."""
    layer = next((one for one in model.modules() if hasattr(one, "base_layer")), None)  # of PEFT; alike everywhere
    adapters = None if layer is None else (*layer.active_adapters, layer.disable_adapters, layer.merged)
    return model.device, model.dtype, adapters


def _on_several_devices(model: Any) -> bool:
    return len(set(getattr(model, "hf_device_map", {}).values())) > 1


def _size(count: int, least: int) -> int:
    """Return the smallest number of 1, 2, 3, 4, 6, 8, 12, 16, … times `least` that is not below `count`.

    >>> [_size(n, 1) for n in (1, 3, 5, 9, 40)], _size(200, 128)
    ([1, 3, 6, 12, 48], 256)
    """
    size = least
    while size < count and 3 * size // 2 < count:
        size *= 2
    return size if size >= count else 3 * size // 2
