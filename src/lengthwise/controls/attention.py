"""The attention function of models whose controls change attention: scaled queries, biases, groups of sentences.

`attach.py` makes it the attention function of a model, and transformers calls it in each layer. The formulas are those
of the controls. PyTorch's fused kernels compute the attention.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

CONTROLLED_ATTENTION = "lengthwise_controls"  # the name of the function, for transformers


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
    controls = module._lengthwise_model.length_control.controls

    def attend(mask: Tensor | None) -> Tensor:
        visible, scaled = _visible_keys(query, key, mask, kind == "decoder"), query
        for control in controls:
            if (scale := control.query_scale(kind, visible)) is not None:
                scaled = scaled * scale.unsqueeze(-1).to(query.dtype)
            if (bias := control.attention_bias(kind, query, key)) is not None:
                mask = _biased(bias.to(query.dtype), _explicit(mask, kind, query, key))
        output: Tensor = sdpa_attention_forward(module, scaled, key, value, mask, **more)[0]
        return output

    grouping = next((control for control in controls if control.groups_sentences), None)
    if grouping is None:
        return attend(attention_mask), None
    same = _same_sentence(kind, query, key, source_sentences, target_sentences)
    inside = _limited(_explicit(attention_mask, kind, query, key), same)
    above = module._lengthwise_above
    return grouping.attend(kind, above, lambda: attend(inside), lambda: attend(attention_mask)), None


def _same_sentence(kind: str, query: Tensor, key: Tensor, source: Tensor | None, target: Tensor | None) -> Tensor:
    """Return whether query and key are in sentences of the same number: (batch, 1, queries, keys)."""
    of_queries, of_keys = (source if kind == "encoder" else target), (target if kind == "decoder" else source)
    if of_queries is None or of_keys is None:
        raise ValueError("group attention needs source_sentences; call the model, not its encoder or decoder alone")
    of_queries = of_queries[:, of_queries.shape[1] - query.shape[2] :]  # the KV cache holds the others
    of_keys = pad(of_keys, (0, key.shape[2] - of_keys.shape[1]))  # a static cache has unused columns
    return of_queries[:, None, :, None] == of_keys[:, None, None, :]


def _limited(mask: Tensor | None, keys: Tensor) -> Tensor:
    """Return the mask with only these `keys`; a query that would see none of them sees what it saw before."""
    kept = keys if mask is None else keys & _seen(mask)
    kept = kept | ~kept.any(-1, keepdim=True)
    if mask is None:
        return kept
    return mask & kept if mask.dtype == torch.bool else mask.masked_fill(~kept, torch.finfo(mask.dtype).min)


def _seen(mask: Tensor) -> Tensor:
    """Return a mask as booleans; it is that already, or 0 and a large negative number."""
    return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


def _explicit(mask: Tensor | None, kind: str, query: Tensor, key: Tensor) -> Tensor | None:
    """Return the mask of an attention; also the causal one, which the kernels know without a tensor."""
    if mask is not None or kind != "decoder":
        return mask
    queries, keys = query.shape[2], key.shape[2]  # the queries are the last columns
    columns = torch.arange(keys, device=query.device)
    return (columns <= torch.arange(keys - queries, keys, device=query.device)[:, None])[None, None]


def _biased(bias: Tensor, mask: Tensor | None) -> Tensor:
    """Return the `bias` (heads, queries, keys), with a large negative number where the mask hides a key."""
    if mask is None:
        return bias[None]
    lowest = torch.finfo(bias.dtype).min
    return torch.where(mask, bias, lowest) if mask.dtype == torch.bool else (mask + bias).clamp(min=lowest)


def _visible_keys(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """Return how many keys each query can see: (time,), or (batch, heads or 1, time) where there is a mask."""
    queries, keys = query.shape[2], key.shape[2]
    if mask is not None:
        return _seen(mask)[..., :keys].sum(-1)
    last = torch.full((queries,), keys, device=query.device)
    return last - torch.arange(queries - 1, -1, -1, device=query.device) if causal else last


AttentionInterface.register(CONTROLLED_ATTENTION, controlled_attention)
AttentionMaskInterface.register(CONTROLLED_ATTENTION, sdpa_mask)  # else transformers passes no mask
