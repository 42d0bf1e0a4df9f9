"""Joining controls to a model of transformers, and taking them off again.

The only file that knows transformers' insides. No subclass, no hook that outlives a call: three methods of the one
model object are put in front of its own.
  forward                        takes `decoder_length` and, for it, turns token ids into embeddings + length vectors,
                                 and lets controls that steer change the decoder's last states
  prepare_inputs_for_generation  does the same for the tokens a cache has not read. It is given all ids, reordered by
                                 beam search already, so the count is read off them anew and nothing is remembered
  generate                       notes where the prompt ends
Without `decoder_length` the model is the plain model. What a control adds is decided in `controls/`, not here.

Arguments of a controlled call:
  decoder_length    (batch,)       units to write
  decoder_start     (batch,)       column of the first answer token; `generate` knows it (the width of the prompt), an
                                   encoder-decoder starts after its first decoder token
  decoder_position  (batch, time)  units written so far, if the caller has counted; else counted from the ids
  decoder_unit      (batch,)       which of the controls' units a row counts in, by number; else the first
  decoder_at_most   (batch,)       whether the length is a limit that need not be reached; else not
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial, update_wrapper
from types import MethodType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..length.meter import Meter
from . import Control, Signal

Model = Any  # a PreTrainedModel, or one inside a PeftModel


class LengthControl(nn.Module):
    """What `attach` adds to a model, as `model.length_control`: the controls and the meters they count with."""

    def __init__(self, controls: Iterable[Control], tokenizer: Any, vocabulary: int, rows: int) -> None:
        super().__init__()
        controls = list(controls)
        self.controls = nn.ModuleList(controls)
        self.units = units_of(controls)  # none: no control counts, and decoder_length changes nothing
        self.vocabulary = vocabulary  # embedding rows before length tokens were added
        self._tokenizer, self._rows = tokenizer, rows  # embedding rows now
        self._meters: dict[str, Meter] = {}

    def meter(self, unit: str, device: torch.device | str = "cpu") -> Meter:
        """The meter of one unit. Made when it is first asked for: a caller who counts for himself needs none."""
        if unit not in self._meters:
            self._meters[unit] = Meter(self._tokenizer, unit, self._rows)
        found = self._meters[unit]
        return found if found.prices.device == device else found.to(device)

    def count(self, ids: Tensor, start: Tensor, live: Tensor, unit: Tensor | None = None) -> Tensor:
        """Units written after each token: (batch, time). Below 0 in the prompt: what of it is still to be read."""
        if len(self.units) == 1 or unit is None:
            return _counted(self.meter(self.units[0], ids.device), ids, start, live)
        counts = torch.empty_like(ids)
        for number in sorted(set(unit.tolist())):
            rows = unit == number
            meter = self.meter(self.units[number], ids.device)
            counts[rows] = _counted(meter, ids[rows], start[rows], live[rows])
        return counts


def _counted(meter: Meter, ids: Tensor, start: Tensor, live: Tensor) -> Tensor:
    prompt = live & (_columns(ids, start) < 0)
    # In tokens every prompt token counts, special ones too, as in Butcher et al.
    prices = torch.ones_like(ids) if meter.unit.name == "tokens" else meter.prices[ids]
    costs = prices * prompt
    to_read = costs.sum(1, keepdim=True) - costs.cumsum(1)
    return meter.running(ids, start) - to_read


def units_of(controls: Iterable[Control]) -> tuple[str, ...]:
    """The units that these controls count in, the same for all that count; none if none does."""
    counting = [control.units for control in controls if control.units]
    if len(set(counting)) > 1:
        raise ValueError(f"controls of one model must count in the same units; got {' and '.join(map(str, counting))}")
    return counting[0] if counting else ()


# ---- attach and detach


def attach(model: Model, controls: Control | Iterable[Control], tokenizer: Any) -> Model:
    """Give `model` a sense of length. Returns the same object; new length tokens are added to it and the tokenizer."""
    core = core_of(model)
    controls = [controls] if isinstance(controls, Control) else list(controls)
    if length_control(core) is not None:
        raise ValueError("this model has length controls already; detach(model) first, or attach all controls at once")
    _check(core, controls)
    vocabulary = _grow(core, controls, tokenizer)
    rows = core.get_input_embeddings().num_embeddings
    core.length_control = LengthControl(controls, tokenizer, vocabulary, rows)
    if core.length_control.units:
        _settle(core, controls)
    core._before_lengthwise = {name: _put_before(core, name, ours) for name, ours in _METHODS.items()}
    core.length_control.to(core.device)
    return model


def detach(model: Model) -> Model:
    """Take the controls off: the model is what it was before `attach`. (The tokenizer keeps its length tokens.)"""
    core = core_of(model)
    attached = length_control(core)
    if attached is None:
        raise ValueError("this model has no length controls to detach")
    for name, before in core.__dict__.pop("_before_lengthwise", {}).items():
        delattr(core, name)
        if before is not None:
            setattr(core, name, before)
    if core.get_input_embeddings().num_embeddings != attached.vocabulary:
        core.resize_token_embeddings(attached.vocabulary)
    del core.length_control
    return model


def core_of(model: Model) -> Model:
    """The transformers model inside a PEFT wrapper, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def length_control(model: Model) -> Any:  # LengthControl | None
    """What is attached to this model. Looked up anew each time: PEFT may have put a trained copy in its place."""
    return getattr(core_of(model), "length_control", None)


