"""The model of a recipe: a base or a fresh one, its controls attached, its adapter in place.

Knows how models are put together. What they read is made by the `ExampleMaker` and `Layout` that go with them.
"""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..controls import Control
from ..controls.attach import attach, controls_of, core_of, length_control
from ..length.meter import Meter
from ..models.checkpoint import load_model
from ..models.registry import resolve
from .batches import Layout
from .data_stream import epoch_documents, settled
from .examples import ExampleMaker
from .lora_merging import fold
from .recipe import Fresh, Recipe, RecipeError
from .tokenizer import train_tokenizer

SIZES = {  # width, inner width, heads, layers a side; base and large are those of the Transformer paper
    "tiny": (64, 128, 4, 2),
    "compact": (256, 1024, 4, 4),
    "base": (512, 2048, 8, 6),
    "large": (1024, 4096, 16, 6),
}


@dataclass
class Built:
    """A model that is ready to be trained, and what makes its batches."""

    model: Any
    tokenizer: Any
    maker: ExampleMaker
    layout: Layout


def build(recipe: Recipe, tokenizer_folder: Path | None = None) -> Built:
    """The recipe's model. A fresh one's tokenizer is read from `tokenizer_folder`, or trained if none is given."""
    recipe = settled(recipe)
    torch.manual_seed(recipe.seed)
    if recipe.model.fresh:
        tokenizer = tokenizer_in(tokenizer_folder) if tokenizer_folder else fresh_tokenizer(recipe)
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
    return Built(model, tokenizer, *_readers(recipe, model, tokenizer))


def _readers(recipe: Recipe, model: Any, tokenizer: Any) -> tuple[ExampleMaker, Layout]:
    config, controls = core_of(model).config, controls_of(model)
    attached = length_control(model)
    counting = attached is not None and bool(attached.units)
    _check_units(recipe, attached.units if counting else (), controls)
    maker = ExampleMaker(
        tokenizer=tokenizer,
        meters=[Meter(tokenizer, unit) for unit in recipe.unit],  # not the model's: those move to the device
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
    """A base may bring controls of its own, of which the recipe does not know."""
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
        raise RecipeError("batch.packing puts several lengths in a row, and a planner follows one; leave packing out")
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
    """The token that ends a text, as `Writer` will look for it."""
    known = core_of(model).generation_config.eos_token_id
    ends = known if isinstance(known, list) else [known]
    own = tokenizer.eos_token_id
    return own if known is None or own in ends else ends[0]


# ---- fresh


def fresh_tokenizer(recipe: Recipe) -> Any:
    """A tokenizer trained on both sides of the training corpus."""
    fresh = recipe.model.fresh
    assert fresh is not None
    documents = islice(epoch_documents(recipe, epoch=0), fresh.tokenizer_documents)
    texts = (text for document in documents for pair in document.segments for text in pair)
    return train_tokenizer(texts, fresh.vocabulary)


def tokenizer_in(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def fresh_model(fresh: Fresh, tokenizer: Any) -> Any:
    """An untrained Transformer, built as Marian builds it: sinusoidal positions, embeddings shared by both sides."""
    from transformers import GenerationConfig, MarianMTModel

    special = {
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "decoder_start_token_id": tokenizer.pad_token_id,
    }
    model = MarianMTModel(fresh_config(fresh, len(tokenizer), **special))
    # Marian's 0.02, scaled up by √width again, would start the embeddings at half the size of the positions.
    nn.init.normal_(model.get_input_embeddings().weight, std=model.config.d_model**-0.5)
    with torch.no_grad():
        model.get_input_embeddings().weight[tokenizer.pad_token_id].zero_()
    model.generation_config = GenerationConfig(**special, num_beams=5, bos_token_id=tokenizer.bos_token_id)
    return model


def fresh_config(fresh: Fresh, vocabulary: int, **special: int) -> Any:
    from transformers import MarianConfig

    width, inner, heads, layers = SIZES[fresh.size]
    return MarianConfig(
        vocab_size=vocabulary,
        d_model=width,
        encoder_ffn_dim=inner,
        decoder_ffn_dim=inner,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_layers=layers,
        decoder_layers=layers,
        dropout=fresh.dropout,
        attention_dropout=fresh.attention_dropout,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=fresh.max_positions,
        forced_eos_token_id=None,
        bos_token_id=1,
        spells_letters=fresh.decoder == "chars",  # ours, for who trains it on
        **special,
    )


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
        trainable_token_indices={_reading(model): tokens} if tokens else None,
    )
    adapted = get_peft_model(model, config)
    for control in controls_of(adapted):
        control.requires_grad_()  # PEFT has frozen all that is not its own
    if not lora.dropout:
        fold(adapted)
    return adapted


def _reading(model: Any) -> str:
    """The name of the embedding that reads the source. An encoder may have its own module upon the shared weights."""
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


def trainable(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def layers_of(model: nn.Module) -> list[list[nn.Module]]:
    """The layers of each stack: of encoder and decoder, or of the one there is."""
    stacks: dict[str, list[nn.Module]] = {}
    for name, module in core_of(model).named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in stacks)  # each layer of T5 is a list itself
        if isinstance(module, nn.ModuleList) and not inside and not name.startswith("length_control"):
            stacks[name] = list(module)
    return [layers for layers in stacks.values() if layers]


def shard(model: nn.Module) -> None:
    """Spreads the weights over all processes (FSDP 2), layer by layer.

    Accelerate would do it, too, but puts output layer and embedding in a group of their own; embeddings that a third
    module shares (Marian, BART) are then refused, or, by PyTorch before 2.13, come apart and are trained as two.
    """
    from torch.distributed.fsdp import fully_shard

    for layer in [layer for layers in layers_of(model) for layer in layers]:
        fully_shard(layer)
    fully_shard(model)


def compile_layers(model: nn.Module) -> None:
    """Compiles the layers in place: all of a stack are one program, compiled once, for any shape."""
    # All are variants of one program: encoder and decoder, training and dev.
    torch._dynamo.config.recompile_limit = 64
    # Rates of dropout and the like stay numbers; as unknowns, each program would be traced twice.
    torch._dynamo.config.specialize_float = True
    # A batch as wide as a head is no reason to compile for just that width.
    torch.fx.experimental._config.use_duck_shape = False
    for layers in layers_of(model):
        for layer in layers:
            layer.compile(dynamic=True)
