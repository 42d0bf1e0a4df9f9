"""Build the model of a recipe (base or fresh, controls, LoRA), and the settings of its examples and batches."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from ..controls import Control, SentenceSeparator
from ..controls.attach import attach
from ..controls.attached import controls_of, core_of, length_control
from ..length.meter import Meter
from ..models.checkpoint import load_model, load_tokenizer
from ..models.registry import resolve
from .batches import Layout
from .data_stream import with_thresholds
from .examples import ExampleMaker
from .fresh_model import fresh_model, fresh_tokenizer
from .layers import merge_in_forward, trainable
from .recipe import Lora, Recipe, RecipeError
from .smaller_model import save_smaller_tokenizer, smaller_model


@dataclass
class Built:
    """A model that is ready to be trained, with the maker of its examples and the layout of its batches."""

    model: Any
    tokenizer: Any
    maker: ExampleMaker
    layout: Layout


def build(recipe: Recipe, tokenizer_folder: Path | None = None) -> Built:
    """Return the recipe's model. `tokenizer_folder`: of a fresh or smaller one; a fresh one's default: trained here."""
    recipe = with_thresholds(recipe)
    torch.manual_seed(recipe.seed)
    if recipe.model.fresh:
        tokenizer = load_tokenizer(tokenizer_folder) if tokenizer_folder else fresh_tokenizer(recipe)
        model = fresh_model(recipe.model.fresh, tokenizer)
    else:
        model, tokenizer = _base(recipe)
    if recipe.model.smaller:
        new = _smaller_tokenizer(recipe, tokenizer_folder)
        model, tokenizer = smaller_model(model, tokenizer, new, recipe.model.smaller.decoder_layers), new
    if controls := recipe.build_controls():
        attach(model, controls, tokenizer)
    if recipe.lengths.joins_sentences:
        _separate_sentences(model, tokenizer, SentenceSeparator(recipe.lengths.separator, recipe.lengths.maximum))
    if recipe.train.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if recipe.model.lora:
        model = _with_lora(model, recipe.model.lora)
    if recipe.model.frozen:
        _freeze(model)
    config, attached = core_of(model).config, controls_of(model)
    recipe.check_controls(attached)
    maker = ExampleMaker(
        tokenizer=tokenizer,
        meters=[Meter(tokenizer, unit) for unit in recipe.unit],
        controls=recipe.build_controls() or attached,  # new ones: workers receive them, without the model
        encoder_decoder=config.is_encoder_decoder,
        end=_end(model, tokenizer),
        characters=getattr(config, "spells_letters", False),
        cutting=recipe.lengths,
        shift=recipe.shift,
        max_tokens=recipe.data.max_tokens,
        positions=None if any(control.positions == "none" for control in attached) else _positions(config),
    )
    return Built(model, tokenizer, maker, _layout(recipe, maker, config, attached))


def _positions(config: Any) -> int | None:
    return getattr(config, "max_position_embeddings", None)  # T5 has none


def _layout(recipe: Recipe, maker: ExampleMaker, config: Any, controls: list[Control]) -> Layout:
    for control in controls:
        if control.groups_sentences and recipe.lengths.several_sentences:
            _check_grouping(control, recipe.lengths.separator, maker.tokenizer)
    if recipe.batch.packing and any(control.edits_hidden for control in controls):
        raise RecipeError("batch.packing puts several lengths in a row; a countdown head takes only one; leave it out")
    if recipe.batch.packing and maker.encoder_decoder:
        raise RecipeError("batch.packing is for decoder-only models; an encoder-decoder reads one example per row")
    pad = maker.tokenizer.pad_token_id
    return Layout(
        tokens=recipe.batch.tokens,
        multiple=recipe.batch.multiple,
        encoder_decoder=maker.encoder_decoder,
        pad=maker.end if pad is None else pad,
        end=maker.end,
        first=config.decoder_start_token_id if maker.encoder_decoder else None,
        signal=any(control.units for control in controls),
        mask=any(control.norm_of_example for control in controls),
        packing=recipe.data.max_tokens if recipe.batch.packing else 0,
        **({} if recipe.loss is None else recipe.loss.model_dump()),
    )


def _check_grouping(control: Control, separator: str, tokenizer: Any) -> None:
    """Raise an error if the text between sentences is not the token by which the control counts them."""
    for side in ("text", "text_target"):
        ids = tokenizer(**{side: separator}, add_special_tokens=False)["input_ids"]
        if ids != list(control.token_ids):
            tokens = " ".join(tokenizer.convert_ids_to_tokens(ids))
            raise RecipeError(
                f"control {control.name!r} separates sentences by {control.tokens[0]!r}, and lengths.separator "
                f"{separator!r} is {tokens!r} in this model; give both the same token"
            )


def _separate_sentences(model: Any, tokenizer: Any, wanted: SentenceSeparator) -> None:
    """Add the separator to the model's controls. A base may have one, whose longest segment is then updated."""
    for side in ("text", "text_target"):  # a translator may have two vocabularies
        ids = tokenizer(**{side: wanted.separator}, add_special_tokens=False)["input_ids"]
        if len(ids) != 1 or ids[0] == tokenizer.unk_token_id:
            raise RecipeError(
                f"lengths.separator {wanted.separator.strip()!r} is not a token of this model (fresh models have "
                "'<sep>'); use ' ', or a token of the model"
            )
    for one in controls_of(model):
        if isinstance(one, SentenceSeparator):
            if one.separator != wanted.separator:
                raise RecipeError(f"the model separates sentences by {one.separator!r}; set lengths.separator to that")
            one.maximum = wanted.maximum
            return
    if (attached := length_control(model)) is None:
        attach(model, wanted, tokenizer)
    else:
        attached.controls.append(wanted)  # it has no weights and changes nothing in the model


