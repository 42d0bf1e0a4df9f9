"""Log-probabilities of given texts, by one forward pass over prompt and text.

The only scorer: completeness, the reverse model, NLL and the benchmarks take their numbers from here. A causal model
reads prompt and text as one row; an encoder-decoder reads the prompt with its encoder and the text with its decoder.
Logits are as wide as the vocabulary: they are computed for the text only, and for some rows or columns at a time.
This file knows no budgets, and it generates nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..engines.base import LengthInputs
from ..engines.transformers import TransformersEngine

Array = NDArray[np.float64]
Ids = Sequence[int]
_FLOAT_ROWS = 64  # with logits in float32 at a time


class TokenLogProbs(NamedTuple):
    """Log-probabilities in nats at each token of a text: (rows, time), or (time,) for one text."""

    token: Tensor  # of the token itself
    best: Tensor  # of the most probable token
    end: Tensor  # of the most probable end token


def log_probs(
    engine: TransformersEngine,
    prompts: Sequence[Ids],
    texts: Sequence[Ids],
    lengths: LengthInputs | None = None,
    never: Ids = (),
) -> Iterator[tuple[int, TokenLogProbs]]:
    """Yield the row and the log-probabilities (time,) of each text after its prompt, in the order of the batches.

    Rows with an empty text are left out. `lengths`: what attached controls receive. `never`: see `token_log_probs`.
    """
    rows_with_text = [row for row, text in enumerate(texts) if text]
    join = max if engine.encoder_decoder else sum
    sizes = [join((len(prompts[row]), len(texts[row]))) for row in rows_with_text]
    for batch in alike(sizes, batch_tokens(engine)):
        rows = [rows_with_text[n] for n in batch]
        some = [texts[row] for row in rows]
        inputs, written, start = _layout(engine, [prompts[row] for row in rows], some, _picked(lengths, rows))
        found = torch.stack(token_log_probs(engine, inputs, written, start, never=never)).double().cpu()
        for n, (row, text) in enumerate(zip(rows, some, strict=True)):
            own = found[:, n, : len(text)] if engine.encoder_decoder else found[:, n, -len(text) :]
            yield row, TokenLogProbs(*own)


@torch.inference_mode()
def token_log_probs(
    engine: TransformersEngine,
    inputs: dict[str, Tensor],
    written: Tensor,
    start: int,
    cache: Any = None,
    never: Ids = (),
) -> TokenLogProbs:
    """Return the log-probabilities of `written[:, start:]`, in the layout of `generate`.

    `inputs`: arguments of the model for the prompts. `written` (rows, time): prompts and texts of a causal model, start
    tokens and texts of an encoder-decoder. `cache`: the KV cache of the prompts without their last tokens; it grows by
    the text. `never`: ids that the model has but never writes; they get no share of the probability.
    """
    ends = torch.tensor(engine.eos, device=written.device)
    found = torch.empty(3, len(written), written.shape[1] - start, device=written.device)
    for rows, columns, logits in engine.text_logits(inputs, written, start, cache, batch_tokens(engine)):
        place = slice(columns.start - start, columns.stop - start)
        found[:, rows, place] = _summary(logits, written[rows, columns], ends, never)
    return TokenLogProbs(*found)


def alike(sizes: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Yield batches of rows of like size, each of at most `tokens` tokens with padding, or of one row.

    >>> list(alike([5, 1, 9, 2], 10))
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

    def __init__(self, engine: TransformersEngine) -> None:
        if engine.encoder_decoder:
            raise ValueError(f"the likelihood needs a model that has only a decoder; {engine.name} has an encoder, too")
        self.engine, self.name = engine, engine.name

    def likelihood(self, texts: Sequence[str], prompts: Sequence[str]) -> Array:
        """Return log P of each text after its prompt, without the end, and the number of its tokens: (n, 2)."""
        if len(prompts) != len(texts):
            raise ValueError(f"each text needs the source it stands behind; got {len(prompts)} for {len(texts)} texts")
        engine = self.engine
        heads = [engine.prompt_ids(prompt) for prompt in prompts]
        tails = [engine.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        sizes = [len(head) + len(tail) for head, tail in zip(heads, tails, strict=True)]
        if (most := max(sizes, default=0)) > engine.window:
            raise ValueError(
                f"row {sizes.index(most)} has {most} tokens with its source, and {engine.name} reads {engine.window}"
            )
        found = np.array([(0, len(tail)) for tail in tails], dtype=np.float64).reshape(-1, 2)
        for row, head in enumerate(heads):
            if not head:  # nothing predicts the first token
                heads[row], tails[row] = tails[row][:1], tails[row][1:]
        for row, tokens in log_probs(engine, heads, tails):
            found[row, 0] = tokens.token.sum()
        return found


def batch_tokens(engine: TransformersEngine) -> int:
    """Return the tokens of one forward pass, padding included: a row of logits is as wide as the vocabulary."""
    return 32768 if engine.encoder_decoder and engine.device.type == "cuda" else 4096


def _layout(
    engine: TransformersEngine, prompts: list[Ids], texts: list[Ids], lengths: LengthInputs | None
) -> tuple[dict[str, Tensor], Tensor, int]:
    """Return the arguments of `token_log_probs`. Only rows of a causal model are padded on the left."""
    if not engine.encoder_decoder:
        inputs = engine.inputs([[*prompt, *text] for prompt, text in zip(prompts, texts, strict=True)], lengths)
        return inputs, inputs["input_ids"], inputs["input_ids"].shape[1] - max(map(len, texts))
    rows = [torch.tensor([engine.decoder_start, *text]) for text in texts]
    written = pad_sequence(rows, batch_first=True, padding_value=engine.pad).to(engine.device)
    return engine.inputs(prompts, lengths), written, 1


def _picked(lengths: LengthInputs | None, rows: list[int]) -> LengthInputs | None:
    return lengths and LengthInputs(**{name: [column[row] for row in rows] for name, column in vars(lengths).items()})


def _summary(logits: Tensor, taken: Tensor, ends: Tensor, never: Ids) -> Tensor:
    """Return the fields of `TokenLogProbs`: logits (rows, time, vocabulary), taken (rows, time) -> (3, rows, time).

    Some rows at a time: a copy of all logits in float32 would take the most memory of all.
    """
    parts = []
    for some, tokens in zip(torch.split(logits, _FLOAT_ROWS), torch.split(taken, _FLOAT_ROWS), strict=True):
        some = some.float()
        some[..., list(never)] = -torch.inf
        total = some.logsumexp(-1)
        token = some.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
        parts.append(torch.stack([token, some.amax(-1), some[..., ends].amax(-1)]) - total)
    return torch.cat(parts, 1)
