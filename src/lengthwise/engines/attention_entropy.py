"""Collect the entropy of attention weights while a model of transformers is run.

The model's own attention function is called twice, with its values and with the identity matrix in their place. Its
result is linear in the values, so the second result is the weights themselves, with whatever a control has done to
queries or logits. Fused kernels return no weights, and transformers' eager attention does not run the controls'.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from ..controls.attached import controls_of, core_of

_NAME = "lengthwise_attention_entropy"  # of the attention function, for transformers

AttentionMaskInterface.register(_NAME, sdpa_mask)  # else transformers passes no mask


@contextmanager
def collected_entropies(model: Any) -> Iterator[dict[str, list[tuple[float, int]]]]:
    """Yield the mean entropy in nats and the number of queries, for each attention layer in each call of `model`.

    They are listed by kind (encoder, cross, decoder) while calls are made. The mean is over heads and queries, padding
    included: run texts one by one. A plain model runs with PyTorch's fused kernels, whichever it has been loaded with.
    """
    core = core_of(model)
    if any(control.groups_sentences for control in controls_of(core)):
        raise ValueError(f"{type(core).__name__} has group attention: its gates mix two attentions, not weights")
    before = core.config._attn_implementation
    own = ALL_ATTENTION_FUNCTIONS[before] if before.startswith("lengthwise") else sdpa_attention_forward
    found: dict[str, list[tuple[float, int]]] = {}

    def attention(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **more: Any) -> Any:
        kind = "decoder" if module.is_causal else "cross" if module.is_decoder else "encoder"
        identity = torch.eye(key.shape[2], dtype=value.dtype, device=value.device).expand(*key.shape[:2], -1, -1)
        weights, _ = own(module, query, key, identity, mask, **more)  # (batch, time, heads, keys)
        mean = torch.special.entr(weights.float()).sum(-1).mean().item()
        found.setdefault(kind, []).append((mean, query.shape[2]))
        return own(module, query, key, value, mask, **more)

    AttentionInterface.register(_NAME, attention)
    core.set_attn_implementation(_NAME)
    try:
        if core.config._attn_implementation != _NAME:
            raise ValueError(f"{type(core).__name__} has an attention of its own; its weights cannot be collected")
        yield found
    finally:
        core.set_attn_implementation(before)
