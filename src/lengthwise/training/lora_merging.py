"""LoRA, merged into the weight inside each forward pass.

Unmerged, an adapter adds four small kernels to each linear layer, and a fast GPU waits for their launch. Without
dropout x·Wᵀ + s·(x·Aᵀ)·Bᵀ is x·(W + s·B·A)ᵀ: one large product, for a small sum of weights and its gradient. Function
and gradients are the same. In bfloat16 the sum is rounded, as any weight of mixed precision is. This file knows PEFT's
linear layers and nothing else of the model.
"""

from types import MethodType
from typing import Any

from torch import Tensor, nn
from torch.nn import functional


def merge_in_forward(model: nn.Module) -> int:
    """Make every LoRA layer of `model` that allows it merge in its forward pass, and return their number."""
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
