"""Attach controls to a model of transformers, and detach them.

There is no subclass, and no hook outlives a call: three methods of the one model object are wrapped; the wrappers are
in `length_inputs.py`.
  forward                        takes `decoder_length`: replaces token ids by embeddings + length vectors, and lets
                                 controls edit the decoder's last hidden states
  prepare_inputs_for_generation  does the same for the tokens that are not in the KV cache. It receives all ids, already
                                 reordered by beam search, so units are counted from the ids and no state is kept
  generate                       computes where the prompt ends
A control that changes attention also replaces the model's attention function (`attention.py`), and ALiBi its absolute
positions. The numbers of sentences, for group attention, are arguments that transformers passes on to its attention
layers. The initial cell of an LSTM decoder is set by a hook during `forward`.
Without `decoder_length` the model behaves as the plain model.
"""

import inspect
from collections.abc import Callable, Iterable
from copy import copy
from functools import partial, update_wrapper
from types import MethodType
from typing import Any

import torch
from torch import Tensor

from . import Control
from .attached import LengthControl, Model, core_of, length_control, positions_of, rescaling_of, stacks_of, units_of
from .attention import replace_attention
from .length_inputs import METHODS, PER_ROW


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
    core._before_lengthwise = {name: _wrap(core, name, ours) for name, ours in METHODS.items()}
    if any(control.changes_attention for control in controls):
        replace_attention(core)
    if any(control.positions == "none" for control in controls):
        for stack in stacks_of(core):
            positions_of(stack).forward = MethodType(_no_positions, positions_of(stack))
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
        for stack in stacks_of(core):
            del positions_of(stack).forward
    if (attention := core.__dict__.pop("_attention_before", None)) is not None:
        core.set_attn_implementation(attention)
        for module in core.modules():
            module.__dict__.pop("_lengthwise_model", None)
            module.__dict__.pop("_lengthwise_above", None)
    if core.get_input_embeddings().num_embeddings != attached.vocabulary:
        core.resize_token_embeddings(attached.vocabulary)
    del core.length_control
    return model


def _check(model: Model, controls: list[Control]) -> None:
    """Raise an error if these controls cannot be combined, or cannot be attached to this model."""
    units_of(controls)
    name = type(model).__name__
    if len([control for control in controls if control.groups_sentences]) > 1:
        raise ValueError("a model takes one control with group attention; got several")
    for control in controls:
        if control.placement == "decoder" and not model.config.is_encoder_decoder:
            raise ValueError(f"placement 'decoder' needs an encoder-decoder; {name} has only a decoder: use 'answer'")
        if control.positions == "replace" and positions_of(model.get_decoder()) is None:
            raise ValueError(
                "positions='replace' needs a decoder with absolute positions (Marian, BART, M2M100, GPT-2); "
                f"{name} has none: use positions='add'"
            )
        if control.positions == "none" and None in map(positions_of, stacks_of(model)):
            raise ValueError(
                f"control {control.name!r} takes the place of absolute positions, which {name} does not have; "
                "use it with Marian, BART, M2M100 or GPT-2"
            )
        if control.sets_cell and not hasattr(model.get_decoder(), "lstm"):
            found = f"{name} has none; train a fresh model with model.fresh.lstm: 2"
            raise ValueError(f"control {control.name!r} needs an LSTM decoder; {found}")
        if control.groups_sentences:
            depths = [len(getattr(stack, "layers", ())) for stack in stacks_of(model)]
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
        rows = embedding(ids) * rescaling_of(decoder)  # (vocabulary, dim) as the first layer receives them
        row_norm = rows.float().pow(2).sum(1).mean().sqrt().item()
    for control in controls:
        control.on_attach(row_norm, rows.shape[1])


def _no_positions(module: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Return zeros for any number of positions: (dim,).

    They depend on the weights, which thereby have gradients: several processes expect one of each weight.
    """
    table: Tensor = module.weight if hasattr(module, "weight") else module.weights  # of M2M100
    return table[0] * 0


def _wrap(model: Model, name: str, ours: Callable[..., Any]) -> Any:
    """Replace a method of this one object by `ours(model, original, …)`; return what was set on the object before.

    The new method is bound, so that a deep copy of the model calls its own.
    """
    original, before = getattr(type(model), name), vars(model).get(name)  # before: e.g. accelerate's own wrapper
    signature = inspect.signature(original)
    parameters = list(signature.parameters.values())
    end = len(parameters) - (parameters[-1].kind is inspect.Parameter.VAR_KEYWORD)
    names = [f"decoder_{name}" for name in (*PER_ROW, "position", "signal")] + ["source_sentences", "target_sentences"]
    own = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names]

    def method(self: Model, *args: Any, **kwargs: Any) -> Any:
        return ours(self, partial(original, self) if before is None else before, *args, **kwargs)

    update_wrapper(method, original)
    extended = signature.replace(parameters=[*parameters[:end], *own, *parameters[end:]])
    method.__signature__ = extended  # type: ignore[attr-defined]  # transformers reads it to check arguments
    setattr(model, name, MethodType(method, model))
    return before
