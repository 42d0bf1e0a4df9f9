"""Beam search over the rows of any engine, in numpy.

For engines without a search of their own. It finds what transformers' beam search finds with `early_stopping=False`:
a prompt is finished when no unfinished text can still exceed the worst of its finished ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..arrays import converter, log_softmax, to_numpy
from .rows import Processor, Rows, SearchResult

_NEVER = -1e9  # the score of a beam that duplicates another one

Integers = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass
class _Prompt:
    """The finished texts of a prompt, the best first."""

    beams: int
    finished: list[tuple[float, list[int]]] = field(default_factory=list)  # score, ids

    def add(self, score: float, ids: list[int]) -> None:
        self.finished = sorted([*self.finished, (score, ids)], key=lambda one: -one[0])[: self.beams]

    def is_done(self, best_possible: float) -> bool:
        return len(self.finished) == self.beams and best_possible <= self.finished[-1][0]


def beam_search(
    rows: Rows,
    *,
    beams: int,
    sequences: int,
    max_new_tokens: int,
    eos: Sequence[int],
    processors: Sequence[Processor] = (),
    length_penalty: float = 1.0,
) -> SearchResult:
    """Return the `sequences` best texts of each prompt; `rows` has `beams` equal rows for each.

    Scores are log P / tokens^length_penalty. `processors` edit log-probabilities.
    """
    count = len(rows.scores) // beams
    prompts = [_Prompt(beams) for _ in range(count)]
    running = np.tile([0.0, *[_NEVER] * (beams - 1)], (count, 1))  # log P of each beam: (prompts, beams)
    texts = np.empty((count * beams, 0), np.int64)
    wide = max(2, 1 + len(eos)) * beams  # candidates, of which at least `beams` do not end
    for step in range(1, max_new_tokens + 1):
        total = log_softmax(to_numpy(rows.scores))
        for processor in processors:
            total = processor(texts, total)
        total = total.reshape(count, beams, -1) + running[:, :, None]  # (prompts, beams, vocabulary)
        beam, token, log_prob = _best(total, wide)
        ends = np.isin(token, eos) | (step == max_new_tokens)
        for n, prompt in enumerate(prompts):
            if not prompt.is_done(running[n, 0] / max(1, step - 1) ** length_penalty):
                for place in np.flatnonzero(ends[n, :beams]):
                    ids = [*texts[n * beams + beam[n, place]].tolist(), int(token[n, place])]
                    prompt.add(float(log_prob[n, place]) / step**length_penalty, ids)
        if step == max_new_tokens:
            break
        going = np.argsort(ends, axis=1, kind="stable")[:, :beams]  # the best that do not end
        beam, token = np.take_along_axis(beam, going, 1), np.take_along_axis(token, going, 1)
        running = np.take_along_axis(log_prob, going, 1)
        if all(one.is_done(best / step**length_penalty) for one, best in zip(prompts, running[:, 0], strict=True)):
            break
        order = (np.arange(count)[:, None] * beams + beam).reshape(-1)
        texts = np.concatenate([texts[order], token.reshape(-1, 1)], 1)
        if (order != np.arange(len(order))).any():
            rows.select(order)
        rows.step(converter(rows.scores)(token.reshape(-1)))
    found = [one for prompt in prompts for one in prompt.finished[:sequences]]
    longest = max(len(ids) for _, ids in found)
    padded = [[*ids, *[eos[0]] * (longest - len(ids))] for _, ids in found]
    return SearchResult(padded, [score for score, _ in found])


def _best(total: Floats, wide: int) -> tuple[Integers, Integers, Floats]:
    """Return beam, token and score of the `wide` best candidates of each prompt, the best first: (prompts, wide)."""
    flat = total.reshape(len(total), -1)
    some = np.argpartition(-flat, wide - 1, axis=1)[:, :wide]
    scores = np.take_along_axis(flat, some, 1)
    order = np.lexsort((some, -scores), axis=1)  # of equal ones the first
    some, scores = np.take_along_axis(some, order, 1), np.take_along_axis(scores, order, 1)
    return some // total.shape[2], some % total.shape[2], scores
