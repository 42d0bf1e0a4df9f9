"""BERTScore: do two texts mean alike, to an encoder that you name (Zhang et al. 2020)?

Each token is matched with the most similar one of the other text; no idf weights, no rescaling. Start and end tokens
may be matched but are not counted, as in the authors' code. The encoder is a local folder (or one in the cache);
nothing is downloaded here. This file imports transformers only when asked for a score.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .tally import Tally, mean_of
from .texts import Texts

Vectors = NDArray[np.float32]  # (tokens, width), each of length 1
Flags = NDArray[np.bool_]  # (tokens,): is it a token of the text, not a start or end mark?


def bertscore(texts: Texts, encoder: str) -> Tally:
    """F1 with "path" or "path@layer"; left out, the layer is at three quarters of the encoder's depth."""
    path, layer = _parse(encoder)
    tokenizer, model = _load(path)
    depth = model.config.num_hidden_layers
    layer = max(1, depth * 3 // 4) if layer is None else layer
    if not 0 <= layer <= depth:
        raise ValueError(f"the encoder {path!r} has layers 0 to {depth}; got {layer}")
    refs = texts.refs or ()
    flat = [*texts.hyps, *(ref for of_one in refs for ref in of_one)]
    vectors = dict(zip(flat, _encode(flat, tokenizer, model, layer), strict=True))
    # of several references the best, as the authors' code has it
    values = [
        max(greedy_f1(vectors[hyp], vectors[ref]) for ref in rs) for hyp, rs in zip(texts.hyps, refs, strict=True)
    ]
    return mean_of(values, f"bertscore|f1|encoder:{Path(path).name}|layer:{layer}|idf:no|rescale:no|refs:max|v1")


def greedy_f1(hyp: tuple[Vectors, Flags], ref: tuple[Vectors, Flags]) -> float:
    """Precision: each token of the hypothesis with its best match; recall: each of the reference; F1 of both."""
    (h, h_counts), (r, r_counts) = hyp, ref
    if not h_counts.any() or not r_counts.any():
        return 0.0
    similar = h @ r.T  # (hypothesis tokens, reference tokens)
    precision = float(similar.max(axis=1)[h_counts].mean())
    recall = float(similar.max(axis=0)[r_counts].mean())
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _parse(encoder: str) -> tuple[str, int | None]:
    if not encoder:
        raise ValueError("BERTScore needs an encoder: 'bertscore:path/to/encoder' or 'bertscore:path/to/encoder@9'")
    found = re.fullmatch(r"(.+)@(\d+)", encoder)
    return (found[1], int(found[2])) if found else (encoder, None)


@lru_cache(maxsize=1)
def _load(path: str) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
        return tokenizer, AutoModel.from_pretrained(path, local_files_only=True).eval()
    except OSError as error:
        raise ValueError(f"there is no encoder at {path!r} on this machine; give the path of a local folder") from error


def _encode(texts: Sequence[str], tokenizer: Any, model: Any, layer: int) -> list[tuple[Vectors, Flags]]:
    """The vectors of each text's tokens; texts of like length share a batch."""
    import torch

    limit = min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 10**9))
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    found: dict[int, tuple[Vectors, Flags]] = {}
    for start in range(0, len(order), 32):
        rows = order[start : start + 32]
        batch = tokenizer(
            [texts[row].strip() for row in rows],
            padding=True,
            truncation=True,
            max_length=limit,
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        special = batch.pop("special_tokens_mask").bool()
        with torch.inference_mode():
            hidden = model(**batch.to(model.device), output_hidden_states=True).hidden_states[layer]
        hidden = torch.nn.functional.normalize(hidden.float(), dim=-1).cpu()  # (batch, time, width)
        real = batch["attention_mask"].bool().cpu()
        for row, vectors, is_real, is_special in zip(rows, hidden, real, special, strict=True):
            found[row] = (vectors[is_real].numpy(), (~is_special)[is_real].numpy())
    return [found[row] for row in range(len(texts))]
