"""The reverse model: what of the source can be read out of the output, by a model that translates the other way?

It is asked two things: what an output says (its greedy translation, for `coverage.py`), and how likely the source is,
given the output. Each answer is kept while the model is, so coverage, tail, bins and comparisons ask once; `mean_log_prob`,
which is asked about millions of outputs, keeps none. What an output or a source has beyond the model's window is not
read. The model is an encoder-decoder that `lengthwise.load` finds, and gets no control; this file imports torch only
when asked, and compares no words.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..metrics.perplexity import alike
from ..metrics.tally import Tally, ratio_of_sums
from ..metrics.texts import Array, Texts

NEED_BACKS = ("coverage", "tail")
Progress = Callable[[int, int], None]  # outputs translated back, and all that are to be
TOKENS = {"cpu": 4096, "cuda": 32768}  # of a batch, padding included: a row of logits is as wide as the vocabulary


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


class ReverseModel:
    """A model that translates outputs back, and what it has answered so far."""

    def __init__(self, writer: Any, prefix: str = "") -> None:
        """`prefix`: what a model of several languages reads before each text, to know which is wanted."""
        if not writer.model.config.is_encoder_decoder:
            raise ValueError(
                f"translating back takes an encoder-decoder (Marian, BART, M2M100, T5, ...); {writer.name} is a "
                f"{writer.model.config.model_type}, which has only a decoder"
            )
        self.name, self.model, self.tokenizer, self.prefix = writer.name, writer.model, writer.tokenizer, prefix
        self._ends, self._pad = writer.ends, writer.pad
        self._window: int = writer.window
        start = self.model.generation_config.decoder_start_token_id
        self._start: int = self.model.config.decoder_start_token_id if start is None else start
        self.backs: dict[str, str] = {}  # by output
        self._likelihoods: dict[tuple[str, str], tuple[float, int]] = {}  # by source and output: log P, tokens

    def translate(self, outputs: Sequence[str], progress: Progress | None = None) -> list[str]:
        """Each output, greedily translated back; an empty one says nothing."""
        missing = [text for text in dict.fromkeys(outputs) if text.strip() and text not in self.backs]
        heads, done = self._read(missing), 0
        for rows in self._batches([len(head) for head in heads]):
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
        found = self.log_probs([source for source, _ in missing], [output for _, output in missing])
        for row, log_probs in found:
            self._likelihoods[missing[row]] = float(log_probs.sum()), len(log_probs)
        return np.array([self._likelihoods[pair] for pair in pairs], dtype=np.float64)

    def mean_log_prob(self, sources: Sequence[str], outputs: Sequence[str]) -> Array:
        """How well each source is read out of its output: the mean log P of its tokens, (n,).

        The end token is left out: that a text is over is hardly news behind its full stop.
        """
        means = np.empty(len(outputs))
        for row, log_probs in self.log_probs(sources, outputs):
            means[row] = (log_probs[:-1] if len(log_probs) > 1 else log_probs).mean()
        return means

    def log_probs(self, sources: Sequence[str], outputs: Sequence[str]) -> Iterator[tuple[int, Array]]:
        """The row of each pair and log P of each token of its source, in whatever order suits the batches."""
        known = list(dict.fromkeys(sources))
        spelt = dict(zip(known, self._spell(known), strict=True))
        heads, tails = self._read(outputs), [spelt[source] for source in sources]
        for rows in self._batches([max(len(head), len(tail)) for head, tail in zip(heads, tails, strict=True)]):
            wanted = [tails[row] for row in rows]
            found = self._score([heads[row] for row in rows], wanted)
            yield from ((row, found[n, : len(wanted[n])]) for n, row in enumerate(rows))

    def _batches(self, sizes: Sequence[int]) -> Iterator[list[int]]:
        return alike(sizes, TOKENS.get(self.model.device.type, TOKENS["cpu"]))

    # ---- texts to ids

    def _read(self, texts: Sequence[str]) -> list[list[int]]:
        """For the encoder. Some tokenizers leave nothing of an empty text, and a model must read something."""
        known = self.tokenizer([f"{self.prefix}{text}" for text in texts])["input_ids"] if texts else []
        found = [ids or self._ends[:1] for ids in known]
        return [ids if len(ids) <= self._window else [*ids[: self._window - 1], ids[-1]] for ids in found]

    def _spell(self, texts: Sequence[str]) -> list[list[int]]:
        """For the decoder, each with its end."""
        known = self.tokenizer(text_target=list(texts))["input_ids"] if texts else []
        bare = [ids[:-1] if ids and ids[-1] in self._ends else ids for ids in known]
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

    def _score(self, heads: list[list[int]], tails: list[list[int]]) -> Array:
        """log P of each token of the tails, and what is of no meaning behind them: (batch, time)."""
        import torch

        width = max(map(len, tails))
        labels = torch.tensor([[*tail, *[self._pad] * (width - len(tail))] for tail in tails]).to(self.model.device)
        shifted = torch.cat([torch.full_like(labels[:, :1], self._start), labels[:, :-1]], 1)
        # Marian's vocabulary has a token that is never written, with a logit like any other's.
        never = [ids[0] for ids in self.model.generation_config.bad_words_ids or () if len(ids) == 1]
        with torch.inference_mode():
            logits = self.model(**self._inputs(heads), decoder_input_ids=shifted).logits
            logits[..., never] = -torch.inf
            picked = logits.gather(2, labels.unsqueeze(2)).squeeze(2).float()
            # Some rows at a time: in single precision all of them are the largest thing in memory.
            totals = torch.cat([some.float().logsumexp(2) for some in logits.split(64)])
        found: Array = (picked - totals).double().cpu().numpy()
        return found


@lru_cache(maxsize=2)
def loaded(model: str) -> ReverseModel:
    """The reverse model of this name, loaded once."""
    import torch

    from ..generation.load import load
    from ..models.registry import ModelNotFound

    try:
        return ReverseModel(load(model, dtype=torch.float32))
    except ModelNotFound as error:
        raise ValueError(str(error)) from error
