"""LoRA, folded into the weight for the length of a step.

Unmerged, an adapter is four small kernels around each linear layer, and a fast GPU waits for their launch. Without
dropout x·Wᵀ + s·(x·Aᵀ)·Bᵀ is x·(W + s·B·A)ᵀ: one large product, for the price of a small sum of weights and of their
gradient. Same function, same gradients. In bfloat16 the sum is rounded, as any weight trained in mixed precision is: a
change smaller than that is not heard yet. Knows PEFT's linear layers and nothing else of the model.
"""

from types import MethodType
from typing import Any

from torch import Tensor, nn
from torch.nn import functional


def fold(model: nn.Module) -> int:
    """Folds every LoRA layer of `model` that can be; the number of them. Saving and merging are as before."""
    from peft.tuners.lora import Linear

    layers = [module for module in model.modules() if type(module) is Linear and _plain(module)]
    for layer in layers:
        layer.forward = MethodType(_folded, layer)
    return len(layers)


def _plain(layer: Any) -> bool:
    """One adapter, without dropout or variants, on an ordinary linear layer."""
    if len(layer.active_adapters) != 1 or type(layer.get_base_layer()) is not nn.Linear:
        return False
    name = layer.active_adapters[0]
    dropout = layer.lora_dropout[name]
    still = isinstance(dropout, nn.Identity) or getattr(dropout, "p", 1) == 0
    return still and not layer.use_dora.get(name, False) and not layer.lora_bias[name]


def _folded(layer: Any, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    base, name = layer.get_base_layer(), layer.active_adapters[0]
    if layer.disable_adapters or layer.merged:
        return base(x)
    change = layer.lora_B[name].weight @ layer.lora_A[name].weight  # (out, in)
    weight = base.weight.float() + layer.scaling[name] * change.float()  # rounded once, as a sum
    return functional.linear(x, weight.to(base.weight.dtype), base.bias)
