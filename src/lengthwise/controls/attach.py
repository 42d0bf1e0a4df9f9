"""Attach controls to a model of transformers, and detach them.

Outside `engines/`, only this file depends on the internals of transformers. There is no subclass, and no hook outlives
a call: three methods of the one model object are wrapped.
  forward                        takes `decoder_length`: replaces token ids by embeddings + length vectors, and lets
                                 controls edit the decoder's last hidden states
  prepare_inputs_for_generation  does the same for the tokens that are not in the KV cache. It receives all ids, already
                                 reordered by beam search, so units are counted from the ids and no state is kept
  generate                       computes where the prompt ends
A control that changes attention also replaces the model's attention function, and ALiBi its absolute positions. The
numbers of sentences, for group attention, are arguments that transformers passes on to its attention layers. The
initial cell of an LSTM decoder is set by a hook during `forward`.
Without `decoder_length` the model behaves as the plain model.

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from functools import partial, update_wrapper
from threading import get_ident
from types import MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from ..length.meter import Meter
from . import Control, Signal
from .masks import biased, explicit_mask, limited, same_sentence, visible_keys

Model = Any  # a PreTrainedModel, or one inside a PeftModel
CONTROLLED_ATTENTION = "lengthwise_controls"  # the name of the attention function, for transformers
_PER_ROW = ("length", "start", "unit", "at_most")  # arguments with one value per row


class LengthControl(nn.Module):
    """What `attach` adds to a model as `model.length_control`: the controls and the meters that count for them."""

    def __init__(self, controls: Iterable[Control], tokenizer: Any, vocabulary: int, rows: int) -> None:
        super().__init__()
        controls = list(controls)
        self.controls = nn.ModuleList(controls)
        self.units = units_of(controls)  # empty: no control counts, and decoder_length has no effect
        self.vocabulary = vocabulary  # embedding rows before `attach` added length tokens
        self._tokenizer, self._rows = tokenizer, rows  # embedding rows now
        self._meters: dict[str, Meter] = {}

    def meter(self, unit: str) -> Meter:
        """Return the meter of one unit, made on first use: a caller may count the units itself."""
        if unit not in self._meters:
            self._meters[unit] = Meter(self._tokenizer, unit, self._rows)
        return self._meters[unit]

    def count(self, ids: Tensor, start: Tensor, live: Tensor, unit: Tensor | None = None) -> Tensor:
        """Return the units written after each token: (batch, time); in the prompt, minus the prompt units to come."""
        if len(self.units) == 1 or unit is None:
            return _counted(self.meter(self.units[0]), ids, start, live)
        counts = torch.empty_like(ids)
        for number in sorted(set(unit.tolist())):
            rows = unit == number
            counts[rows] = _counted(self.meter(self.units[number]), ids[rows], start[rows], live[rows])
        return counts


def _counted(meter: Meter, ids: Tensor, start: Tensor, live: Tensor) -> Tensor:
    prompt = live & (_columns(ids, start) < 0)
    # In tokens every prompt token counts, also special ones, as in Butcher et al.
    numbers = ids.cpu().numpy()
    each = np.ones_like(numbers) if meter.unit.name == "tokens" else meter.cost[numbers]
    costs = torch.from_numpy(each).to(ids.device) * prompt
    to_read = costs.sum(1, keepdim=True) - costs.cumsum(1)
    return torch.from_numpy(meter.running(numbers, start.cpu().numpy())).to(ids.device) - to_read


def units_of(controls: Iterable[Control]) -> tuple[str, ...]:
    """Return the units that these controls count in, the same for all that count; empty if none counts."""
    counting = [control.units for control in controls if control.units]
    if len(set(counting)) > 1:
        raise ValueError(f"controls of one model must count in the same units; got {' and '.join(map(str, counting))}")
    return counting[0] if counting else ()


# ---- attach and detach


def attach(model: Model, controls: Control | Iterable[Control], tokenizer: Any) -> Model:
    """Attach `controls` and return the same `model`. Length tokens are added to the model and to the tokenizer."""
    if model is None:  # `Writer.model` of an engine without a module of torch
        raise TypeError("attach takes a model of transformers; got None. load(name, engine='transformers') has one")
    core = core_of(model)
    controls = [controls] if isinstance(controls, Control) else list(controls)
    if length_control(core) is not None:
        raise ValueError("this model has length controls already; detach(model) first, or attach all controls at once")
    _check(core, controls)
    vocabulary = _add_tokens(core, controls, tokenizer)
    rows = core.get_input_embeddings().num_embeddings
    core.length_control = LengthControl(controls, tokenizer, vocabulary, rows)
    if core.length_control.units or any(control.groups_sentences for control in controls):
        _initialise(core, controls)
    core._before_lengthwise = {name: _wrap(core, name, ours) for name, ours in _METHODS.items()}
    if any(control.changes_attention for control in controls):
        _replace_attention(core)
    if any(control.positions == "none" for control in controls):
        for stack in _stacks(core):
            _positions(stack).forward = MethodType(_no_positions, _positions(stack))
    core.length_control.to(core.device)
    return model


def detach(model: Model) -> Model:
    """Remove the controls and return the model as it was before `attach`. The tokenizer keeps its length tokens."""
    core = core_of(model)
    attached = length_control(core)
    if attached is None:
        raise ValueError("this model has no length controls to detach")
    for name, before in core.__dict__.pop("_before_lengthwise", {}).items():
        delattr(core, name)
        if before is not None:
            setattr(core, name, before)
    if any(control.positions == "none" for control in attached.controls):
        for stack in _stacks(core):
            del _positions(stack).forward
    if (attention := core.__dict__.pop("_attention_before", None)) is not None:
        core.set_attn_implementation(attention)
        for module in core.modules():
            module.__dict__.pop("_lengthwise_model", None)
            module.__dict__.pop("_lengthwise_above", None)
    if core.get_input_embeddings().num_embeddings != attached.vocabulary:
        core.resize_token_embeddings(attached.vocabulary)
    del core.length_control
    return model


def core_of(model: Model) -> Model:
    """Return the transformers model inside a PEFT wrapper, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def length_control(model: Model) -> Any:  # LengthControl | None
    """Return the `LengthControl` of this model, or None. Do not store it: PEFT may replace it by a trained copy."""
    return getattr(core_of(model), "length_control", None)


