"""The reverse model: what of the source can be read out of the output, by a model that translates the other way?

It is asked two things: what an output says (its greedy translation, for `coverage.py`), and how likely the source is,
given the output. Each answer is kept while the model is, so coverage, tail, bins and comparisons ask once. What an
output or a source has beyond the model's window is not read. The model is an encoder-decoder that `lengthwise.load`
finds, and gets no control; this file imports torch only when asked, and compares no words.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .perplexity import _batches
from .tally import Tally, ratio_of_sums
from .texts import Array, Texts

NEED_BACKS = ("coverage", "tail")
Progress = Callable[[int, int], None]  # outputs translated back, and all that are to be


def reverse(texts: Texts, model: str) -> Tally:
    """Mean log P(source | output) in nats for each token of all sources together, their ends included."""
    if not model:
        raise ValueError("the reverse score needs a model that translates back: 'reverse:path/to/model'")
    counts = loaded(model).likelihood(texts.srcs or (), texts.hyps)
    signature = f"reverse|log-p:source|given:output|per:token|end:yes|model:{short(model)}|v1"
    return Tally(signature, counts, ratio_of_sums, counts[:, 0] / counts[:, 1])


def all_with(model: str | None) -> list[str]:
    """Every metric of this model, as `--reverse` asks for them; none without a model."""
    return [f"{name}:{model}" for name in (*NEED_BACKS, "reverse")] if model else []


def translators(metrics: Iterable[str]) -> list[str]:
    """The models by which outputs must be translated back for these metrics.

    >>> translators(["bleu:zh", "coverage:m", "tail:m", "tail", "reverse:n"])
    ['m']
    """
    asked = [name.partition(":") for name in metrics]
    return list(dict.fromkeys(model for name, _, model in asked if name.lower() in NEED_BACKS and model))


def short(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2]


class Reverse:
    """A model that translates outputs back, and what it has answered so far."""

    def __init__(self, writer: Any) -> None:
        if not writer.model.config.is_encoder_decoder:
            raise ValueError(
                f"translating back takes an encoder-decoder (Marian, BART, M2M100, T5, ...); {writer.name} is a "
                f"{writer.model.config.model_type}, which has only a decoder"
            )
        self.model, self.tokenizer = writer.model, writer.tokenizer
        self._ends, self._pad = writer._eos(), writer._pad()
        self._window: int = writer._window()
        start = self.model.generation_config.decoder_start_token_id
        self._start: int = self.model.config.decoder_start_token_id if start is None else start
        self.backs: dict[str, str] = {}  # by output
        self._likelihoods: dict[tuple[str, str], tuple[float, int]] = {}  # by source and output: log P, tokens

    def translate(self, outputs: Sequence[str], progress: Progress | None = None) -> list[str]:
        """Each output, greedily translated back; an empty one says nothing."""
        missing = [text for text in dict.fromkeys(outputs) if text.strip() and text not in self.backs]
        heads, done = self._read(missing), 0
        for rows in _batches([len(head) for head in heads]):
            found = self._generate([heads[row] for row in rows])
            self.backs |= {missing[row]: back for row, back in zip(rows, found, strict=True)}
            done += len(rows)
            if progress:
                progress(done, len(missing))
        return [self.backs.get(text, "") for text in outputs]

    def likelihood(self, sources: Sequence[str], outputs: Sequence[str]) -> Array:
        """log P of each source, given its output, and the tokens that it is the sum of: (n, 2)."""
        pairs = list(zip(sources, outputs, strict=True))
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in self._likelihoods]
        heads, tails = self._read([output for _, output in missing]), self._spell([source for source, _ in missing])
        for rows in _batches([max(len(head), len(tail)) for head, tail in zip(heads, tails, strict=True)]):
            wanted = [tails[row] for row in rows]
            found = self._score([heads[row] for row in rows], wanted)
            for row, log_prob, tail in zip(rows, found, wanted, strict=True):
                self._likelihoods[missing[row]] = log_prob, len(tail)
        return np.array([self._likelihoods[pair] for pair in pairs], dtype=np.float64)

    # ---- texts to ids

    def _read(self, texts: Sequence[str]) -> list[list[int]]:
        """For the encoder. Some tokenizers leave nothing of an empty text, and a model must read something."""
        found = [self.tokenizer(text)["input_ids"] or self._ends[:1] for text in texts]
        return [ids if len(ids) <= self._window else [*ids[: self._window - 1], ids[-1]] for ids in found]

    def _spell(self, texts: Sequence[str]) -> list[list[int]]:
        """For the decoder, each with its end."""
        found = [self.tokenizer(text_target=text)["input_ids"] for text in texts]
        bare = [ids[:-1] if ids and ids[-1] in self._ends else ids for ids in found]
        return [[*ids[: self._window - 1], self._ends[0]] for ids in bare]

    # ---- batches through the model

    def _inputs(self, heads: list[list[int]]) -> dict[str, Any]:
        """Padded on the right: positions of the encoders that count them begin at the first column."""
        import torch

        width = max(map(len, heads))
        ids = [[*head, *[self._pad] * (width - len(head))] for head in heads]
        mask = [[1] * len(head) + [0] * (width - len(head)) for head in heads]
        both = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
        return {name: value.to(self.model.device) for name, value in both.items()}

    def _generate(self, heads: list[list[int]]) -> list[str]:
        import torch

        # A translation of more than twice the tokens goes round in circles. A row's own limit holds, not its batch's.
        limits = [min(2 * len(head) + 32, self._window - 1) for head in heads]
        with torch.inference_mode():
            written = self.model.generate(
                **self._inputs(heads),
                num_beams=1,
                do_sample=False,
                **dict.fromkeys(("temperature", "top_p", "top_k", "max_length")),
                max_new_tokens=max(limits),
                eos_token_id=self._ends,
                pad_token_id=self._pad,
            )
        rows = [ids[: limit + 1] for ids, limit in zip(written.tolist(), limits, strict=True)]
        return [text.strip() for text in self.tokenizer.batch_decode(rows, skip_special_tokens=True)]

    def _score(self, heads: list[list[int]], tails: list[list[int]]) -> list[float]:
        """log P of each tail."""
        import torch
        from torch.nn.functional import cross_entropy

        labels = torch.full((len(tails), max(map(len, tails))), -100)  # which cross_entropy leaves out
        shifted = torch.full_like(labels, self._pad)
        for row, tail in enumerate(tails):
            labels[row, : len(tail)] = torch.tensor(tail)
            shifted[row, : len(tail)] = torch.tensor([self._start, *tail[:-1]])
        labels, shifted = labels.to(self.model.device), shifted.to(self.model.device)
        # Marian's vocabulary has a token that is never written, with a logit like any other's.
        never = [ids[0] for ids in self.model.generation_config.bad_words_ids or () if len(ids) == 1]
        with torch.inference_mode():
            logits = self.model(**self._inputs(heads), decoder_input_ids=shifted).logits.float()
            logits[..., never] = -torch.inf
            losses = cross_entropy(logits.transpose(1, 2), labels, reduction="none")  # (batch, time)
        return [-loss for loss in losses.sum(1).double().tolist()]


@lru_cache(maxsize=2)
def loaded(model: str) -> Reverse:
    """The reverse model of this name, loaded once."""
    import torch

    from ..checkpoint import load
    from ..models import ModelNotFound

    try:
        return Reverse(load(model, dtype=torch.float32))
    except ModelNotFound as error:
        raise ValueError(str(error)) from error
