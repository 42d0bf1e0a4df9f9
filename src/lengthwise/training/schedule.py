"""The learning rate at each step, and the optimiser. The rate is a function of the step, so it has no state to save."""

import math
from collections.abc import Iterable

import torch
from torch import nn

from .recipe import TrainSection


def learning_rate(train: TrainSection, step: int, progress: float) -> float:
    """Return the learning rate of step `step` (from 0), when a share `progress` of the training is done.

    inverse_sqrt with warm-up 4000 from 1e-7 to 1e-3 → step 0: 1e-7, 4000: 1e-3, 16000: 5e-4.
    """
    if step < train.warmup:
        return train.warmup_from + (train.lr - train.warmup_from) * step / train.warmup
    if train.schedule == "linear":
        return train.lr * max(0.0, 1.0 - progress)
    return train.lr * math.sqrt(train.warmup / step) if train.schedule == "inverse_sqrt" else train.lr


def too_short(train: TrainSection, steps: int) -> str:
    """Return a warning if a run of `steps` steps ends within the warm-up, else an empty string."""
    return "" if steps > train.warmup else f"train.warmup = {train.warmup} is not over, so train.lr is not reached"


def optimiser(train: TrainSection, parameters: Iterable[nn.Parameter], device: torch.device) -> torch.optim.Optimizer:
    kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[train.optimiser]
    fused = device.type == "cuda"
    return kind(parameters, lr=train.lr, betas=train.betas, eps=train.eps, weight_decay=train.weight_decay, fused=fused)
