"""The length inputs of a model with controls: from arguments such as `decoder_length` to embeddings and signals.

These functions take the place of methods of the model; `attach.py` has the list.

Arguments of a controlled call:
  decoder_length    (batch,)       units to write
  decoder_start     (batch,)       column of the first answer token; `generate` takes the width of the prompt, and an
                                   encoder-decoder starts after its first decoder token
  decoder_position  (batch, time)  units written so far, if the caller has counted them; default: counted from the ids
  decoder_unit      (batch,)       index of the row's unit among the controls' units; default: 0
  decoder_at_most   (batch,)       whether the length is an upper limit; default: False
  source_sentences  (batch, time)  the sentence of each source token, for group attention; default: counted from the ids
  target_sentences  (batch, time)  the sentence of each decoder step, also of those in the KV cache; default: the same
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import get_ident
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import Control, Signal
from .attached import Model, columns_after, controls_of, grouping_of, length_control, positions_of, rescaling_of

PER_ROW = ("length", "start", "unit", "at_most")  # arguments with one value per row, after "decoder_"


# ---- the three methods


def _forward(model: Model, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    lengths, position = _popped(kwargs), kwargs.pop("decoder_position", None)
    signal = kwargs.pop("decoder_signal", None)  # from `_prepare_inputs`, which has added the vectors already
    counts, grouping = lengths["length"] is not None and length_control(model).units, grouping_of(model)
    if counts or grouping is not None:
        kwargs |= dict(zip(inspect.signature(original).parameters, args, strict=False))
        args = ()
    if grouping is not None:
        kwargs |= _sentences(model, grouping, kwargs)
    if counts:
        ids_key, embeds_key, mask_key = _keys(model)
        ids = _decoder_ids(model, kwargs)
        kwargs.pop(ids_key, None)
        if ids is None:
            raise ValueError(f"decoder_length needs token ids to count; give {ids_key}")
        cached = _cached(kwargs)
        if cached and position is None:
            raise ValueError(
                f"{cached} tokens are in the cache and cannot be counted; give decoder_position, or use generate"
            )
        if lengths["start"] is None and model.config.is_encoder_decoder:
            lengths["start"] = torch.full_like(lengths["length"], 1 - cached)
        signal = _signal(model, ids, lengths, kwargs.get(mask_key), position)
        kwargs[embeds_key] = embed(model, ids, signal)
    with _hooked(model, signal) if signal is not None else nullcontext():
        return original(*args, **kwargs)


def _decoder_ids(model: Model, kwargs: dict[str, Any]) -> Tensor | None:
    """Return the ids that the decoder reads in a call with these arguments."""
    ids: Tensor | None = kwargs.get(_keys(model)[0])
    if ids is None and model.config.is_encoder_decoder and kwargs.get("labels") is not None:
        ids = model.prepare_decoder_input_ids_from_labels(labels=kwargs["labels"])
    return ids


def _sentences(model: Model, grouping: Control, kwargs: dict[str, Any]) -> dict[str, Tensor]:
    """Return the sentence numbers of both sides: those that are given, else those counted from the ids."""
    source, target = kwargs.get("source_sentences"), kwargs.get("target_sentences")
    if source is None and (ids := kwargs.get("input_ids")) is not None:
        source = grouping.sentences(ids, "source")
    if target is None and not _cached(kwargs) and (ids := _decoder_ids(model, kwargs)) is not None:
        target = grouping.sentences(ids, "target")
    if source is None or target is None:
        raise ValueError(
            "group attention counts sentences in all ids; give input_ids and decoder_input_ids, without a KV cache, or "
            "give source_sentences and target_sentences"
        )
    return {"source_sentences": source, "target_sentences": target}


def _cached(kwargs: dict[str, Any]) -> int:
    """Return how many tokens are in the KV cache of a call."""
    cache = kwargs.get("past_key_values")
    return int(cache.get_seq_length()) if cache is not None else 0


def _prepare_inputs(model: Model, original: Callable[..., Any], input_ids: Tensor, *args: Any, **kwargs: Any) -> Any:
    lengths = _popped(kwargs)
    inputs: dict[str, Any] = original(input_ids, *args, **kwargs)
    if (grouping := grouping_of(model)) is not None:
        inputs["target_sentences"] = grouping.sentences(input_ids, "target").to(model.device)
    if lengths["length"] is None:
        return inputs
    ids_key, _, mask_key = _keys(model)
    new_ids, mask = inputs[ids_key], kwargs.get(mask_key)
    if new_ids is None:
        raise ValueError("a prompt given as inputs_embeds cannot be counted; give input_ids")
    if mask is not None and mask.shape[-1] != input_ids.shape[1]:
        raise ValueError(
            f"length control needs all token ids so far: got {input_ids.shape[1]} of {mask.shape[-1]}; "
            "generate without prefill_chunk_size, and give the whole prompt if you give a KV cache"
        )
    ids = input_ids.to(new_ids.device)  # `generate` may keep them on another device
    return inputs | {ids_key: None} | _controlled(model, ids, new_ids.shape[1], lengths, mask)


class StepInputs:
    """The arguments of the steps of a batch of rows, each of which reads one token.

    Lengths are counted on the CPU: for a few integers a GPU would need dozens of kernels. `ids` (batch, time): the
    tokens so far. `given`: the arguments with one value per row, such as `decoder_length`. Without a length, the
    argument of a step is the id.
    """

    def __init__(self, model: Model, ids: Tensor, given: dict[str, Tensor]) -> None:
        self._model = model
        self._lengths = _popped({name: value.to(ids.device) for name, value in given.items()})
        start, unit = self._lengths.pop("start"), self._lengths["unit"]
        self._counts = self._lengths["length"] is not None
        if self._counts:
            self._ids = ids.cpu().numpy()
            self._start = np.ones(len(ids), np.int64) if start is None else start.cpu().numpy()
            self._unit = None if unit is None else unit.cpu().numpy()

    def read(self, tokens: Tensor) -> dict[str, Any]:
        """Return the arguments of the step that reads these `tokens` (batch,)."""
        ids_key, embeds_key, _ = _keys(self._model)
        read = tokens[:, None]
        if not self._counts:
            return {ids_key: read}
        self._ids = np.concatenate([self._ids, read.cpu().numpy()], 1)
        column = self._ids.shape[1] - 1 - self._start
        position = length_control(self._model).written(self._ids, self._start, self._unit)
        counted = torch.from_numpy(np.stack([position, column])[:, :, None]).to(tokens.device)
        live = torch.ones_like(read, dtype=torch.bool)
        if self._model.config.is_encoder_decoder:
            live = (read != self._model.config.pad_token_id) | (counted[1] < 0)
        signal = Signal(position=counted[0], column=counted[1], live=live, **self._lengths)
        return {embeds_key: embed(self._model, read, signal), "decoder_signal": signal}

    def select(self, rows: Tensor) -> None:
        """Keep these rows in this order."""
        self._lengths = {name: None if value is None else value[rows] for name, value in self._lengths.items()}
        if self._counts:
            numbers = rows.cpu().numpy()
            self._ids, self._start = self._ids[numbers], self._start[numbers]
            self._unit = None if self._unit is None else self._unit[numbers]


def _controlled(model: Model, ids: Tensor, width: int, lengths: dict[str, Any], mask: Tensor | None) -> dict[str, Any]:
    """Return the embeddings of the last `width` ids with the vectors of the controls, and the signal at these steps."""
    signal = _signal(model, ids, lengths, mask).last(width)
    return {_keys(model)[1]: embed(model, ids[:, -width:], signal), "decoder_signal": signal}


def _popped(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Remove the arguments with one value per row from `kwargs` and return them by their names in `PER_ROW`."""
    return {name: kwargs.pop(f"decoder_{name}", None) for name in PER_ROW}


