"""Log-probabilities of given texts after their prompts, in batches of similar size.

All log-probabilities come from `Engine.score`. Completeness calls it directly; the reverse model, NLL and the
benchmarks call it through this file, which handles no budgets and generates nothing.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..engines.base import Engine, Ids, LengthInputs
from ..engines.rows import TokenLogProbs

Array = NDArray[np.float64]


def log_probs(
    engine: Engine, prompts: Sequence[Ids], texts: Sequence[Ids], lengths: LengthInputs | None = None
) -> Iterator[tuple[int, TokenLogProbs]]:
    """Yield the row and the log-probabilities (time,) of each text after its prompt, in the order of the batches.

    Rows with an empty text are left out. `lengths`: what attached controls receive.
    """
    rows_with_text = [row for row, text in enumerate(texts) if text]
    join = max if engine.encoder_decoder else sum
    sizes = [join((len(prompts[row]), len(texts[row]))) for row in rows_with_text]
    for batch in batches_by_size(sizes, engine.batch_tokens):
        rows = [rows_with_text[n] for n in batch]
        given = None if lengths is None else lengths.select(rows)
        found = engine.score([prompts[row] for row in rows], [texts[row] for row in rows], given)
        for n, row in enumerate(rows):
            yield row, TokenLogProbs(*(column[n, : len(texts[row])].astype(np.float64) for column in found))


def log_probs_after(engine: Engine, prompt: Ids, texts: Sequence[Ids]) -> list[TokenLogProbs]:
    """Return the log-probabilities of each text after one prompt, which is read once where the engine can."""
    cache = engine.prompt_cache([prompt], len(texts)) if texts else None
    prompts = [prompt] * len(texts)
    if cache is None:
        return [found for _, found in sorted(log_probs(engine, prompts, texts), key=lambda one: one[0])]
    found = engine.score(prompts, texts, cache=cache)
    return [TokenLogProbs(*(column[row, : len(text)] for column in found)) for row, text in enumerate(texts)]


def batches_by_size(sizes: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Yield batches of rows of similar size, each of at most `tokens` tokens with padding, or of one row.

    >>> list(batches_by_size([5, 1, 9, 2], 10))
    [[1, 3], [0], [2]]
    """
    rows: list[int] = []
    for row in sorted(range(len(sizes)), key=sizes.__getitem__):
        if rows and sizes[row] * (len(rows) + 1) > tokens:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


class CausalScorer:
    """A causal model that assigns probability to texts as answers to prompts. Attached controls get no length."""

    def __init__(self, engine: Engine) -> None:
        if engine.encoder_decoder:
            raise ValueError(f"the likelihood needs a model that has only a decoder; {engine.name} also has an encoder")
        self.engine, self.name = engine, engine.name

    def likelihood(self, texts: Sequence[str], prompts: Sequence[str]) -> Array:
        """Return log P of each text after its prompt, without the end, and the number of its tokens: (n, 2)."""
        if len(prompts) != len(texts):
            raise ValueError(f"each text needs its source; got {len(prompts)} for {len(texts)} texts")
        engine = self.engine
        heads = [engine.prompt_ids(prompt) for prompt in prompts]
        tails = [engine.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        sizes = [len(head) + len(tail) for head, tail in zip(heads, tails, strict=True)]
        if (most := max(sizes, default=0)) > engine.window:
            raise ValueError(
                f"row {sizes.index(most)} has {most} tokens with its source; {engine.name} allows {engine.window}"
            )
        found = np.array([(0, len(tail)) for tail in tails], dtype=np.float64).reshape(-1, 2)
        for row, head in enumerate(heads):
            if not head:  # nothing predicts the first token
                heads[row], tails[row] = tails[row][:1], tails[row][1:]
        for row, tokens in log_probs(engine, heads, tails):
            found[row, 0] = tokens.token.sum()
        return found
