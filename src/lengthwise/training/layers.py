"""The layers of a model: which parameters are trained, what is compiled together, what is sharded over processes.

This file knows modules and parameters, not what they compute.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ..controls.attach import core_of


def trainable(model: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def layers_of(model: nn.Module) -> list[list[nn.Module]]:
    """Return the layers of each stack: of encoder and decoder, or of the decoder alone."""
    stacks: dict[str, list[nn.Module]] = {}
    for name, module in core_of(model).named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in stacks)  # each layer of T5 is a list itself
        if isinstance(module, nn.ModuleList) and not inside and not name.startswith("length_control"):
            stacks[name] = list(module)
    return [layers for layers in stacks.values() if layers]


def shard(model: nn.Module) -> None:
    """Shard the weights over all processes (FSDP 2), layer by layer.

    Accelerate's own sharding puts output layer and embedding into a group of their own. PyTorch then refuses embeddings
    that a third module shares (Marian, BART); before 2.13 it trained them as two.
    """
    from torch.distributed.fsdp import fully_shard

    for layer in [layer for layers in layers_of(model) for layer in layers]:
        fully_shard(layer)
    fully_shard(model)


def compile_layers(model: nn.Module) -> None:
    """Compile the layers in place, on their first call: one program for each stack and for any shape.

    Call the model inside `compile_settings`.
    """
    for layers in layers_of(model):
        for layer in layers:
            layer.compile(dynamic=True)


@contextmanager
def compile_settings() -> Iterator[None]:
    """Change the settings of torch.compile inside the block, and restore them."""
    with (
        # Encoder and decoder, training and dev are variants of one program.
        # Dropout rates and other floats are constants: as symbols, each program would be traced twice.
        torch._dynamo.config.patch(recompile_limit=64, specialize_float=True),
        # No extra program for batches whose width happens to equal the width of a head.
        torch.fx.experimental._config.patch(use_duck_shape=False),  # type: ignore[attr-defined]
    ):
        yield
