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

    liking: Tensor  # probability of the token over that of the model's favourite
    end_liking: Tensor  # the same for ending the text instead
    score: Tensor  # log of `liking`


def review(model: Any, inputs: dict[str, Tensor], written: Tensor, start: int, eos: list[int]) -> Notes:
    """Reads `written` (rows, time), as `generate` returned it for `inputs`, once more in one pass.

    For searches that reorder rows: what was noted while writing would be another row's.
    """
    ends = torch.tensor(eos, device=written.device)
    signal = {key: value for key, value in inputs.items() if key.startswith("decoder_")}
    if model.config.is_encoder_decoder:
        encoder = {"input_ids": inputs["input_ids"], "attention_mask": inputs["attention_mask"]}
        logits = model(**encoder, decoder_input_ids=written, **signal).logits
    else:
        mask = torch.cat([inputs["attention_mask"], torch.ones_like(written[:, start:])], 1)
        if signal:
            signal["decoder_start"] = torch.full((len(written),), start, device=written.device)
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        logits = model(input_ids=written, attention_mask=mask, position_ids=positions, **signal).logits
    logits = logits[:, start - 1 : -1].float()  # (rows, time, vocabulary)
    best = logits.amax(-1)
    score = logits.gather(-1, written[:, start:].unsqueeze(-1)).squeeze(-1) - best
    return Notes(score.exp(), (logits[..., ends].amax(-1) - best).exp(), score)