def controls_of(model: Model) -> list[Control]:
    """Return the controls attached to this model; none for a plain one."""
    attached = length_control(model)
    return list(attached.controls) if attached is not None else []


def _check(model: Model, controls: list[Control]) -> None:
    """Raise an error if these controls cannot be combined, or cannot be attached to this model."""
    units_of(controls)
    name = type(model).__name__
    if len([control for control in controls if control.groups_sentences]) > 1:
        raise ValueError("a model takes one control with group attention; got several")
    for control in controls:
        if getattr(control, "placement", None) == "decoder" and not model.config.is_encoder_decoder:
            raise ValueError(f"placement 'decoder' needs an encoder-decoder; {name} has only a decoder: use 'answer'")
        if control.positions == "replace" and _positions(model.get_decoder()) is None:
            raise ValueError(
                "positions='replace' needs a decoder with absolute positions (Marian, BART, M2M100, GPT-2); "
                f"{name} has none: use positions='add'"
            )
        if control.positions == "none" and None in map(_positions, _stacks(model)):
            raise ValueError(
                f"control {control.name!r} takes the place of absolute positions, which {name} does not have; "
                "use it with Marian, BART, M2M100 or GPT-2"
            )
        if control.sets_cell and not hasattr(model.get_decoder(), "lstm"):
            found = f"{name} has none; train a fresh model with model.fresh.lstm: 2"
            raise ValueError(f"control {control.name!r} needs an LSTM decoder; {found}")
        if control.groups_sentences:
            depths = [len(getattr(stack, "layers", ())) for stack in _stacks(model)]
            if len(depths) < 2 or not all(depths):
                known = "an encoder-decoder such as Marian, BART or M2M100"
                raise ValueError(f"control {control.name!r} needs {known}; {name} is none")
            if control.global_layers > min(depths):
                found = f"global_layers = {control.global_layers} is more than the {min(depths)} layers"
                raise ValueError(f"{found} of encoder or decoder of {name}; lower it")


def _add_tokens(model: Model, controls: list[Control], tokenizer: Any) -> int:
    """Add the controls' tokens, with the mean of all embedding rows, and return the number of rows before."""
    from transformers import AddedToken

    missing = [token for control in controls for token in control.tokens if token not in tokenizer.get_vocab()]
    tokenizer.add_tokens([AddedToken(token, special=True) for token in missing], special_tokens=True)
    before = int(model.get_input_embeddings().num_embeddings)
    for control in controls:
        control.token_ids = tuple(map(tokenizer.convert_tokens_to_ids, control.tokens))
    ids = [id_ for control in controls for id_ in control.token_ids]
    if ids and max(ids) >= before:
        model.resize_token_embeddings(max(ids) + 1, mean_resizing=False)
        for layer in (model.get_input_embeddings(), model.get_output_embeddings()):
            with torch.no_grad():
                layer.weight[before:] = layer.weight[:before].mean(0)  # not random: an adapter needs the same rows
        if model.config.is_encoder_decoder:
            _unshare_embedding(model.get_encoder())
    return before


