"""Sampling from torch tensors: one token per row, selected by a given uniform number."""

from collections.abc import Callable

import torch
from torch import Tensor

Penalty = Callable[[Tensor], Tensor]  # token ids (rows, n) -> nats to subtract from their scores


def sample(
    scores: Tensor,
    uniform: Tensor,
    *,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int | None = None,
    penalty: Penalty | None = None,
) -> Tensor:
    """Return one token per row, drawn from the `top_k` best that make up `top_p` (0: greedy): (rows, 1).

    `uniform` (rows, 1) in [0, 1) selects the token by the inverse of the cumulative distribution. `penalty`: nats by
    which tokens are less likely in the draw.
    """
    if top_p == 0 and penalty is None:
        return scores.argmax(1, keepdim=True)  # the first of several that are equally good
    tokens = None
    if top_k:  # sorting the whole vocabulary can cost more than the model's own step
        scores, tokens = scores.topk(min(top_k, scores.shape[1]))
    scores = scores.float()  # cumulative sums in half precision are too coarse for top-p
    if temperature != 1.0:
        scores = scores / temperature
    if top_p < 1.0:
        scores = scores.masked_fill(_outside(scores, top_p), -torch.inf)
    if penalty is not None:
        assert tokens is not None, "a penalty needs top_k"
        scores = scores - penalty(tokens) / temperature
    below = scores.to(_wide(scores)).softmax(1).cumsum(1)  # (rows, candidates)
    drawn = (below <= uniform.to(below) * below[:, -1:]).sum(1, keepdim=True)
    # The product may round up to the total; then the last candidate with a probability above 0 is taken.
    places = torch.arange(scores.shape[1], device=scores.device)
    last = ((scores > -torch.inf) * places).amax(1, keepdim=True)
    drawn = torch.minimum(drawn, last)
    return drawn if tokens is None else tokens.gather(1, drawn)


def _outside(scores: Tensor, top_p: float) -> Tensor:
    """Return which tokens are not among the most probable ones that make up `top_p`: (rows, n)."""
    ascending, order = scores.sort(dim=1, stable=True)
    tail = ascending.softmax(1).cumsum(1) <= 1 - top_p
    tail[:, -1] = False  # the best token always stays
    return tail.scatter(1, order, tail)


def _wide(scores: Tensor) -> torch.dtype:
    return torch.float32 if scores.device.type == "mps" else torch.float64  # Apple GPUs have no float64
