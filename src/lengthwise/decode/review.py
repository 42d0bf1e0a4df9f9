"""What does the model itself think of a text? Notes on each token, taken while writing or by reading it again.

A budget bans tokens and favours full stops; the notes say where that went against the model's own judgement.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Notes:
    """Each (rows, time), one column a written token."""

    freedom: Tensor  # 1 where the model itself would have it so; near 0 where the token was forced on it
    end_liking: Tensor  # probability of ending the text there over that of the favourite
    score: Tensor  # log of the token's probability over that of the favourite


def freedom(own: Tensor, made: Tensor, best: Tensor, top: Tensor) -> Tensor:
    """How freely a token was taken: the model scored it `own`, the budget `made`; the highest were `best`, `top`.

    1 where the model's own order stood, small where its favourites were banned or a full stop pulled.
    """
    forced = top == -torch.inf  # nothing was left but an end at 0
    return ((own - best) - (made - top.masked_fill(forced, 0.0))).clamp(max=0).exp()


def review(model: Any, inputs: dict[str, Tensor], written: Tensor, start: int, eos: list[int]) -> Notes:
    """Reads `written` (rows, time), as `generate` returned it for `inputs`, once more in one pass.

    For searches that reorder rows: what was noted while writing would be another row's. A search weighs each token
    against all that follows, so here a token counts as free as far as the model likes it.
    """
    ends = torch.tensor(eos, device=written.device)
    signal = {key: value for key, value in inputs.items() if key.startswith("decoder_")}
    if model.config.is_encoder_decoder:
        encoder = {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"]}
        logits = model(**encoder, decoder_input_ids=written, **signal).logits[:, start - 1 :]
    else:
        mask = torch.cat([inputs["attention_mask"], torch.ones_like(written[:, start:])], 1)
        if signal:
            signal["decoder_start"] = torch.full((len(written),), start, device=written.device)
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        columns = written.shape[1] - start + 1  # the answer's alone: a prompt may be long, and a vocabulary is wide
        whole = model(
            input_ids=written, attention_mask=mask, position_ids=positions, logits_to_keep=columns, **signal
        ).logits
        logits = whole[:, -columns:]
    logits = logits[:, :-1].float()  # (rows, time, vocabulary)
    best = logits.amax(-1)
    score = logits.gather(-1, written[:, start:].unsqueeze(-1)).squeeze(-1) - best
    return Notes(score.exp(), (logits[..., ends].amax(-1) - best).exp(), score)