def controls_of(model: Model) -> list[Control]:
    """The controls attached to this model; none for a plain one."""
    attached = length_control(model)
    return list(attached.controls) if attached is not None else []


def _check(model: Model, controls: list[Control]) -> None:
    """An error if these controls cannot work together, or not on this model."""
    units_of(controls)
    for control in controls:
        if getattr(control, "placement", None) == "decoder" and not model.config.is_encoder_decoder:
            raise ValueError(
                f"placement 'decoder' needs an encoder-decoder; {type(model).__name__} has only a decoder: use 'answer'"
            )
        if control.positions == "replace" and _positions(model) is None:
            raise ValueError(
                f"positions='replace' needs a decoder with absolute positions (Marian, BART, M2M100, GPT-2); "
                f"{type(model).__name__} has none: use positions='add'"
            )


def _grow(model: Model, controls: list[Control], tokenizer: Any) -> int:
    """Gives new tokens their embedding rows, the mean of all rows, and returns how many rows there were."""
    from transformers import AddedToken

    missing = [token for control in controls for token in control.tokens if token not in tokenizer.get_vocab()]
    tokenizer.add_tokens([AddedToken(token, special=True) for token in missing], special_tokens=True)
    before = int(model.get_input_embeddings().num_embeddings)
    ids = [tokenizer.convert_tokens_to_ids(token) for control in controls for token in control.tokens]
    if ids and max(ids) >= before:
        model.resize_token_embeddings(max(ids) + 1, mean_resizing=False)
        for layer in (model.get_input_embeddings(), model.get_output_embeddings()):
            with torch.no_grad():
                layer.weight[before:] = layer.weight[:before].mean(0)  # not random: an adapter finds the same rows
        if model.config.is_encoder_decoder:
            _part(model.get_encoder())
    return before


def _part(encoder: Model) -> None:
    """Gives the encoder an embedding module of its own again, upon the same weights (and with the same hooks).

    Resizing makes one module of all that share them, under its first name. An adapter that takes that name's place
    would be read by nobody.
    """
    own = copy(encoder.get_input_embeddings())
    own._parameters = dict(own._parameters)
    encoder.set_input_embeddings(own)


def _settle(model: Model, controls: list[Control]) -> None:
    """Tells the controls how large this decoder's embeddings are."""
    decoder = model.get_decoder()
    embedding = decoder.get_input_embeddings()
    with torch.no_grad():
        ids = torch.arange(embedding.num_embeddings, device=model.device)
        rows = embedding(ids) * _rescaling(decoder)  # (vocabulary, dim) as the first layer sees them
        row_norm = rows.float().pow(2).sum(1).mean().sqrt().item()
    for control in controls:
        control.settle(row_norm, rows.shape[1])


# ---- transformers' insides


def _rescaling(decoder: Any) -> float:
    """What this decoder multiplies inputs_embeds by (Marian, Pegasus, Granite); most scale in the embedding or not."""
    return float(getattr(decoder, "embed_scale", None) or getattr(decoder, "embedding_multiplier", None) or 1.0)


def _positions(model: Model) -> nn.Module | None:
    """The module that embeds the decoder's absolute positions, if it has one."""
    decoder = model.get_decoder()
    return getattr(decoder, "embed_positions", None) or getattr(decoder, "wpe", None)


@contextmanager
def _silent_positions(model: Model) -> Iterator[None]:
    """The decoder's own positions are not heard, if a control takes their place."""
    if not any(control.positions == "replace" for control in controls_of(model)):
        yield
        return
    module = _positions(model)
    assert module is not None
    handle = module.register_forward_hook(lambda module, args, output: torch.zeros_like(output))
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _steered(model: Model, signal: Signal) -> Iterator[None]:
    """What the decoder says goes through the controls that steer before the output layer reads it."""
    steering = [control for control in controls_of(model) if control.edits_hidden]
    if not steering:
        yield
        return

    def steer(module: Any, args: Any, output: Any) -> None:
        for control in steering:
            output.last_hidden_state = control.edit_hidden(signal, output.last_hidden_state)

    handle = model.get_decoder().register_forward_hook(steer)
    try:
        yield
    finally:
        handle.remove()


