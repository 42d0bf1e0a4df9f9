"""The gguf engine: chat models of llama.cpp, from GGUF files, without torch.

`llama_sequences.py` has the contexts of llama.cpp. Logits are read at each step, so the search is that of the other
engines. A countdown head edits the hidden state outside of llama.cpp; the change of the logits is added to them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..length.meter import Integers
from ..models.gguf_model import GgufModel
from ..protocols import Tokenizer
from .base import Engine, Ids, LengthInputs, Options
from .llama_sequences import Sequences
from .numpy_countdown_head import NumpyCountdownHead
from .numpy_rows import NumpyRows, fill_log_probs, least_tokens, text_states
from .rows import TokenLogProbs

Floats = NDArray[np.float32]

_SCORES = 2**26  # logits of one forward pass of `score`: 256 MB
_SCORED_ROWS = 16  # texts of one forward pass of `score`: each has a KV buffer
_NO_STEPS = np.zeros(0, np.int64)


class GgufEngine(Engine):
    """A model of llama.cpp, its tokenizer and, if it has one, its countdown head."""

    def __init__(self, model: GgufModel, name: str = "") -> None:
        self.name = name or model.llama.path.stem
        self.tokenizer: Tokenizer = model.tokenizer
        self.eos = model.tokenizer.eos_token_ids
        self.pad = self.eos[0] if model.tokenizer.pad_token_id is None else model.tokenizer.pad_token_id
        self.window = model.llama.window
        self.batch_tokens = max(64, _SCORES // model.llama.vocabulary)
        self._llama = model.llama
        self.head = NumpyCountdownHead.none(model.llama.width)
        self._output = np.zeros((0, 0), np.float32)
        if model.head is not None:
            self.head, self._output = NumpyCountdownHead.of(*model.head), model.output_layer()

    @property
    def controls(self) -> list[Any]:
        return [self.head] if self.head.units else []

    def prefill(
        self,
        prompts: Sequence[Ids],
        lengths: LengthInputs | None = None,
        options: Options | None = None,
        *,
        each: int = 1,
        max_new_tokens: int | None = None,
        hidden: bool = False,
    ) -> NumpyRows:
        least = least_tokens(options, "gguf")
        spare = len(prompts) * (each - 1)
        sequences = Sequences(self._llama, len(prompts), max(map(len, prompts)), spare)
        rows = NumpyRows(self, sequences, prompts, lengths, least, hidden)
        if each > 1:
            rows.select(np.arange(len(prompts)).repeat(each))
        return rows

    def forward(
        self, cache: Sequences, ids: Sequence[Ids], states: Integers | None, hidden: bool
    ) -> tuple[Floats, Floats]:
        """Append `ids` to the rows; return the hidden state, if it is wanted, and the logits of each row."""
        return self._forward(cache, ids, [np.array([len(row) - 1]) for row in ids], states, hidden)

    def _forward(
        self, cache: Sequences, ids: Sequence[Ids], steps: Sequence[Integers], states: Integers | None, hidden: bool
    ) -> tuple[Floats, Floats]:
        """Append `ids` to the rows; return hidden states, if they are wanted, and logits of `steps` of each row.

        A step is the index of one of the row's new ids; `states` are those of the countdown head in all steps.
        """
        if states is None and not hidden:
            return cache.append(ids, steps)
        # With hidden states llama.cpp computes the logits of all tokens, so the tokens before the steps are read alone.
        first = [int(own[0]) if len(own) else 0 for own in steps]
        if any(first):
            cache.append([row[:n] for row, n in zip(ids, first, strict=True)], [_NO_STEPS] * len(ids))
        ids = [row[n:] for row, n in zip(ids, first, strict=True)]
        found, logits = cache.append(ids, [own - n for own, n in zip(steps, first, strict=True)], hidden=True)
        if states is not None:
            logits += self.head.change(found, states) @ self._output.T
        return found, logits

    # ---- scoring given texts

    def score(
        self, prompts: Sequence[Ids], texts: Sequence[Ids], lengths: LengthInputs | None = None, cache: Any = None
    ) -> TokenLogProbs:
        found = np.zeros((3, len(texts), max(map(len, texts))), np.float32)
        states = None if lengths is None else text_states(self, prompts, texts, lengths)
        size = min(_SCORED_ROWS, max(1, self.batch_tokens // max(1, found.shape[2])))
        for first in range(0, len(texts), size):
            rows = range(first, min(first + size, len(texts)))
            own_states = None if states is None else np.concatenate([states[row] for row in rows])
            logits = self._text_logits(prompts, texts, rows, own_states, cache)
            fill_log_probs(found, rows, texts, logits, self.eos)
        return TokenLogProbs(*found)

    def _text_logits(
        self, prompts: Sequence[Ids], texts: Sequence[Ids], rows: range, states: Integers | None, cache: Any
    ) -> Floats:
        """Return the logits of each token of the texts in these rows, joined: (n, vocabulary)."""
        steps = [np.arange(len(texts[row])) for row in rows]
        if cache is not None:
            kept, each = np.arange(len(cache.ids)), len(texts) // len(cache.ids)
            cache.select(np.concatenate([kept, np.array(rows) // each]))
            ids = [[prompts[row][-1], *texts[row][:-1]] for row in rows]
            nothing: list[Ids] = [[]] * len(kept)
            logits = self._forward(cache, [*nothing, *ids], [_NO_STEPS] * len(kept) + steps, states, hidden=False)[1]
            cache.select(kept)
            return logits
        ids = [[*prompts[row], *texts[row][:-1]] for row in rows]
        steps = [len(prompts[row]) - 1 + own for row, own in zip(rows, steps, strict=True)]
        sequences = Sequences(self._llama, len(rows), max(map(len, ids)))
        return self._forward(sequences, ids, steps, states, hidden=False)[1]

    def prompt_cache(self, prompts: Sequence[Ids], each: int = 1, options: Options | None = None) -> Sequences:
        """Return the prompts without their last tokens, read; `score` shares them among `each` texts."""
        spare = min(_SCORED_ROWS, len(prompts) * each)
        cache = Sequences(self._llama, len(prompts), max(map(len, prompts)), spare)
        if any(len(prompt) > 1 for prompt in prompts):
            cache.append([prompt[:-1] for prompt in prompts], [_NO_STEPS] * len(prompts))
        return cache