def _generate(
    model: Model, original: Callable[..., Any], inputs: Tensor | None = None, *args: Any, **kwargs: Any
) -> Any:
    given, units = _popped(kwargs), length_control(model).units
    prompt = inputs if inputs is not None else kwargs.get("input_ids")
    if (grouping := grouping_of(model)) is not None and prompt is not None:
        kwargs.setdefault("source_sentences", grouping.sentences(prompt, "source").to(model.device))
    if given["length"] is None or not units:
        return original(inputs, *args, **kwargs)
    for name, kind in (("length", torch.long), ("unit", torch.long), ("at_most", torch.bool)):
        if given[name] is not None:
            values = torch.as_tensor(given[name], dtype=kind, device=model.device)
            if prompt is not None and values.dim() == 0:
                values = values.expand(len(prompt))  # (batch,)
            elif prompt is not None and len(values) != len(prompt):
                raise ValueError(f"decoder_{name} needs one value per row: got {len(values)} for {len(prompt)} rows")
            given[name] = values
    for row, length in enumerate(given["length"].tolist()):
        if length < 1:
            raise ValueError(f"decoder_length must be at least 1; got {length} for row {row}")
    if given["unit"] is not None and not all(0 <= n < len(units) for n in given["unit"].tolist()):
        raise ValueError(f"decoder_unit numbers the units {', '.join(units)} from 0; got {given['unit'].tolist()}")
    if given["start"] is None and not model.config.is_encoder_decoder:
        given["start"] = torch.full_like(given["length"], prompt.shape[1] if prompt is not None else 1)
    kwargs |= {f"decoder_{name}": value for name, value in given.items() if value is not None}
    return original(inputs, *args, **kwargs)