def _put_before(model: Model, name: str, ours: Callable[..., Any]) -> Any:
    """Puts `ours(model, original, …)` in front of a method of this one object; returns what stood in its way before.

    A bound method, so that a deep copy of the model is bound to the copy.
    """
    original, before = getattr(type(model), name), vars(model).get(name)  # before: e.g. accelerate's own wrapper

    def method(self: Model, *args: Any, **kwargs: Any) -> Any:
        return ours(self, partial(original, self) if before is None else before, *args, **kwargs)

    update_wrapper(method, original)
    method.__signature__ = _extended(original, ours)  # type: ignore[attr-defined]  # transformers reads it to check kwargs
    setattr(model, name, MethodType(method, model))
    return before


def _extended(original: Callable[..., Any], ours: Callable[..., Any]) -> inspect.Signature:
    """The original's signature with our arguments."""
    signature = inspect.signature(original)
    own = [p for name, p in inspect.signature(ours).parameters.items() if name.startswith("decoder_")]
    parameters = list(signature.parameters.values())
    end = len(parameters) - (parameters[-1].kind is inspect.Parameter.VAR_KEYWORD)
    return signature.replace(parameters=[*parameters[:end], *own, *parameters[end:]])


# ---- the three methods


def _forward(
    model: Model,
    original: Callable[..., Any],
    *args: Any,
    decoder_length: Tensor | None = None,
    decoder_position: Tensor | None = None,
    decoder_start: Tensor | None = None,
    decoder_unit: Tensor | None = None,
    decoder_at_most: Tensor | None = None,
    decoder_signal: Signal | None = None,  # from `_prepare_inputs`: encoded already, and by what
    **kwargs: Any,
) -> Any:
    if decoder_length is not None and length_control(model).units:
        kwargs |= dict(zip(inspect.signature(original).parameters, args, strict=False))
        args = ()
        asked = Asked(decoder_length, decoder_start, decoder_unit, decoder_at_most)
        decoder_signal = _encode_call(model, kwargs, asked, decoder_position)
    if decoder_signal is None:
        return original(*args, **kwargs)
    with _silent_positions(model), _steered(model, decoder_signal):
        return original(*args, **kwargs)


