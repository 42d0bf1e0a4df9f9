"""Beam search over the rows of any engine.

It finds what transformers' beam search finds with `early_stopping=False`: a prompt is finished when no unfinished text
can still exceed the worst of its finished ones. Scores stay in the engine's library and on its device; of each step,
only the few best tokens of each row are copied to numpy. Within a budget their log-probabilities are noted on the way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, converter, log_softmax, to_numpy
from .rows import Follower, Processor, Rows, SearchResult, TokenLogProbs

_BLOCK = 32  # values of a block in which the largest are searched
_NEVER = -1e9  # the score of a beam that duplicates another one

Integers = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass
class _Prompt:
    """The finished texts of a prompt, the best first."""

    beams: int
    finished: list[tuple[float, list[int], Floats]] = field(default_factory=list)  # score, ids, values of `_Unedited`

    def add(self, score: float, ids: list[int], values: Floats) -> None:
        self.finished = sorted([*self.finished, (score, ids, values)], key=lambda one: -one[0])[: self.beams]

    def is_done(self, best_possible: float) -> bool:
        return len(self.finished) == self.beams and best_possible <= self.finished[-1][0]


class _Unedited:
    """Log-probabilities of a step before processors edit them. A text that was searched need not be scored again."""

    def __init__(self, scores: Array, total: Array, eos: Sequence[int]) -> None:
        rows = converter(total)(np.arange(len(total)))
        top = total.argmax(1)
        self._scores, self._best = scores, to_numpy(total[rows, top])
        self._shift = to_numpy(scores[rows, top]) - self._best
        self._end = to_numpy(total[:, list(eos)]).max(1)

    def of(self, rows: Integers, tokens: Integers) -> Floats:
        """Return the values of `TokenLogProbs` of these tokens of these rows: (n,) -> (n, 3)."""
        convert = converter(self._scores)
        token = to_numpy(self._scores[convert(rows), convert(tokens)]) - self._shift[rows]
        return np.stack([token, self._best[rows], self._end[rows]], 1)


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

    Scores are log P / tokens^length_penalty. `processors` edit log-probabilities; then those of the model are noted as
    well. Rows of finished prompts are dropped.
    """
    count = len(rows.scores) // beams
    prompts = [_Prompt(beams) for _ in range(count)]
    live = np.arange(count)  # prompts that are not finished
    running = np.tile([0.0, *[_NEVER] * (beams - 1)], (count, 1))  # log P of each beam: (live prompts, beams)
    texts = np.empty((count * beams, 0), np.int64)  # of all prompts
    noted = np.empty((count * beams, 0, 3), np.float32)  # the values of `_Unedited` of each token
    wide = max(2, 1 + len(eos)) * beams  # candidates, of which at least `beams` do not end
    followers: list[Any] = [one for one in processors if isinstance(one, Follower)]
    for follower in followers:
        follower.select(np.arange(count).repeat(beams))
    for step in range(1, max_new_tokens + 1):
        scores = rows.scores
        total = log_softmax(scores)
        unedited = _Unedited(scores, total, eos) if processors else None
        mine = (live[:, None] * beams + np.arange(beams)).reshape(-1)  # rows of all prompts that are still searched
        for processor in processors:
            total = _processed(processor, texts, total, mine)
        beam, token, log_prob = _best(total, running, wide)
        row = np.arange(len(live))[:, None] * beams + beam
        values = np.zeros((*token.shape, 3), np.float32)
        if unedited is not None:
            values = unedited.of(row.reshape(-1), token.reshape(-1)).reshape(values.shape)
        ends = np.isin(token, eos) | (step == max_new_tokens)
        for n, prompt in enumerate(live):
            for place in np.flatnonzero(ends[n, :beams]):
                before = prompt * beams + beam[n, place]
                ids = [*texts[before].tolist(), int(token[n, place])]
                own = np.concatenate([noted[before], values[n, place][None]])
                prompts[prompt].add(float(log_prob[n, place]) / step**length_penalty, ids, own)
        if step == max_new_tokens:
            break
        going = np.argsort(ends, axis=1, kind="stable")[:, :beams]  # the best that do not end
        row, token = np.take_along_axis(row, going, 1), np.take_along_axis(token, going, 1)
        running = np.take_along_axis(log_prob, going, 1)
        values = np.take_along_axis(values, going[:, :, None], 1)
        best = running[:, 0] / step**length_penalty
        left = [n for n, prompt in enumerate(live) if not prompts[prompt].is_done(best[n])]
        if not left:
            break
        order, token, values = row[left].reshape(-1), token[left].reshape(-1), values[left].reshape(-1, 3)
        live, running = live[left], running[left]
        goes_on = (live[:, None] * beams + np.arange(beams)).reshape(-1)
        texts = _extended(texts, goes_on, mine[order], token, eos[0])
        noted = _extended(noted, goes_on, mine[order], values, 0)
        if len(order) < len(mine) or (order != np.arange(len(order))).any():
            rows.select(order)
        for follower in followers:
            follower.select(order)
            follower.update(token)
        rows.step(converter(scores)(token))  # not of `rows.scores`, which would copy the selected rows
    return _result(prompts, sequences, eos[0], bool(processors))


