"""Masks of an attention, for controls that change it: which keys a query can see, and what is added to its logits.

Only tensors: queries and keys are (batch, heads, time, size), masks (batch, heads or 1, queries, keys). A mask is
made of booleans, or of 0 and a large negative number. Without one every key is visible, in a decoder every earlier one.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad


def same_sentence(kind: str, query: Tensor, key: Tensor, source: Tensor | None, target: Tensor | None) -> Tensor:
    """Return whether query and key are in sentences of the same number: (batch, 1, queries, keys)."""
    of_queries, of_keys = (source if kind == "encoder" else target), (target if kind == "decoder" else source)
    if of_queries is None or of_keys is None:
        raise ValueError("group attention needs source_sentences; call the model, not its encoder or decoder alone")
    of_queries = of_queries[:, of_queries.shape[1] - query.shape[2] :]  # the KV cache holds the others
    of_keys = pad(of_keys, (0, key.shape[2] - of_keys.shape[1]))  # a static cache has unused columns
    return of_queries[:, None, :, None] == of_keys[:, None, None, :]


def limited(mask: Tensor | None, keys: Tensor) -> Tensor:
    """Return the mask with only these `keys`; a query that would see none of them sees what it saw before."""
    kept = keys if mask is None else keys & _seen(mask)
    kept = kept | ~kept.any(-1, keepdim=True)
    if mask is None:
        return kept
    return mask & kept if mask.dtype == torch.bool else mask.masked_fill(~kept, torch.finfo(mask.dtype).min)


def _seen(mask: Tensor) -> Tensor:
    """Return a mask as booleans; it is that already, or 0 and a large negative number."""
    return mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2


def explicit_mask(mask: Tensor | None, kind: str, query: Tensor, key: Tensor) -> Tensor | None:
    """Return the mask of an attention; also the causal one, which the kernels apply without a tensor."""
    if mask is not None or kind != "decoder":
        return mask
    queries, keys = query.shape[2], key.shape[2]  # the queries are the last columns
    columns = torch.arange(keys, device=query.device)
    return (columns <= torch.arange(keys - queries, keys, device=query.device)[:, None])[None, None]


def biased(bias: Tensor, mask: Tensor | None) -> Tensor:
    """Return the `bias` (heads, queries, keys), with a large negative number where the mask hides a key."""
    if mask is None:
        return bias[None]
    lowest = torch.finfo(bias.dtype).min
    return torch.where(mask, bias, lowest) if mask.dtype == torch.bool else (mask + bias).clamp(min=lowest)


def visible_keys(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """Return how many keys each query can see: (time,), or (batch, heads or 1, time) where there is a mask."""
    queries, keys = query.shape[2], key.shape[2]
    if mask is not None:
        return _seen(mask)[..., :keys].sum(-1)
    last = torch.full((queries,), keys, device=query.device)
    return last - torch.arange(queries - 1, -1, -1, device=query.device) if causal else last
