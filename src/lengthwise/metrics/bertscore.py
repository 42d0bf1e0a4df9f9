"""BERTScore: how similar are the token vectors of two texts, as computed by a given encoder (Zhang et al. 2020)?

Each token is matched with the most similar token of the other text, without idf weights and rescaling. Start and end
tokens may be matched but are not counted, as in the authors' code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .tally import Tally, mean_of
from .texts import Texts

Vectors = NDArray[np.float32]  # (tokens, width), each of length 1
Flags = NDArray[np.bool_]  # (tokens,), True: a token of the text, not a start or end token


def bertscore(texts: Texts, encoder: "Encoder | None") -> Tally:
    """Return the mean F1, with the best of several references, as in the authors' code."""
    if encoder is None:
        raise ValueError("BERTScore needs an encoder: 'bertscore:path/to/encoder' or 'bertscore:path/to/encoder@9'")
    refs = texts.refs or ()
    flat = [*texts.hyps, *(ref for of_one in refs for ref in of_one)]
    vectors, pairs = encoder.encode(flat), zip(texts.hyps, refs, strict=True)
    values = [max(greedy_f1(vectors[hyp], vectors[ref]) for ref in of_one) for hyp, of_one in pairs]
    return mean_of(values, f"bertscore|f1|encoder:{encoder.name}|layer:{encoder.layer}|idf:no|rescale:no|refs:max|v1")


def greedy_f1(hyp: tuple[Vectors, Flags], ref: tuple[Vectors, Flags]) -> float:
    """Return F1. Precision is the mean best match of the hypothesis's tokens, recall that of the reference's tokens."""
    (h, h_counts), (r, r_counts) = hyp, ref
    if not h_counts.any() or not r_counts.any():
        return 0.0
    similar = h @ r.T  # (hypothesis tokens, reference tokens)
    precision, recall = float(similar.max(axis=1)[h_counts].mean()), float(similar.max(axis=0)[r_counts].mean())
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


@dataclass(frozen=True)
class Encoder:
    """An encoder of transformers and the layer whose states are compared."""

    name: str
    tokenizer: Any
    model: Any
    layer: int

    def encode(self, texts: Sequence[str]) -> dict[str, tuple[Vectors, Flags]]:
        """Return the vectors of the tokens, by text. Texts of similar length share a batch."""
        import torch

        limit = min(self.tokenizer.model_max_length, getattr(self.model.config, "max_position_embeddings", 10**9))
        options: dict[str, Any] = {"padding": True, "truncation": True, "max_length": limit, "return_tensors": "pt"}
        by_length = sorted(texts, key=len)
        found: dict[str, tuple[Vectors, Flags]] = {}
        for start in range(0, len(texts), 32):
            some = by_length[start : start + 32]
            batch = self.tokenizer([text.strip() for text in some], return_special_tokens_mask=True, **options)
            special = batch.pop("special_tokens_mask").bool()
            with torch.inference_mode():
                states = self.model(**batch.to(self.model.device), output_hidden_states=True).hidden_states[self.layer]
            states = torch.nn.functional.normalize(states.float(), dim=-1).cpu()  # (batch, time, width)
            real = batch["attention_mask"].bool().cpu()
            for text, vectors, is_real, is_special in zip(some, states, real, special, strict=True):
                found[text] = (vectors[is_real].numpy(), (~is_special)[is_real].numpy())
        return found
