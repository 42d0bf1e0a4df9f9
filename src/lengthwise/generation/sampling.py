"""Drawing tokens at random, so that a text depends on its seed and on nothing else.

`generate` draws from torch's one random state, which rows of a batch and threads of a program share. Here every row has
its own numbers, made ahead: the same seed writes the same text, alone or in a batch.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor

LIKELIEST = 50  # tokens that one is drawn from: to sort the whole vocabulary costs more than the model's own step
Cost = Callable[[Tensor], Tensor]


class SeededSampler(LogitsProcessor):  # type: ignore[misc]  # transformers is untyped
    """Leaves one token a row, drawn by its probability; to be the last of the processors, before a greedy choice.

    `uniforms` (rows, steps): uniform numbers in [0, 1). `start`: the column of the first written token.
    """

    def __init__(self, uniforms: Tensor, start: int) -> None:
        self.uniforms, self.start = uniforms, start

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        step = input_ids.shape[1] - self.start
        if step < 0:  # a language token, which nobody chooses
            return scores
        below = scores.double().softmax(1).cumsum(1)  # (rows, vocabulary)
        chance = self.uniforms[:, step : step + 1].to(below) * below[:, -1:]
        drawn = (below <= chance).sum(1, keepdim=True).clamp(max=scores.shape[1] - 1)
        return torch.full_like(scores, -torch.inf).scatter(1, drawn, 0.0)


def uniforms(seeds: list[int], steps: int) -> Tensor:
    """Each row's own uniform numbers: (rows, steps)."""
    rows = [torch.rand(steps, dtype=torch.float64, generator=torch.Generator().manual_seed(s)) for s in seeds]
    return torch.stack(rows)


def nucleus(scores: Tensor, chance: Tensor, temperature: float, top_p: float, cost: Cost | None = None) -> Tensor:
    """A token a row, drawn from the likeliest that make up `top_p` (0: the first alone), of 50 at most: (rows, 1).

    `chance` (rows, 1) in [0, 1) decides. `cost`: nats that tokens (rows, n) are less likely by in the draw.
    """
    best, tokens = scores.topk(min(LIKELIEST, scores.shape[1]))  # (rows, 50), the likeliest first
    best = best.float() / temperature
    shares = best.softmax(1)
    within = shares.cumsum(1) - shares <= top_p
    if cost is not None:
        best = best - cost(tokens) / temperature
    shares = best.masked_fill(~within, -torch.inf).softmax(1)
    below = shares.cumsum(1)
    drawn = (below <= chance.to(below) * below[:, -1:]).sum(1, keepdim=True)
    # A chance may round up to 1: then the last that has a share.
    places = torch.arange(shares.shape[1], device=shares.device)
    last = ((shares > 0) * places).amax(1, keepdim=True)
    return tokens.gather(1, torch.minimum(drawn, last))
