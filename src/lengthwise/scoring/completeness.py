"""What does the model itself think of a text? TokenScores on each token, taken while writing or by reading it again.

A budget bans tokens and favours full stops, and a control may make the model favour them itself; the notes say where
that went against its own judgement.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class TokenScores:
    """Each (rows, time), one column a written token."""

    freedom: Tensor  # 1 where the model itself would have it so; near 0 where the token was forced on it
    end_ratio: Tensor  # probability of ending the text there over that of the favourite
    score: Tensor  # log of the token's probability over that of the favourite


def freedom(own: Tensor, made: Tensor, best: Tensor, top: Tensor) -> Tensor:
    """How freely a token was taken: the model scored it `own`, the budget `made`; the highest were `best`, `top`.

    1 where the model's own order stood, small where its favourites were banned or a full stop pulled.
    """
    forced = top == -torch.inf  # nothing was left but an end at 0
    return ((own - best) - (made - top.masked_fill(forced, 0.0))).clamp(max=0).exp()


def score_tokens(
    model: Any, inputs: dict[str, Tensor], written: Tensor, start: int, eos: list[int], cache: Any = None
) -> TokenScores:
    """Reads `written` (rows, time), as `generate` returned it for `inputs`, once more.

    For searches that reorder rows: what was noted while writing would be another row's. A search weighs each token
    against all that follows, so here a token counts as free as far as the model likes it. `cache`: what it makes of
    the prompts, but for their last tokens, if that is known.
    """
    taken = written[:, start:]
    ends = torch.tensor(eos, device=written.device)
    signal = {key: value for key, value in inputs.items() if key.startswith("decoder_")}
    if model.config.is_encoder_decoder:
        encoder = {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"]}
        logits = model(**encoder, decoder_input_ids=written, **signal).logits[:, start - 1 : -1]
        return _opinion(logits, taken, ends)
    mask = torch.cat([inputs["attention_mask"], torch.ones_like(taken)], 1)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    if cache is None:
        columns = taken.shape[1] + 1  # the answer's alone: a prompt may be long, and a vocabulary is wide
        parts = []
        for rows in torch.split(torch.arange(len(written), device=written.device), _ROWS):
            told = {key: value[rows] for key, value in signal.items()}
            logits = model(
                input_ids=written[rows],
                attention_mask=mask[rows],
                position_ids=positions[rows],
                logits_to_keep=columns,
                **told,
            ).logits
            parts.append(_opinion(logits[:, -columns:-1], taken[rows], ends))
        return _joined(parts, 0)
    parts = []
    for first in range(start - 1, written.shape[1] - 1, _AT_ONCE):
        last = min(first + _AT_ONCE, written.shape[1] - 1)
        now = slice(first, last)
        logits = model(
            input_ids=written[:, now],
            attention_mask=mask[:, :last],
            position_ids=positions[:, now],
            past_key_values=cache,
            use_cache=True,
        ).logits
        parts.append(_opinion(logits, written[:, first + 1 : last + 1], ends))
    return _joined(parts, 1)


_AT_ONCE, _ROWS = 64, 16  # tokens of a text, or texts: each token has a score for every word there is


def _joined(parts: list[TokenScores], dim: int) -> TokenScores:
    return TokenScores(
        *(torch.cat(column, dim) for column in zip(*(vars(part).values() for part in parts), strict=True))
    )


def _opinion(logits: Tensor, taken: Tensor, ends: Tensor) -> TokenScores:
    logits = logits.float()  # (rows, time, vocabulary)
    best = logits.amax(-1)
    score = logits.gather(-1, taken.unsqueeze(-1)).squeeze(-1) - best
    return TokenScores(score.exp(), (logits[..., ends].amax(-1) - best).exp(), score)


def judged_without_length(notes: TokenScores, own: TokenScores, closes: Tensor) -> TokenScores:
    """TokenScores on a model that was told a length, and those (`own`) on the same model when it was not, or of a far one.

    Told, it would put a full stop anywhere for the sake of the length. So whether full stops (`closes`: rows, time)
    and ends are in place, and how the text reads, the other one says.
    """
    freedom = torch.where(closes, torch.minimum(notes.freedom, own.freedom), notes.freedom)
    return TokenScores(freedom, own.end_ratio, own.score)


# ---- asked as if nobody said how long


def without_length_inputs(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Without what controls are told."""
    return {key: value for key, value in inputs.items() if not key.startswith("decoder_")}


def distant_length(length: Any) -> Any:
    """Well beyond a length (a number, or a tensor): a limit there hinders nobody who is to write about so much."""
    return 2 * length + 20


def distant_limit_inputs(length: Tensor) -> dict[str, Tensor]:
    """What a model hears that has only ever written with a length, to write or judge as if nobody said how long."""
    return {"decoder_length": distant_length(length), "decoder_at_most": torch.ones_like(length, dtype=torch.bool)}