def _end(model: Any, tokenizer: Any) -> int:
    """Return the end token that `Writer` uses."""
    known = core_of(model).generation_config.eos_token_id
    ends = known if isinstance(known, list) else [known]
    own = tokenizer.eos_token_id
    return own if known is None or own in ends else ends[0]


# ---- base and adapter


def _smaller_tokenizer(recipe: Recipe, folder: Path | None) -> Any:
    if folder:
        return load_tokenizer(folder)
    with TemporaryDirectory() as made:
        save_smaller_tokenizer(recipe, Path(made))
        return load_tokenizer(Path(made))


def _base(recipe: Recipe) -> tuple[Any, Any]:
    name = str(recipe.model.base)
    frozen_in_bf16 = (recipe.model.lora or recipe.model.frozen) and recipe.train.precision == "bf16"
    model, tokenizer = load_model(resolve(name), dtype=torch.bfloat16 if frozen_in_bf16 else torch.float32)
    if core_of(model) is not model:
        raise RecipeError(f"model.base {name!r} is an adapter; name its base model, or merge the two first")
    if controls_of(model) and recipe.controls:
        raise RecipeError(
            f"model.base {name!r} has length controls already; to train these further, write controls: []"
        )
    return model, tokenizer


def _with_lora(model: Any, lora: Lora) -> Any:
    from peft import LoraConfig, get_peft_model

    tokens = [
        token
        for control in controls_of(model)
        for token in control.token_ids
        # A separator that the model has known before keeps its vector: PEFT's trained ones cannot be in a CUDA graph.
        if not (control.groups_sentences and token < length_control(model).vocabulary)
    ]
    # The module that embeds the source: an encoder may have one of its own, with the shared weights.
    embedding = (model.get_encoder() if model.config.is_encoder_decoder else model).get_input_embeddings()
    name = next(name for name, module in model.named_modules() if module is embedding)
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=lora.targets,
        trainable_token_indices={name: tokens} if tokens else None,
    )
    adapted = get_peft_model(model, config)
    for control in controls_of(adapted):
        control.requires_grad_()  # PEFT has frozen them
    if not lora.dropout:
        merge_in_forward(adapted)
    return adapted


def _freeze(model: Any) -> None:
    if any(control.tokens for control in controls_of(model)):
        raise RecipeError("model.frozen cannot train length tokens, whose vectors belong to the model; use lora")
    model.requires_grad_(False)
    for control in controls_of(model):
        control.requires_grad_()
    if not trainable(model):
        raise RecipeError("model.frozen leaves nothing to train: no control of this recipe has weights")
