"""Where a text was forced, and where it may end, by the model's own scores.

A hard budget bans tokens and raises the scores of full stops, and an attached control makes full stops more probable.
These scores show where that went against the model's own ranking. They are recorded during decoding, or computed from
the finished text by `score_tokens`. This file knows no budgets; `generation/endings` decides what follows from them.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..engines.transformers import TransformersEngine
from .log_likelihood import token_log_probs


@dataclass(frozen=True)
class TokenScores:
    """Scores of each token of a text: (rows, time)."""

    agreement: Tensor  # 1 where the model itself would choose it; near 0 where the token was forced
    end_ratio: Tensor  # probability of ending here / probability of the best token
    score: Tensor  # log of (probability of the token / probability of the best token)


def agreement(own: Tensor, made: Tensor, best: Tensor, top: Tensor) -> Tensor:
    """Return how far a token agrees with the model's own ranking: exp(min(0, (own − best) − (made − top))).

    The model gave the token the score `own` and its best token `best`; after the budget they are `made` and `top`.
    The result is small where the budget banned better tokens or raised the score of a full stop.
    """
    forced = top == -torch.inf  # all tokens were banned; the end was then allowed with the score 0
    return ((own - best) - (made - top.masked_fill(forced, 0.0))).clamp(max=0).exp()


def score_tokens(
    engine: TransformersEngine, inputs: dict[str, Tensor], written: Tensor, start: int, cache: Any = None
) -> TokenScores:
    """Return the scores of `written[:, start:]`; the arguments are those of `log_likelihood.token_log_probs`.

    Beam search reorders rows, so scores recorded during decoding would belong to other rows. It weighs each token
    against all that follow, so here a token agrees as far as the model finds it probable.
    """
    found = token_log_probs(engine, inputs, written, start, cache)
    score = found.token - found.best
    return TokenScores(score.exp(), (found.end - found.best).exp(), score)


def judged_without_length(scores: TokenScores, own: TokenScores, full_stops: Tensor) -> TokenScores:
    """Return `scores` of a model with length inputs, where full stops and ends are judged by `own`.

    `own`: scores of the same text without length inputs, or with a distant length. With a length, the model ends
    sentences to meet it. So `own` decides on `full_stops` (rows, time), on ends, and on how probable the text is.
    """
    lower = torch.minimum(scores.agreement, own.agreement)
    return TokenScores(torch.where(full_stops, lower, scores.agreement), own.end_ratio, own.score)


def without_length_inputs(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the arguments of the model without those that controls receive."""
    return {key: value for key, value in inputs.items() if not key.startswith("decoder_")}


def distant_length(length: Any) -> Any:
    """Return a length (a number or a tensor) so far beyond `length` that it does not limit the text."""
    return 2 * length + 20


def distant_limit_inputs(length: Tensor) -> dict[str, Tensor]:
    """Return length inputs that do not limit the text, for a model that was always trained with a length."""
    return {"decoder_length": distant_length(length), "decoder_at_most": torch.ones_like(length, dtype=torch.bool)}
