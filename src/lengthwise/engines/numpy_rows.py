"""What decoders that return numpy arrays have in common: rows with a countdown head, options, log-probabilities."""

import difflib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..length.meter import Integers
from ..protocols import Tokenizer
from .base import Ids, LengthInputs, Options
from .numpy_countdown_head import NumpyCountdownHead, UnitCounts

Floats = NDArray[np.float32]
# Options of transformers' `generate` that these engines accept if they change nothing.
_OFF = {"renormalize_logits": False, "early_stopping": False, "no_repeat_ngram_size": 0, "repetition_penalty": 1}

_WRITERS = ("candidates", "do_sample", "finish", "num_beams", "seed", "system", "temperature", "top_k", "top_p")
_NAMES = (*_OFF, "min_new_tokens", *_WRITERS)  # what a misspelt option may mean; the writer reads the last ones itself


class Decoder(Protocol):
    """What rows need of their engine."""

    tokenizer: Tokenizer
    eos: list[int]
    head: NumpyCountdownHead

    def forward(self, cache: Any, ids: Sequence[Ids], states: Integers | None, hidden: bool) -> tuple[Floats, Floats]:
        """Append `ids` to the rows of the cache; return the hidden state, if it is wanted, and the logits of each row.

        `states` are those of the countdown head, (rows,); None: it changes nothing.
        """


class NumpyRows:
    """Unfinished texts; see `engines.rows.Rows`. `cache`: the KV cache.

    It has `select`, `can_fork` and, if there is something to give back, `close`, as rows have.
    """

    def __init__(
        self,
        engine: Decoder,
        cache: Any,
        prompts: Sequence[Ids],
        lengths: LengthInputs | None = None,
        least: int = 0,
        hidden: bool = False,
    ) -> None:
        """Read the prompts. `least`: the minimum number of tokens."""
        self._engine, self._cache, self._lengths = engine, cache, lengths
        self.can_fork: bool = cache.can_fork
        self._least, self._keeps_hidden, self._steps = least, hidden, 0
        self._counts: UnitCounts | None = None
        if lengths is not None:
            texts = [prompt[len(prompt) - n :] for prompt, n in zip(prompts, lengths.written, strict=True)]
            self._counts = UnitCounts(engine.tokenizer, [engine.head.units[n] for n in lengths.unit], texts)
        self.scores: Floats = np.empty((0, 0), np.float32)
        self.hidden: Floats | None = None
        self._forward(prompts)

    def step(self, tokens: Any) -> None:
        tokens = np.asarray(tokens)
        if self._counts is not None:
            self._counts.advance(tokens)
        self._steps += 1
        self._forward(tokens[:, None].tolist())

    def select(self, rows: Any) -> None:
        rows = np.asarray(rows, np.int64)
        self._cache.select(rows)
        self.scores = self.scores[rows]
        self.hidden = None if self.hidden is None else self.hidden[rows]
        if self._lengths is not None and self._counts is not None:
            self._lengths = self._lengths.select(rows.tolist())
            self._counts.select(rows)

    def close(self) -> None:
        if hasattr(self._cache, "close"):
            self._cache.close()

    def _forward(self, ids: Sequence[Ids]) -> None:
        """Append ids to each row and compute the scores of the next token."""
        states = None
        if self._lengths is not None and self._counts is not None:
            states = self._engine.head.states(self._lengths, self._counts.written)
        hidden, self.scores = self._engine.forward(self._cache, ids, states, self._keeps_hidden)
        self.hidden = hidden if self._keeps_hidden else None
        if self._steps < self._least:
            self.scores[:, self._engine.eos] = -np.inf


def least_tokens(options: Options | None, engine: str) -> int:
    """Return the minimum number of tokens, the one option that these engines support."""
    for name, value in (options or {}).items():
        if name != "min_new_tokens" and (name not in _OFF or value not in (None, _OFF[name])):
            near = difflib.get_close_matches(name, _NAMES, n=1, cutoff=0.8)
            advice = f"did you mean {near[0]!r}? The" if near and near[0] != name else "the"
            advice += " transformers engine has those of generate"
            raise ValueError(f"the {engine} engine has no option {name!r}; {advice}")
    return int((options or {}).get("min_new_tokens") or 0)


def token_log_probs(logits: Floats, text: Ids, ends: Ids) -> Floats:
    """Return the values of `TokenLogProbs` of one text: logits (time, vocabulary) -> (3, time)."""
    best = logits.max(1)
    total, exp = np.empty_like(best), np.empty(logits.shape[1:], logits.dtype)  # one row fits into the CPU's cache
    for n, row in enumerate(logits):
        total[n] = np.exp(np.subtract(row, best[n], out=exp), out=exp).sum()
    found = np.stack([logits[np.arange(len(text)), list(text)], best, logits[:, list(ends)].max(1)])
    return found - best - np.log(total)


def fill_log_probs(found: Floats, rows: Sequence[int], texts: Sequence[Ids], logits: Floats, ends: Ids) -> None:
    """Write the values of `TokenLogProbs` of these rows into `found` (3, rows, time).

    `logits`: those of the texts of these rows, joined: (n, vocabulary).
    """
    for row in rows:
        own, logits = logits[: len(texts[row])], logits[len(texts[row]) :]
        found[:, row, : len(texts[row])] = token_log_probs(own, texts[row], ends)


def text_states(engine: Decoder, prompts: Sequence[Ids], texts: Sequence[Ids], lengths: LengthInputs) -> list[Integers]:
    """Return the state of the countdown head at each token of each text: (time,) each."""
    found = []
    for row, (prompt, text) in enumerate(zip(prompts, texts, strict=True)):
        own = lengths.select([row])
        begun = prompt[len(prompt) - lengths.written[row] :]
        counts = UnitCounts(engine.tokenizer, [engine.head.units[own.unit[0]]], [begun])
        states = []
        for token in text:
            states.append(engine.head.states(own, counts.written))
            counts.advance(np.array([token]))
        found.append(np.concatenate(states))
    return found
