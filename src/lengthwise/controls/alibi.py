"""ALiBi: attention with linear biases in place of absolute positions (Press, Smith & Lewis 2022).

The logit of query i and key j is lowered in proportion to their distance, by another slope in each head:

    q·k − m · |i − j|        m = 2^(−8/n), 2^(−16/n), …, 2^(−8)  for n heads

If n is no power of two, the slopes are those of the next lower power, then every second one of twice that power. The
model has no other positions: those of encoder and decoder are zero, so their number does not limit the text.
The paper has only a decoder. In an encoder the distance counts in both directions; cross-attention has no bias.

    8 heads:  m = 1/2, 1/4, …, 1/256;  the first head's biases at query 3 are −1.5 −1 −0.5 0
"""

import torch
from torch import Tensor

from .base import Control


class Alibi(Control):
    """Lowers the logits of self-attention by the distance of query and key, in place of absolute positions.

    The model has to be trained with it: a model that was trained with positions does not work without them.
    """

    name = "alibi"
    positions = "none"
    changes_attention = True
    needs_length = False

    def __init__(self) -> None:  # its signature says that there are no options
        super().__init__()

    def attention_bias(self, kind: str, query: Tensor, key: Tensor) -> Tensor | None:
        if kind == "cross":
            return None
        queries, keys = query.shape[2], key.shape[2]
        # A static cache has unused columns after the queries. That adds a constant to all logits of a query: no change.
        query_columns = torch.arange(keys - queries, keys, device=query.device)
        distance = (query_columns[:, None] - torch.arange(keys, device=query.device)).abs()  # (queries, keys)
        return -slopes(query.shape[1], query.device)[:, None, None] * distance


def slopes(heads: int, device: torch.device | None = None) -> Tensor:
    """Return the slope of each head: (heads,)."""
    power = 1 << (heads.bit_length() - 1)  # the largest power of two that is at most `heads`
    head = torch.arange(heads, device=device)  # made on the device: a copy could not be part of a CUDA graph
    exponent = torch.where(head < power, 8 * (head + 1), 8 * (head - power) + 4) / power
    return torch.exp2(-exponent)