METHODS = {"forward": _forward, "prepare_inputs_for_generation": _prepare_inputs, "generate": _generate}


@contextmanager
def _hooked(model: Model, signal: Signal) -> Iterator[None]:
    """Run the decoder as the controls require: without its own positions, from a cell, with its last states edited.

    Threads may share the model, and each has its own signal: a hook acts only in the thread that registered it.
    """
    controls, handles, thread = controls_of(model), [], get_ident()

    def without_positions(module: Any, args: Any, output: Tensor) -> Tensor:
        return torch.zeros_like(output) if get_ident() == thread else output

    def edit(module: Any, args: Any, output: Any) -> None:
        for control in controls if get_ident() == thread else ():
            if control.edits_hidden:
                output.last_hidden_state = control.edit_hidden(signal, output.last_hidden_state)

    def from_cell(module: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        for control in controls if get_ident() == thread else ():
            if control.sets_cell:
                kwargs = kwargs | {"initial_cell": control.initial_cell(signal)}
        return args, kwargs

    if any(control.sets_cell for control in controls):
        handles.append(model.get_decoder().register_forward_pre_hook(from_cell, with_kwargs=True))
    if any(control.positions == "replace" for control in controls):
        handles.append(positions_of(model.get_decoder()).register_forward_hook(without_positions))
    if any(control.edits_hidden for control in controls):
        handles.append(model.get_decoder().register_forward_hook(edit))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


# ---- from ids to embeddings plus length vectors


def _keys(model: Model) -> tuple[str, str, str]:
    """Return the names of the decoder's ids, embeddings and mask among this model's arguments."""
    if model.config.is_encoder_decoder:
        return "decoder_input_ids", "decoder_inputs_embeds", "decoder_attention_mask"
    return "input_ids", "inputs_embeds", "attention_mask"


def _signal(
    model: Model, ids: Tensor, lengths: dict[str, Any], mask: Tensor | None, position: Tensor | None = None
) -> Signal:
    """Return the signal at each step of `ids` (batch, time)."""
    length, start, unit, at_most = (None if value is None else value.to(ids.device) for value in lengths.values())
    assert length is not None
    if length.shape != ids.shape[:1]:
        raise ValueError(f"decoder_length needs one length per row, shape ({len(ids)},); got {tuple(length.shape)}")
    if start is None:
        if not model.config.is_encoder_decoder:
            raise ValueError("decoder_start is missing: the column of the first answer token, one number per row")
        start = torch.ones_like(length)
    column = columns_after(ids, start)
    if mask is not None and mask.dim() == 2:
        live = mask[:, -ids.shape[1] :].to(ids.device).bool()
    elif model.config.is_encoder_decoder:
        live = (ids != model.config.pad_token_id) | (column < 0)  # Marian and T5 start with the padding token
    else:
        live = torch.ones_like(ids, dtype=torch.bool)
    if position is None:
        position = length_control(model).count(ids, start, live, unit)
    return Signal(position, length, column, live, unit, at_most)


def embed(model: Model, ids: Tensor, signal: Signal) -> Tensor:
    """Return the decoder's embeddings of `ids` plus the vectors of the controls: (batch, time, dim)."""
    decoder = model.get_decoder()
    embeds: Tensor = decoder.get_input_embeddings()(ids)
    rescaling = rescaling_of(decoder)
    inputs = embeds * rescaling if rescaling != 1 else embeds
    for control in controls_of(model):
        if (vectors := control.encode(signal, inputs)) is not None:
            embeds = embeds + (vectors / rescaling).to(embeds.dtype)
    return embeds