def _extended(known: NDArray[Any], rows: Integers, origins: Integers, last: NDArray[Any], fill: int) -> NDArray[Any]:
    """Return `known` with one more column: `rows` go on from these `origins` with `last`, the others with `fill`."""
    found = np.concatenate([known, np.full_like(known, fill, shape=(len(known), 1, *known.shape[2:]))], 1)
    found[rows] = np.concatenate([known[origins], last[:, None]], 1)
    return found


def _result(prompts: list[_Prompt], sequences: int, end: int, noted: bool) -> SearchResult:
    found = [one for prompt in prompts for one in prompt.finished[:sequences]]
    longest = max(len(ids) for _, ids, _ in found)
    padded = [[*ids, *[end] * (longest - len(ids))] for _, ids, _ in found]
    values = np.zeros((3, len(found), longest), np.float32)
    for n, (_, ids, own) in enumerate(found):
        values[:, n, : len(ids)] = own.T
    return SearchResult(padded, [score for score, _, _ in found], TokenLogProbs(*values) if noted else None)


def _processed(processor: Any, texts: Integers, total: Array, rows: Integers) -> Array:
    """Return the edited log-probabilities of these rows; a processor that does not follow them receives all rows."""
    if isinstance(processor, Follower):
        return processor.apply(total)
    if len(rows) == len(texts):
        return processor(texts, total)
    convert = converter(total)
    whole = total[convert(np.zeros(len(texts), np.int64))]  # what the other rows contain does not matter
    whole[convert(rows)] = total
    return processor(texts, whole)[convert(rows)]


def _best(total: Array, running: NDArray[np.float64], wide: int) -> tuple[Integers, Integers, NDArray[np.float64]]:
    """Return beam, token and log P of the `wide` best continuations of each prompt, the best first: (prompts, wide).

    `total` (rows, vocabulary): of each token; `running` (prompts, beams): of each beam.
    """
    count, beams = running.shape
    found, tokens = _largest(total, min(wide, total.shape[1]))  # (rows, wide): those of a prompt are among them
    scores = (found + running.reshape(-1, 1)).reshape(count, -1)
    tokens = tokens.reshape(count, -1)
    beam = np.arange(beams).repeat(tokens.shape[1] // beams)[None].repeat(count, 0)
    # Only the best are sorted: a sort of all takes six times as long.
    some = np.argpartition(-scores, min(wide, scores.shape[1]) - 1, axis=1)[:, :wide]
    keys = (np.take_along_axis(one, some, 1) for one in (tokens, beam, -scores))
    order = np.take_along_axis(some, np.lexsort(tuple(keys), axis=1), 1)  # of equal ones the first, except at the cut
    beam, tokens = np.take_along_axis(beam, order, 1), np.take_along_axis(tokens, order, 1)
    return beam, tokens, np.take_along_axis(scores, order, 1)


def _largest(values: Array, number: int) -> tuple[Floats, Integers]:
    """Return the largest values of each row and their places, in any order: (rows, number) twice."""
    if isinstance(values, np.ndarray):
        places = _places_of_largest(values, number)
        return np.take_along_axis(values, places, 1), places
    from .torch_largest import largest  # here: engines without torch use this file

    best, where = largest(values, number)
    return to_numpy(best), to_numpy(where)


def _places_of_largest(values: Floats, number: int) -> Integers:
    """Return the places of the largest values of each row, in any order: (rows, number).

    The columns are divided into blocks, and only blocks with the largest maxima are searched: sorting parts of a whole
    vocabulary is slow.
    """
    size = values.shape[1] // _BLOCK
    if size <= number:
        return np.argpartition(-values, number - 1, axis=1)[:, :number]
    maxima = values[:, :size].copy()  # block n has the columns n, n + size, n + 2 · size, ...
    for first in range(size, _BLOCK * size, size):
        np.maximum(maxima, values[:, first : first + size], out=maxima)
    blocks = np.argpartition(-maxima, number - 1, axis=1)[:, :number]
    places = (blocks[:, :, None] + size * np.arange(_BLOCK)).reshape(len(values), -1)
    rest = np.arange(_BLOCK * size, values.shape[1])[None].repeat(len(values), 0)
    places = np.concatenate([places, rest], 1)
    some = np.argpartition(-np.take_along_axis(values, places, 1), number - 1, axis=1)[:, :number]
    return np.take_along_axis(places, some, 1)
