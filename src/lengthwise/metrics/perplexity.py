"""Perplexity: how likely does another model find the outputs, as answers to their sources?

The mean of −log P over an output's tokens, its end not counted; e to the power of it is the perplexity. The source is
put as that model wants it (its chat template), without any control. Short outputs and those that the model would have
written itself come out low, whatever they say: compare at like lengths. The model is one that `lengthwise.load` finds;
this file imports torch only when asked for a score.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .tally import Tally, ratio_of_sums
from .texts import Array, Texts

_TOKENS = 4096  # of a batch, padding included: a row of logits is as wide as the vocabulary


def nll(texts: Texts, model: str) -> Tally:
    """Nats for each token, of all outputs together: a model that tosses a fair coin for each token scores ln 2."""
    if not model:
        raise ValueError("the likelihood needs a model: 'nll:smollm2-plain' or 'nll:path/to/model'")
    counts = surprise(_load(model), texts.srcs or (), texts.hyps)
    alone = np.divide(counts[:, 0], counts[:, 1], out=np.zeros(len(counts)), where=counts[:, 1] > 0)
    name = model.rstrip("/").rpartition("/")[2]
    return Tally(f"nll|per:token|end:no|given:source|model:{name}|v1", counts, ratio_of_sums, alone)


def surprise(writer: Any, prompts: Sequence[str], texts: Sequence[str]) -> Array:
    """−log P of each text after its prompt, and the tokens that it is the sum of: (n, 2)."""
    import torch
    from torch.nn.functional import cross_entropy

    if len(prompts) != len(texts):
        raise ValueError(f"each text needs the source it stands behind; got {len(prompts)} for {len(texts)} texts")
    if writer.model.config.is_encoder_decoder:  # whose answers do not stand behind their sources
        raise ValueError(f"the likelihood needs a model that has only a decoder; {writer.name} has an encoder, too")
    model, tokenizer, found = writer.model, writer.tokenizer, np.zeros((len(texts), 2))
    heads = [writer.prompt_ids(prompt) for prompt in prompts]
    tails = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    sizes = [len(head) + len(tail) for head, tail in zip(heads, tails, strict=True)]
    if (most := max(sizes, default=0)) > writer.window:
        raise ValueError(
            f"row {sizes.index(most)} has {most} tokens with its source, and {writer.name} reads {writer.window}"
        )
    for rows in alike(sizes, _TOKENS):
        width = max(len(heads[row]) + len(tails[row]) for row in rows)
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        labels = torch.full_like(ids, -100)  # which cross_entropy leaves out
        mask = torch.zeros_like(ids)
        for n, row in enumerate(rows):
            start, end = len(heads[row]), len(heads[row]) + len(tails[row])
            ids[n, :end] = torch.tensor([*heads[row], *tails[row]])
            labels[n, start:end] = ids[n, start:end]
            mask[n, :end] = 1
        with torch.inference_mode():
            logits = model(input_ids=ids.to(model.device), attention_mask=mask.to(model.device)).logits
            wanted = labels[:, 1:].to(model.device)
            losses = cross_entropy(logits[:, :-1].float().transpose(1, 2), wanted, reduction="none")  # (batch, time)
        found[rows, 0] = losses.sum(1).double().cpu().numpy()
        found[rows, 1] = [len(tails[row]) for row in rows]
    return found


def alike(sizes: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Rows of like size together, as many as make so many `tokens` with their padding."""
    rows: list[int] = []
    for row in sorted(range(len(sizes)), key=sizes.__getitem__):
        if rows and sizes[row] * (len(rows) + 1) > tokens:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


@lru_cache(maxsize=1)
def _load(model: str) -> Any:
    import torch

    from ..generation.load import load

    return load(model, dtype=torch.float32)
