"""The layers of a model: which parameters are trained, and how layers are compiled, sharded, or merged with LoRA."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..controls.attached import core_of


def trainable(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def layers_of(model: nn.Module) -> list[nn.Module]:
    """Return the layers of encoder and decoder, or of the decoder alone."""
    stacks: dict[str, list[nn.Module]] = {}
    for name, module in core_of(model).named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in stacks)  # each layer of T5 is a list itself
        if isinstance(module, nn.ModuleList) and not inside and not name.startswith("length_control"):
            stacks[name] = list(module)
    return [layer for layers in stacks.values() for layer in layers]


def shard(model: nn.Module) -> None:
    """Shard the weights over all processes (FSDP 2), layer by layer.

    Accelerate's own sharding puts output layer and embedding into a group of their own. PyTorch then refuses embeddings
    that a third module shares (Marian, BART); before 2.13 it trained them as two.
    """
    from torch.distributed.fsdp import fully_shard

    for layer in layers_of(model):
        fully_shard(layer)
    fully_shard(model)


def compile_layers(model: nn.Module) -> None:
    """Compile the layers in place, on their first call inside `compile_settings`: one program per stack, any shape."""
    for layer in layers_of(model):
        layer.compile(dynamic=True)


@contextmanager
def compile_settings() -> Iterator[None]:
    """Change the settings of torch.compile inside the block, and restore them."""
    with (
        # Encoder, decoder, training and dev each compile their own variant of the same code.
        # Dropout rates and other floats are constants: as symbols, each program would be traced twice.
        torch._dynamo.config.patch(recompile_limit=64, specialize_float=True),
        # No extra program for batches whose width happens to equal the width of a head.
        torch.fx.experimental._config.patch(use_duck_shape=False),  # type: ignore[attr-defined]
    ):
        yield


# ---- LoRA


def merge_in_forward(model: nn.Module) -> int:
    """Make every LoRA layer of `model` that allows it merge in its forward pass, and return their number.

    Unmerged, an adapter adds four small kernels to each linear layer, and a fast GPU waits for their launch. Without
    dropout x·Wᵀ + s·(x·Aᵀ)·Bᵀ is x·(W + s·B·A)ᵀ: one large product, at the cost of one sum of weights and its gradient.
    Outputs and gradients are the same. In bfloat16 the sum is rounded, as every weight in mixed precision is.
    """
    from peft.tuners.lora import Linear

    layers = [module for module in model.modules() if type(module) is Linear and _can_merge(module)]
    for layer in layers:
        layer.forward = MethodType(_merged_forward, layer)
    return len(layers)


def _can_merge(layer: Any) -> bool:
    """Return whether this is one adapter, without dropout or variants, on an ordinary linear layer."""
    if len(layer.active_adapters) != 1 or type(layer.get_base_layer()) is not nn.Linear:
        return False
    name = layer.active_adapters[0]
    dropout = layer.lora_dropout[name]
    no_dropout = isinstance(dropout, nn.Identity) or getattr(dropout, "p", 1) == 0
    return no_dropout and not layer.use_dora.get(name, False) and not layer.lora_bias[name]


def _merged_forward(layer: Any, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    base, name = layer.get_base_layer(), layer.active_adapters[0]
    if layer.disable_adapters or layer.merged:
        return base(x)
    change = layer.lora_B[name].weight @ layer.lora_A[name].weight  # (out, in)
    weight = base.weight.float() + layer.scaling[name] * change.float()  # the sum is rounded once
    return functional.linear(x, weight.to(base.weight.dtype), base.bias)