def _prepare_inputs(
    model: Model,
    original: Callable[..., Any],
    input_ids: Tensor,
    *args: Any,
    decoder_length: Tensor | None = None,
    decoder_start: Tensor | None = None,
    decoder_unit: Tensor | None = None,
    decoder_at_most: Tensor | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    inputs: dict[str, Any] = original(input_ids, *args, **kwargs)
    if decoder_length is None:
        return inputs
    ids_key, embeds_key, mask_key = _keys(model)
    new_ids, mask = inputs[ids_key], kwargs.get(mask_key)
    if new_ids is None:
        raise ValueError("a prompt given as inputs_embeds cannot be counted; give input_ids")
    if mask is not None and mask.shape[-1] != input_ids.shape[1]:
        raise ValueError(
            f"length control needs all token ids so far: got {input_ids.shape[1]} of {mask.shape[-1]}; "
            "generate without prefill_chunk_size, and with the whole prompt beside a cache"
        )
    ids = input_ids.to(new_ids.device)  # `generate` may keep its books elsewhere
    asked = Asked(decoder_length, decoder_start, decoder_unit, decoder_at_most)
    signal = _signal(model, ids, asked, None, mask).last(new_ids.shape[1])
    return inputs | {ids_key: None, embeds_key: embed(model, new_ids, signal), "decoder_signal": signal}


def _generate(
    model: Model,
    original: Callable[..., Any],
    inputs: Tensor | None = None,
    *args: Any,
    decoder_length: Any = None,
    decoder_start: Tensor | None = None,
    **kwargs: Any,
) -> Any:
    if decoder_length is None or not length_control(model).units:
        kwargs = {name: value for name, value in kwargs.items() if name not in ("decoder_unit", "decoder_at_most")}
        return original(inputs, *args, **kwargs)
    prompt = inputs if inputs is not None else kwargs.get("input_ids")
    lengths = torch.as_tensor(decoder_length, dtype=torch.long, device=model.device)  # (batch,)
    if lengths.dim() == 0 and prompt is not None:
        lengths = lengths.expand(len(prompt))
    for row, length in enumerate(lengths.tolist()):
        if length < 1:
            raise ValueError(f"decoder_length must be at least 1; got {length} for row {row}")
    if prompt is not None and len(lengths) != len(prompt):
        raise ValueError(f"decoder_length needs one length a row: got {len(lengths)} for {len(prompt)} rows")
    for name, kind in (("decoder_unit", torch.long), ("decoder_at_most", torch.bool)):
        if kwargs.get(name) is not None:
            kwargs[name] = _one_a_row(name, torch.as_tensor(kwargs[name], dtype=kind, device=model.device), lengths)
    units = length_control(model).units
    if (numbers := kwargs.get("decoder_unit")) is not None and not all(0 <= n < len(units) for n in numbers.tolist()):
        raise ValueError(f"decoder_unit numbers the units {', '.join(units)} from 0; got {numbers.tolist()}")
    if decoder_start is None and not model.config.is_encoder_decoder:
        decoder_start = torch.full_like(lengths, prompt.shape[1] if prompt is not None else 1)
    if decoder_start is not None:
        kwargs["decoder_start"] = decoder_start
    return original(inputs, *args, decoder_length=lengths, **kwargs)


def _one_a_row(name: str, told: Tensor, lengths: Tensor) -> Tensor:
    if told.dim() == 0:
        return told.expand(len(lengths))
    if told.shape != lengths.shape:
        raise ValueError(f"{name} needs one value a row: got {len(told)} for {len(lengths)} rows")
    return told


_METHODS: dict[str, Callable[..., Any]] = {
    "forward": _forward,
    "prepare_inputs_for_generation": _prepare_inputs,
    "generate": _generate,
}


# ---- from ids to embeddings with length


def _keys(model: Model) -> tuple[str, str, str]:
    """What this model calls the ids, embeddings and mask of its decoder."""
    if model.config.is_encoder_decoder:
        return "decoder_input_ids", "decoder_inputs_embeds", "decoder_attention_mask"
    return "input_ids", "inputs_embeds", "attention_mask"


class Asked(NamedTuple):
    """What a call is told, one number a row."""

    length: Tensor
    start: Tensor | None
    unit: Tensor | None
    at_most: Tensor | None


def _encode_call(model: Model, kwargs: dict[str, Any], asked: Asked, position: Tensor | None) -> Signal:
    """In the arguments of one forward call, embeddings with length take the place of the decoder's token ids."""
    ids_key, embeds_key, mask_key = _keys(model)
    ids = kwargs.pop(ids_key, None)
    if ids is None and model.config.is_encoder_decoder and kwargs.get("labels") is not None:
        ids = model.prepare_decoder_input_ids_from_labels(labels=kwargs["labels"])
    if ids is None:
        raise ValueError(f"decoder_length needs token ids to count; give {ids_key}")
    cache = kwargs.get("past_key_values")
    read = int(cache.get_seq_length()) if cache is not None else 0
    if read and position is None:
        raise ValueError(
            f"{read} tokens are in the cache and cannot be counted; give decoder_position, or use generate"
        )
    if asked.start is None and model.config.is_encoder_decoder:
        asked = asked._replace(start=torch.full_like(asked.length, 1 - read))
    signal = _signal(model, ids, asked, position, kwargs.get(mask_key))
    kwargs[embeds_key] = embed(model, ids, signal)
    return signal


def _signal(model: Model, ids: Tensor, asked: Asked, position: Tensor | None, mask: Tensor | None) -> Signal:
    """Where each step of `ids` (batch, time) stands."""
    length, start, unit, at_most = (None if told is None else told.to(ids.device) for told in asked)
    assert length is not None
    if length.shape != ids.shape[:1]:
        raise ValueError(f"decoder_length needs one length a row, shape ({len(ids)},); got {tuple(length.shape)}")
    if start is None:
        if not model.config.is_encoder_decoder:
            raise ValueError("decoder_start is missing: the column of the first answer token, one number a row")
        start = torch.ones_like(length)
    column = _columns(ids, start)
    if mask is not None and mask.dim() == 2:
        live = mask[:, -ids.shape[1] :].to(ids.device).bool()
    elif model.config.is_encoder_decoder:
        live = (ids != model.config.pad_token_id) | (column < 0)  # Marian and T5 start with the padding token
    else:
        live = torch.ones_like(ids, dtype=torch.bool)
    if position is None:
        position = length_control(model).count(ids, start, live, unit)
    return Signal(position, length, column, live, unit, at_most)


def _columns(ids: Tensor, start: Tensor) -> Tensor:
    """(batch, time), 0 at the first token of the answer."""
    return torch.arange(ids.shape[1], device=ids.device) - start.unsqueeze(1)


def embed(model: Model, ids: Tensor, signal: Signal) -> Tensor:
    """The decoder's embeddings of `ids`, with what the controls add: (batch, time, dim)."""
    decoder = model.get_decoder()
    embeds: Tensor = decoder.get_input_embeddings()(ids)
    rescaling = _rescaling(decoder)
    inputs = embeds * rescaling if rescaling != 1 else embeds
    for control in controls_of(model):
        if (vectors := control.encode(signal, inputs)) is not None:
            embeds = embeds + (vectors / rescaling).to(embeds.dtype)
    return embeds
