"""Max New Tokens++ (Butcher et al. 2024): train with upper limits, lengths that are increased by a random shift.

Butcher, O'Keefe & Titchener 2024. During training the length is increased by a random shift that grows over time, so
that the model learns to end at or before the limit.
    shift ~ HalfNormal(σ), truncated to [0, maximum] by the inverse CDF, rounded;   σ_t = σ0 · (σmax/σ0)^(t/T)
(Clipping instead of truncating would put the probability of the whole tail on the maximum.)
"""

import math

import torch
from torch import Tensor


def sigma(progress: float, start: float = 0.1, end: float = 2048.0) -> float:
    """Return σ at this share (0 to 1) of the training: 0.1 at its beginning, 14.3 in the middle, 2048 at its end."""
    return start * math.exp(min(max(progress, 0.0), 1.0) * math.log(end / start))


def truncated_half_normal(uniform: Tensor, sigma: float, maximum: Tensor | float) -> Tensor:
    """Return the quantiles `uniform` (0 to 1) of the truncated half-normal. σ 10: half lies below 6.74."""
    most = torch.as_tensor(maximum, dtype=torch.float64)
    within = torch.erf(most / (sigma * math.sqrt(2)))
    reached: Tensor = sigma * math.sqrt(2) * torch.erfinv(uniform.double() * within)
    return reached.minimum(most)


def shifts(uniform: Tensor, progress: float, start: float, end: float, maximum: Tensor | int) -> Tensor:
    """Return whole units to add to each length: (batch,) uniforms in, (batch,) integers out."""
    return truncated_half_normal(uniform, sigma(progress, start, end), maximum).round().long()