def _unshare_embedding(encoder: Model) -> None:
    """Give the encoder an embedding module of its own, with the same weights and hooks.

    Resizing makes encoder and decoder share one module under two names. PEFT would wrap only the first name, so the
    encoder would bypass the adapter.
    """
    own = copy(encoder.get_input_embeddings())
    own._parameters = dict(own._parameters)
    encoder.set_input_embeddings(own)


def _initialise(model: Model, controls: list[Control]) -> None:
    """Pass the row norm and the width of this decoder's embeddings to the controls."""
    decoder = model.get_decoder()
    embedding = decoder.get_input_embeddings()
    with torch.no_grad():
        ids = torch.arange(embedding.num_embeddings, device=model.device)
        rows = embedding(ids) * _rescaling(decoder)  # (vocabulary, dim) as the first layer receives them
        row_norm = rows.float().pow(2).sum(1).mean().sqrt().item()
    for control in controls:
        control.on_attach(row_norm, rows.shape[1])


# ---- internals of transformers


def _rescaling(decoder: Any) -> float:
    """Return the factor on inputs_embeds inside this decoder (Marian, Pegasus, Granite); most have none."""
    return float(getattr(decoder, "embed_scale", None) or getattr(decoder, "embedding_multiplier", None) or 1.0)


def _stacks(model: Model) -> list[Any]:
    """Return the decoder, and the encoder if there is one."""
    return [model.get_decoder(), *([model.get_encoder()] if model.config.is_encoder_decoder else [])]


def _positions(stack: Any) -> Any:
    """Return the module that embeds the absolute positions of this encoder or decoder, or None."""
    return getattr(stack, "embed_positions", None) or getattr(stack, "wpe", None)


def _no_positions(module: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Return zeros for any number of positions: (dim,).

    They depend on the weights, which thereby have gradients: several processes expect one of each weight.
    """
    table: Tensor = module.weight if hasattr(module, "weight") else module.weights  # of M2M100
    return table[0] * 0


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
        handles.append(_positions(model.get_decoder()).register_forward_hook(without_positions))
    if any(control.edits_hidden for control in controls):
        handles.append(model.get_decoder().register_forward_hook(edit))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _wrap(model: Model, name: str, ours: Callable[..., Any]) -> Any:
    """Replace a method of this one object by `ours(model, original, …)`; return what was set on the object before.

    The new method is bound, so that a deep copy of the model calls its own.
    """
    original, before = getattr(type(model), name), vars(model).get(name)  # before: e.g. accelerate's own wrapper
    signature = inspect.signature(original)
    parameters = list(signature.parameters.values())
    end = len(parameters) - (parameters[-1].kind is inspect.Parameter.VAR_KEYWORD)
    names = [f"decoder_{name}" for name in (*_PER_ROW, "position", "signal")] + ["source_sentences", "target_sentences"]
    own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names]

    def method(self: Model, *args: Any, **kwargs: Any) -> Any:
        return ours(self, partial(original, self) if before is None else before, *args, **kwargs)

    update_wrapper(method, original)
    extended = signature.replace(parameters=[*parameters[:end], *own, *parameters[end:]])
    method.__signature__ = extended  # type: ignore[attr-defined]  # transformers reads it to check arguments
    setattr(model, name, MethodType(method, model))
    return before


# ---- attention


def _replace_attention(model: Model) -> None:
    """Replace the attention function of this model by `controlled_attention`. PyTorch's fused kernels still run."""
    before = model.config._attn_implementation
    model.set_attn_implementation(CONTROLLED_ATTENTION)
    if model.config._attn_implementation != CONTROLLED_ATTENTION:
        raise ValueError(f"{type(model).__name__} has an attention of its own, which controls cannot change")
    model._attention_before = before
    for module in model.modules():
        if hasattr(module, "is_causal"):
            module.__dict__["_lengthwise_model"] = model  # not a submodule; the controls are looked up at each call
    if (control := _grouping(model)) is not None:
        for stack in _stacks(model):
            for above, layer in enumerate(reversed(stack.layers)):
                for module in layer.modules():
                    if hasattr(module, "is_causal"):  # lower layers have the same number: they compile to one program
                        module.__dict__["_lengthwise_above"] = min(above, control.global_layers)


def controlled_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    source_sentences: Tensor | None = None,
    target_sentences: Tensor | None = None,
    **more: Any,
) -> Any:
    """Scale the `query` (batch, heads, time, size), add the biases of the controls, and call the fused kernel.

    With group attention the kernel is called for each branch, with the mask of that branch.
    """
    kind = "decoder" if module.is_causal else "cross" if module.is_decoder else "encoder"
    controls = controls_of(module._lengthwise_model)

    def attend(mask: Tensor | None) -> Tensor:
        seen, scaled = visible_keys(query, key, mask, kind == "decoder"), query
        for control in controls:
            if (scale := control.query_scale(kind, seen)) is not None:
                scaled = scaled * scale.unsqueeze(-1).to(query.dtype)
            if (bias := control.attention_bias(kind, query, key)) is not None:
                mask = biased(bias.to(query.dtype), explicit_mask(mask, kind, query, key))
        output: Tensor = sdpa_attention_forward(module, scaled, key, value, mask, **more)[0]
        return output

    grouping = next((control for control in controls if control.groups_sentences), None)
    if grouping is None:
        return attend(attention_mask), None
    same = same_sentence(kind, query, key, source_sentences, target_sentences)
    inside = limited(explicit_mask(attention_mask, kind, query, key), same)
    above = module._lengthwise_above
    return grouping.attend(kind, above, lambda: attend(inside), lambda: attend(attention_mask)), None


