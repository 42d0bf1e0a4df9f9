"""Repair: if a text has no complete ending within its budget, remove its last tokens and sample them again.

The mask can force a full stop in the middle of a clause to meet an exact length. But most beginnings have a probable
continuation that ends in time, and sampling a few short continuations takes less time than sampling as many whole
texts. A quarter of them are complete, so they are sampled two at a time, until one is. If none is complete, the text is
a list, a table or code that cannot end there: up to 80 tokens are sampled again, and then the last of the new text; of
code at least 48, since another end of a line does not complete it.
A text that has only a maximum is repaired if it has no sentence end at all. Mostly it is code.
About a fifth of the continuations of other texts are complete, so they are sampled one by one.
Drafts are decoded in `decoding.py`; the best ending is chosen in `endings.py`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..length.fences import in_code
from .endings import Draft, Ending
from .options import SAMPLING, DecodingOptions
from .requests import BATCH_TOKENS, Listener, Request

# Tokens that are removed, and samples of each text; in this order. From `RESTART` tokens on they are removed from the
# first draft, before from the best draft since. No number occurs twice: it also chooses the seed.
ROUNDS = (
    *((12, 2), (13, 2), (20, 2), (21, 2)),
    *((48, 2), (14, 2), (22, 2)),
    *((64, 2), (15, 2), (23, 2)),
    *((80, 2), (16, 2), (24, 2)),
)
RESTART = 48
_STEERED_ROUNDS = 4  # a text that is still incomplete is a list or a table: no sentence end is in reach
_MORE_OF_CODE = 45  # tokens that later rounds remove in addition, if the text stops in code; it stays steered
# A text that has only a maximum may stop at any sentence. If it is not complete, it has no sentence end at all.
LIMIT_ROUNDS = ((48, 1), (56, 1), (64, 1))  # a fourth sample completes few of the texts that are left
MORE_TOKENS = 24  # that are generated at most, beyond as many as were removed
DEEPEST = 80  # the most tokens of a first draft that all rounds together can remove
SEED_STEP = 7_919  # between the seeds of a text's candidates

Drafts = dict[int, list[Draft]]  # by the place of the request
Decode = Callable[[list[Request], int, DecodingOptions], Drafts]
Batches = Callable[[list[Request], int], Iterator[list[Request]]]


@dataclass(frozen=True)
class _Closing:
    """A listener that can end the repair of a text, and receives nothing: it has received the first draft."""

    first: Listener
    shown: int = 0

    @property
    def closed(self) -> bool:
        return self.first.closed

    def put(self, ids: list[int], agreement: list[float]) -> None:
        pass


class Step(NamedTuple):
    """What a round does for a text that is not complete."""

    request: Request | None  # what is decoded; None: this round cannot complete the text, a later one may
    samples: int
    restarts: bool  # later rounds continue drafts from this round on


def repair(
    requests: list[Request],
    drafts: Drafts,
    options: DecodingOptions,
    *,
    best: Callable[[Request, list[Draft]], tuple[Ending, Draft]],
    decode: Decode,
    batches: Batches,
    pieces: Sequence[bytes],
    batch_size: int,
) -> None:
    """Add drafts with other endings for requests without a complete text; the rounds are `ROUNDS`.

    `best` returns the best ending so far, `decode` several drafts of each request. The characters that a stream has
    yielded are kept.
    """
    sampled = replace(options, sampling=SAMPLING | (options.sampling or {}))
    # Without sampling the first draft depends on no seed, so its repair must not either.
    requests = requests if options.sampling else [replace(request, seed=0) for request in requests]
    before = {request.place: 0 for request in requests}  # the drafts before the last restart
    for number in range(len(ROUNDS)):
        incomplete: list[Request] = []
        again: dict[int, list[Request]] = {}  # by the number of samples
        for request in requests:
            found = drafts[request.place]
            step = next_step(request, number, found[0], *best(request, found[before[request.place] :]), pieces)
            if step is None:
                continue
            incomplete.append(request)
            if step.restarts:
                before[request.place] = len(found)
            if step.request is not None:
                again.setdefault(step.samples, []).append(step.request)
        requests = incomplete
        for samples, some in again.items():
            each = max(1, min(samples, batch_size, BATCH_TOKENS // max(one.start for one in some)))
            for batch in batches(some, each):
                for first in range(0, samples, each):
                    seeded = [replace(one, seed=one.seed + SEED_STEP * first) for one in batch]
                    for place, more in decode(seeded, min(each, samples - first), sampled).items():
                        drafts[place] += more


def next_step(
    request: Request, number: int, original: Draft, ending: Ending, draft: Draft, pieces: Sequence[bytes]
) -> Step | None:
    """Return what the round with this number does for a request; None if no more rounds are needed or left.

    `original`: the first draft. `ending` and `draft`: the best one since the last restart.
    """
    rounds = LIMIT_ROUNDS if request.budget.is_limit and not in_code(original.text) else ROUNDS
    if request.closed or not request.repairs or number >= len(rounds) or (ending.fits and ending.complete):
        return None
    if len(draft.ids) >= request.limit and ending.length < request.budget.low:
        return None  # the limit of tokens excludes the minimum, for other endings too
    tail, samples = rounds[number]
    restarts = rounds is ROUNDS and tail >= RESTART
    if restarts:
        draft = original
    elif rounds is ROUNDS and in_code(draft.text):
        if number < _STEERED_ROUNDS:
            return Step(None, samples, False)
        draft, tail = original, tail + _MORE_OF_CODE
    kept = without_tail(draft, tail, pieces, request.shown, len(original.ids) - DEEPEST)
    listener = None if request.listener is None else _Closing(request.listener)
    limit = min(request.limit, len(kept.ids) + tail + MORE_TOKENS)  # one very long row would delay the batch
    again = replace(request, kept=kept, listener=listener, limit=limit, seed=request.seed + tail)
    steered = request.steered and (number < _STEERED_ROUNDS or in_code(original.text))
    return Step(replace(again, steered=steered), samples, restarts)


def without_tail(draft: Draft, tail: int, pieces: Sequence[bytes], shown: int = 0, least: int = 0) -> Draft:
    """Return `draft` without its last `tail` tokens, or a few less so that a word begins there.

    `shown` characters and the `least` tokens stay.
    """
    cut = max(0, len(draft.ids) - tail, least, bisect_left(draft.reach, shown) + 1 if shown else 0)
    words = (n for n in range(cut, min(cut + 6, len(draft.ids))) if pieces[draft.ids[n]][:1].isspace())
    cut = next(words, cut) if cut else 0
    return replace(draft, reach=draft.reach[:cut], agreement=draft.agreement[:cut], ids=draft.ids[:cut])
