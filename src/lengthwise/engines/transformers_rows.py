"""Rows of a transformers model: unfinished texts, and the call of `generate` that prepares them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import get_ident
from typing import Any

import torch
from torch import Tensor
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    NoBadWordsLogitsProcessor,
    UnbatchedClassifierFreeGuidanceLogitsProcessor,
)

from .recorded_rows import RecordedRows, RecordedSteps


@dataclass
class Prepared:
    """What `generate` has prepared for a decoding method."""

    ids: Tensor
    processors: Any
    inputs: dict[str, Any]

    @property
    def can_fork(self) -> bool:
        """Whether rows can be forked: each cache must support that, and no processor may have a cache of its own."""
        caches = [value for name, value in self.inputs.items() if name in ("past_key_values", "cache_params")]
        guided = any(isinstance(one, UnbatchedClassifierFreeGuidanceLogitsProcessor) for one in self.processors)
        return not guided and all(value is None or hasattr(value, "reorder_cache") for value in caches)


def prepare_rows(model: Any, input_ids: Tensor, logits_processor: Any, **inputs: Any) -> Prepared:
    """Return the prepared call, in place of decoding: the hook of `generate(custom_generate=...)`."""
    unused = ("stopping_criteria", "generation_config", "synced_gpus", "streamer")
    processors = LogitsProcessorList(map(_in_place, logits_processor))
    return Prepared(input_ids, processors, {name: v for name, v in inputs.items() if name not in unused})


def _in_place(processor: Any) -> Any:
    """Return the processor, or one that bans the same tokens without a bias as wide as the vocabulary in each step."""
    if type(processor) is NoBadWordsLogitsProcessor and all(len(ids) == 1 for ids in processor.sequence_bias):
        return _BannedTokens([ids[0] for ids in processor.sequence_bias])
    return processor


class _BannedTokens(LogitsProcessor):  # type: ignore[misc]  # transformers is untyped
    def __init__(self, tokens: list[int]) -> None:
        self.tokens = torch.tensor(tokens)

    def __call__(self, _: Tensor, scores: Tensor) -> Tensor:
        self.tokens = self.tokens.to(scores.device)
        return scores.index_fill_(1, self.tokens, -torch.inf)


class TransformersRows:
    """Unfinished texts with a transformers model; see `engines.rows.Rows`."""

    def __init__(self, model: Any, prepared: Prepared, hidden: bool) -> None:
        self._model, self._processors, self._inputs = model, prepared.processors, prepared.inputs
        self.can_fork = self.can_select = prepared.can_fork
        self.ids, self.scores = prepared.ids, torch.empty(0)
        self.hidden: Tensor | None = torch.empty(0) if hidden else None
        self._forward(None, first=True)

    def step(self, tokens: Any) -> None:
        self.ids = torch.cat([self.ids, tokens[:, None].to(self.ids)], dim=1)
        self._forward(1 if self._inputs.get("use_cache", True) else None, first=False)

    @torch.inference_mode()
    def select(self, rows: Tensor) -> None:
        rows = torch.as_tensor(rows, device=self.ids.device)
        count = len(self.ids)
        self.ids, self.scores = self.ids[rows], self.scores[rows]
        self.hidden = None if self.hidden is None else self.hidden[rows]
        self._inputs = {name: _picked(value, rows, count) for name, value in self._inputs.items()}

    def recorded(self, steps: RecordedSteps) -> "TransformersRows | RecordedRows":
        """Return the rows with a KV cache of fixed size and recorded steps, or these rows if that is not possible."""
        if not (self.can_fork and steps.can_record(self._inputs)):
            return self
        return RecordedRows(steps, self.ids, self.scores, self._processors, self._inputs, self.hidden)

    @torch.inference_mode()
    def _forward(self, new_tokens: int | None, first: bool) -> None:
        prepare = self._model.prepare_inputs_for_generation
        call = prepare(self.ids, next_sequence_length=new_tokens, is_first_iteration=first, **self._inputs)
        with _last_states(self._model if self.hidden is not None else None) as kept:
            found = self._model(**call, return_dict=True)
        encoder_decoder = self._model.config.is_encoder_decoder
        if self.hidden is not None:
            self.hidden = kept[0].to(self.ids.device, torch.float32)
        update = self._model._update_model_kwargs_for_generation
        self._inputs = update(found, self._inputs, is_encoder_decoder=encoder_decoder)
        logits = found.logits[:, -1].to(copy=True, dtype=torch.float32, device=self.ids.device)
        self.scores = self._processors(self.ids, logits)


@contextmanager
def _last_states(model: Any) -> Iterator[list[Tensor]]:
    """Put the decoder's last hidden states, (rows, width), into the yielded list, before controls edit them.

    `output_hidden_states` would keep those of every layer and every token of the prompts. Without a model, nothing is
    kept. Threads may share a model; each keeps its own.
    """
    kept: list[Tensor] = []
    if model is None:
        yield kept
        return
    thread = get_ident()

    def keep(module: Any, args: Any, output: Any) -> None:
        if get_ident() == thread:
            kept.append(output[0][:, -1])

    handle = model.get_decoder().register_forward_hook(keep)
    try:
        yield kept
    finally:
        handle.remove()


def _picked(value: Any, rows: Tensor, count: int) -> Any:
    """Return the named rows of an argument of the model: a tensor, an output, a cache; anything else as it is."""
    if isinstance(value, Tensor):
        return value[rows.to(value.device)] if value.dim() and len(value) == count else value
    if hasattr(value, "reorder_cache"):
        value.reorder_cache(rows)
        return value
    if isinstance(value, dict):  # an output of the encoder
        return type(value)(**{name: _picked(one, rows, count) for name, one in value.items()})
    return value
