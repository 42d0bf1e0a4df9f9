"""The reverse model: back-translations of outputs, and log P(source | output), by a target-to-source model.

Back-translations are greedy. Both results are cached, so that coverage, tail, bins and comparisons compute them once;
`mean_log_prob`, which is called for millions of outputs, caches none. Tokens beyond the model's window are cut off.
Attached controls receive no length unless `lengths` is given.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..engines.base import Engine, LengthInputs
from .log_likelihood import Array, batches_by_size, log_probs

Progress = Callable[[int, int], None]  # outputs translated back so far, and in all


class ReverseModel:
    """A model that translates outputs back, and its results so far.

    `prefix`: a text before each input, which names the target language to a model of several languages.
    `lengths`: computes length inputs from the encoder's inputs, for a model that must receive a length.
    """

    def __init__(
        self,
        engine: Engine,
        prefix: str = "",
        lengths: Callable[[Sequence[Sequence[int]]], LengthInputs] | None = None,
    ) -> None:
        if not engine.encoder_decoder:
            raise ValueError(
                f"translating back takes an encoder-decoder (Marian, BART, M2M100, T5, ...); {engine.name} has only a "
                "decoder"
            )
        self.engine, self.name, self.prefix, self.lengths = engine, engine.name, prefix, lengths
        self.translations: dict[str, str] = {}  # by output
        self._likelihoods: dict[tuple[str, str], tuple[float, int]] = {}  # by source and output: log P, tokens

    def translate(self, outputs: Sequence[str], progress: Progress | None = None) -> list[str]:
        """Return the greedy translation of each output; that of an empty one is empty."""
        missing = [text for text in dict.fromkeys(outputs) if text.strip() and text not in self.translations]
        inputs, done = self._encoder_ids(missing), 0
        for rows in batches_by_size([len(ids) for ids in inputs], self.engine.batch_tokens):
            found = self._generate([inputs[row] for row in rows])
            self.translations |= {missing[row]: back for row, back in zip(rows, found, strict=True)}
            done += len(rows)
            if progress:
                progress(done, len(missing))
        return [self.translations.get(text, "") for text in outputs]

    def likelihood(self, sources: Sequence[str], outputs: Sequence[str]) -> Array:
        """Return log P of each source given its output, with its end, and the number of its tokens: (n, 2)."""
        pairs = list(zip(sources, outputs, strict=True))
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in self._likelihoods]
        found = self.log_probs([source for source, _ in missing], [output for _, output in missing])
        for row, tokens in found:
            self._likelihoods[missing[row]] = float(tokens.sum()), len(tokens)
        return np.array([self._likelihoods[pair] for pair in pairs], dtype=np.float64)

    def mean_log_prob(self, sources: Sequence[str], outputs: Sequence[str]) -> Array:
        """Return the mean log P of each source's tokens given its output: (n,).

        The end token is left out: after a full stop it is nearly certain.
        """
        means = np.empty(len(outputs))
        for row, tokens in self.log_probs(sources, outputs):
            means[row] = (tokens[:-1] if len(tokens) > 1 else tokens).mean()
        return means

    def log_probs(self, sources: Sequence[str], outputs: Sequence[str]) -> Iterator[tuple[int, Array]]:
        """Yield the row of each pair and log P of each token of its source, in the order of the batches."""
        distinct, given = (list(dict.fromkeys(some)) for some in (sources, outputs))
        targets = dict(zip(distinct, self._decoder_ids(distinct), strict=True))
        encoded = dict(zip(given, self._encoder_ids(given), strict=True))
        inputs = [encoded[output] for output in outputs]
        lengths = self.lengths(inputs) if self.lengths else None
        texts = [targets[source] for source in sources]
        for row, found in log_probs(self.engine, inputs, texts, lengths):
            yield row, found.token

    def _encoder_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return encoder inputs of at least one token each: some tokenizers return none for an empty text."""
        engine, window = self.engine, self.engine.window
        known = engine.tokenizer([f"{self.prefix}{text}" for text in texts])["input_ids"] if texts else []
        found = [ids or engine.eos[:1] for ids in known]
        return [ids if len(ids) <= window else [*ids[: window - 1], ids[-1]] for ids in found]

    def _decoder_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return decoder ids, each with one end token and without the language token that the engine forces."""
        engine, first = self.engine, self.engine.forced_start
        known = engine.tokenizer(text_target=list(texts))["input_ids"] if texts else []
        bare = [ids[:-1] if ids and ids[-1] in engine.eos else ids for ids in known]
        bare = [ids[len(first) :] if ids[: len(first)] == first else ids for ids in bare]
        return [[*ids[: engine.window - 1 - len(first)], engine.eos[0]] for ids in bare]

    def _generate(self, inputs: list[list[int]]) -> list[str]:
        # A translation of more than twice the tokens is a repetition loop. Each row has its own limit in its batch.
        limits = [min(2 * len(ids) + 32, self.engine.window - 1) for ids in inputs]
        lengths = self.lengths(inputs) if self.lengths else None
        found = self.engine.search(inputs, lengths, max_new_tokens=max(limits)).ids
        rows = [ids[:limit] for ids, limit in zip(found, limits, strict=True)]
        return [text.strip() for text in self.engine.tokenizer.batch_decode(rows, skip_special_tokens=True)]