AttentionInterface.register(CONTROLLED_ATTENTION, controlled_attention)
AttentionMaskInterface.register(CONTROLLED_ATTENTION, sdpa_mask)  # else transformers passes no mask


# ---- the three methods


def _forward(model: Model, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    lengths, position = _popped(kwargs), kwargs.pop("decoder_position", None)
    signal = kwargs.pop("decoder_signal", None)  # from `_prepare_inputs`, which has added the vectors already
    counts, grouping = lengths["length"] is not None and length_control(model).units, _grouping(model)
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


def _grouping(model: Model) -> Any:  # Control | None
    """Return the control that groups sentences, or None."""
    return next((control for control in controls_of(model) if control.groups_sentences), None)


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
    if (grouping := _grouping(model)) is not None:
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


def step_inputs(model: Model, ids: Tensor, mask: Tensor, given: dict[str, Tensor]) -> dict[str, Any]:
    """Return the arguments of a step that reads the last of these `ids` (batch, time).

    `mask`: of a decoder-only model. `given`: the arguments with one value per row, such as `decoder_length`. Without a
    length, the argument is the id.
    """
    if (lengths := _popped(dict(given)))["length"] is None:
        return {_keys(model)[0]: ids[:, -1:]}
    return _controlled(model, ids, 1, lengths, None if model.config.is_encoder_decoder else mask)


def _controlled(model: Model, ids: Tensor, width: int, lengths: dict[str, Any], mask: Tensor | None) -> dict[str, Any]:
    """Return the embeddings of the last `width` ids with the vectors of the controls, and the signal at these steps."""
    signal = _signal(model, ids, lengths, mask).last(width)
    return {_keys(model)[1]: embed(model, ids[:, -width:], signal), "decoder_signal": signal}


def _popped(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Remove the arguments with one value per row from `kwargs` and return them by their names in `_PER_ROW`."""
    return {name: kwargs.pop(f"decoder_{name}", None) for name in _PER_ROW}


def _generate(
    model: Model, original: Callable[..., Any], inputs: Tensor | None = None, *args: Any, **kwargs: Any
) -> Any:
    given, units = _popped(kwargs), length_control(model).units
    prompt = inputs if inputs is not None else kwargs.get("input_ids")
    if (grouping := _grouping(model)) is not None and prompt is not None:
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


_METHODS = {"forward": _forward, "prepare_inputs_for_generation": _prepare_inputs, "generate": _generate}


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
    """Return each column's distance from the first answer token: (batch, time)."""
    return torch.arange(ids.shape[1], device=ids.device) - start.unsqueeze(1)


def embed(model: Model, ids: Tensor, signal: Signal) -> Tensor:
    """Return the decoder's embeddings of `ids` plus the vectors of the controls: (batch, time, dim)."""
    decoder = model.get_decoder()
    embeds: Tensor = decoder.get_input_embeddings()(ids)
    rescaling = _rescaling(decoder)
    inputs = embeds * rescaling if rescaling != 1 else embeds
    for control in controls_of(model):
        if (vectors := control.encode(signal, inputs)) is not None:
            embeds = embeds + (vectors / rescaling).to(embeds.dtype)
    return embeds
