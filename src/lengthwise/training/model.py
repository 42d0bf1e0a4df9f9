"""The model of a recipe: a base or a fresh one, with its controls and its adapter.

This file knows how models are put together. Their batches are made by the `ExampleMaker` and `Layout` beside them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..controls import Control
from ..controls.attach import attach, controls_of, core_of, length_control
from ..length.meter import Meter
from ..models.checkpoint import load_model, load_tokenizer
from ..models.registry import resolve
from .batches import Layout
from .data_stream import with_thresholds
from .examples import ExampleMaker
from .fresh_model import fresh_model, fresh_tokenizer
from .layers import trainable
from .lora_merging import merge_in_forward
from .recipe import Recipe, RecipeError


@dataclass
class Built:
    """A model that is ready to be trained, with the maker and the layout of its batches."""

    model: Any
    tokenizer: Any
    maker: ExampleMaker
    layout: Layout


def build(recipe: Recipe, tokenizer_folder: Path | None = None) -> Built:
    """Return the recipe's model. A fresh one's tokenizer is read from `tokenizer_folder`; default: it is trained."""
    recipe = with_thresholds(recipe)
    torch.manual_seed(recipe.seed)
    if recipe.model.fresh:
        tokenizer = load_tokenizer(tokenizer_folder) if tokenizer_folder else fresh_tokenizer(recipe)
        model = fresh_model(recipe.model.fresh, tokenizer)
    else:
        model, tokenizer = _base(recipe)
    controls = recipe.build_controls()
    if controls:
        attach(model, controls, tokenizer)
    if recipe.train.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if recipe.model.lora:
        model = _with_lora(model, recipe, tokenizer)
    if recipe.model.frozen:
        _freeze(model)
    return Built(model, tokenizer, *_maker_and_layout(recipe, model, tokenizer))


def _maker_and_layout(recipe: Recipe, model: Any, tokenizer: Any) -> tuple[ExampleMaker, Layout]:
    config, controls = core_of(model).config, controls_of(model)
    attached = length_control(model)
    counting = attached is not None and bool(attached.units)
    _check_units(recipe, attached.units if counting else (), controls)
    maker = ExampleMaker(
        tokenizer=tokenizer,
        meters=[Meter(tokenizer, unit) for unit in recipe.unit],
        controls=recipe.build_controls() or controls,
        encoder_decoder=config.is_encoder_decoder,
        end=_end(model, tokenizer),
        characters=getattr(config, "spells_letters", False),
        cutting=recipe.lengths,
        shift=recipe.shift,
        max_tokens=recipe.data.max_tokens,
    )
    return maker, _layout(recipe, maker, config, controls, counting)


def _check_units(recipe: Recipe, units: tuple[str, ...], controls: list[Control]) -> None:
    """Raise an error if the recipe does not fit the controls, which may be those of the base model."""
    if units and list(units) != recipe.unit:
        own, ours = ", ".join(units), ", ".join(recipe.unit)
        raise RecipeError(f"the controls of the model count {own}, the recipe {ours}; write unit: [{own}]")
    if recipe.shift and not any(getattr(control, "kind", "") == "difference" for control in controls):
        raise RecipeError("shift moves the count of a 'difference' encoding, and this model has none")


def _layout(recipe: Recipe, maker: ExampleMaker, config: Any, controls: list[Control], counting: bool) -> Layout:
    separator = recipe.lengths.separator.strip()
    joined = recipe.lengths.kind not in ("sentences", "prefixes")
    if separator and joined and separator not in maker.tokenizer.get_vocab():
        raise RecipeError(
            f"lengths.separator {separator!r} is no token of this model (fresh ones have '<sep>'); "
            "use ' ', or a token that it has"
        )
    if recipe.batch.packing and any(control.edits_hidden for control in controls):
        raise RecipeError("batch.packing puts several lengths in a row; a countdown head needs one; leave packing out")
    if recipe.batch.packing and maker.encoder_decoder:
        raise RecipeError("batch.packing is for decoder-only models; an encoder-decoder reads one example a row")
    pad = maker.tokenizer.pad_token_id
    return Layout(
        tokens=recipe.batch.tokens,
        multiple=recipe.batch.multiple,
        encoder_decoder=maker.encoder_decoder,
        pad=maker.end if pad is None else pad,
        end=maker.end,
        first=config.decoder_start_token_id if maker.encoder_decoder else None,
        signal=counting,
        mask=any(getattr(control, "scale", None) == "frobenius" for control in controls),
        packing=recipe.data.max_tokens if recipe.batch.packing else 0,
        **({} if recipe.loss is None else recipe.loss.model_dump()),
    )


def _end(model: Any, tokenizer: Any) -> int:
    """Return the token that ends a text, as `Writer` does."""
    known = core_of(model).generation_config.eos_token_id
    ends = known if isinstance(known, list) else [known]
    own = tokenizer.eos_token_id
    return own if known is None or own in ends else ends[0]


# ---- base and adapter


def _base(recipe: Recipe) -> tuple[Any, Any]:
    name = recipe.model.base
    assert name is not None
    frozen_in_bf16 = (recipe.model.lora or recipe.model.frozen) and recipe.train.precision == "bf16"
    model, tokenizer = load_model(resolve(name), dtype=torch.bfloat16 if frozen_in_bf16 else torch.float32)
    if core_of(model) is not model:
        raise RecipeError(f"model.base {name!r} is an adapter; name its base model, or merge the two first")
    if controls_of(model) and recipe.controls:
        raise RecipeError(f"model.base {name!r} has length controls already; to train them on, say controls: []")
    return model, tokenizer


def _with_lora(model: Any, recipe: Recipe, tokenizer: Any) -> Any:
    from peft import LoraConfig, get_peft_model

    lora = recipe.model.lora
    assert lora is not None
    tokens = [tokenizer.convert_tokens_to_ids(t) for control in controls_of(model) for t in control.tokens]
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.targets,
        trainable_token_indices={_source_embedding(model): tokens} if tokens else None,
    )
    adapted = get_peft_model(model, config)
    for control in controls_of(adapted):
        control.requires_grad_()  # PEFT freezes all other parameters
    if not lora.dropout:
        merge_in_forward(adapted)
    return adapted


def _source_embedding(model: Any) -> str:
    """Return the name of the module that embeds the source: an encoder may have its own, with the shared weights."""
    core = core_of(model)
    embedding = (core.get_encoder() if core.config.is_encoder_decoder else core).get_input_embeddings()
    return next(name for name, module in core.named_modules() if module is embedding)


def _freeze(model: Any) -> None:
    if any(control.tokens for control in controls_of(model)):
        raise RecipeError("model.frozen cannot teach length tokens, whose vectors are the model's own; use lora")
    model.requires_grad_(False)
    for control in controls_of(model):
        control.requires_grad_()
    if not trainable(model):
        raise RecipeError("model.frozen leaves nothing to learn: no control of this recipe has weights of its own")
