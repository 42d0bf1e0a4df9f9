"""LengthBudgetLogitsProcessor: a hard budget as a LogitsProcessor.

Whatever the model and the search (greedy, sampling, beam), a row never grows past its maximum, never ends before its
minimum, never enters a state from which the budget cannot be met, and never ends inside a UTF-8 character. Near the
end of the room it also edits_hidden towards a sentence end. It reads its state off the ids, so beams may be reordered freely.
It knows rooms and prices; whether a text is *really* finished is for `ending.py`, which sees the text.

Counting is done on the CPU, on a few integers a row; only the masks are as wide as the vocabulary. Most steps are
calm: every token fits into the room, and all rows share one mask.
"""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad
from transformers import LogitsProcessor

from ..length.meter import Meter
from ..length.sentences import finished
from ..scoring.completeness import TokenScores, freedom
from .length_state import Booleans, Integers, LengthState
from .token_costs import BANNED, State, TokenCosts, token_costs_of

UNLIMITED = BANNED - 1

# Per unit: the stretch before the maximum in which ends are steered, and the shortest sentence worth starting.
_LANDING = {"tokens": (16, 6), "words": (12, 4)}
_LANDING_OTHER = (64, 20)
_PULL = 4.0  # nats in favour of a sentence end at the very end of the room
_PUSH = 12.0  # nats against one behind which only a stump would fit
_LAST_TOKENS = 4  # with as many left, a character must not stay unfinished
_WANTED = math.log(0.1)  # an end is the model's own wish if it is this likely, beside the favourite
_GOES_ON = math.log(0.5)  # and so is a piece that goes on with the last word of the room


class LengthBudgetLogitsProcessor(LogitsProcessor):  # type: ignore[misc]  # transformers is untyped
    """Keeps every row of a batch inside `low[row] <= length <= high[row]`, counted by `meter`.

    `start` is the column of the first written token (the prompt's width; 1 after a decoder's start token), of each row
    `skip[row]` columns later, if they do not begin in one; `eos` the ids that end a text; `limit[row]` the tokens that
    a row may write at most. With `finish` the last unit of the room is kept for a full stop. With `observe` (rows stay
    in place: no beams) it notes what it did to the model's choices.
    """

    def __init__(
        self,
        meter: Meter,
        low: Tensor,
        high: Tensor,
        *,
        start: int,
        skip: Tensor | None = None,
        eos: list[int],
        limit: Tensor | None = None,
        finish: bool = True,
        observe: bool = False,
    ) -> None:
        self.meter, self.start, self.finish = meter, start, finish
        self.skip = np.zeros_like(low.cpu().numpy()) if skip is None else skip.cpu().numpy()
        self.low, self.high = low.cpu().numpy(), high.cpu().clamp(max=UNLIMITED).numpy()
        self.limit = np.full_like(self.low, UNLIMITED) if limit is None else limit.cpu().numpy()
        self.eos, self.end = torch.tensor(eos), eos[0]
        self.prices = token_costs_of(meter, finish)
        self.landing, self.shortest = _LANDING.get(meter.unit.name, _LANDING_OTHER)
        self._wide: _Wide | None = None
        self._standing: LengthState | None = None
        self._observed: list[tuple[Tensor, ...]] | None = [] if observe else None
        self._before: tuple[Tensor, ...] | None = None  # scores, what was kept of them, the best of each, the ends
        self._freedom: list[float] = []

    # ---- one step

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if input_ids.shape[1] < self.start:  # a language token is forced here; it is no text
            return scores
        wide = self._wide = self._wide or _Wide(self.prices, self.eos, scores)
        self._observe(input_ids[:, -1:])
        best, ends = scores.amax(1), scores.index_select(1, wide.eos)  # (rows,), (rows, ends)
        at = self._read(input_ids)
        low, high, left = (self._each(limits, len(scores)) for limits in (self.low, self.high, self.limit))
        left = left - at.tokens
        state, room = self.prices.state(at), high - at.used
        may_end = (at.settled >= low) & at.begun & (at.character == 0)
        closed = self._closed(at)
        over = self._enough(at, room, high, closed & may_end) | (left < 1)
        room = np.where(over, -1, room)  # nothing more is affordable

        kept = torch.minimum(scores, wide.caps(state, room))  # one pass
        self._ban_late(kept, at, left, low, over)
        last_word = (room == 0) & (state == State.OPEN)
        if self.meter.opens is not None and last_word.any():  # here letters cost nothing: only what is wanted
            self._ban_unwanted(kept, scores, best, last_word.nonzero()[0])
        if (pull := self._pull(at.used, room, low)) is not None:
            kept.index_add_(1, wide.closers, _sent(pull, scores).to(kept.dtype))
        sure = (may_end & closed if self.finish else may_end) | (room < 0)
        if (sure | may_end).any():
            bar = np.where(sure, -np.inf, np.where(may_end, _WANTED, np.inf)).astype(np.float32)
            wanted = ends >= (best + _sent(bar, scores)).unsqueeze(1)
            kept.index_copy_(1, wide.eos, torch.where(wanted, ends, -torch.inf))
        top = kept.amax(1)
        # Nothing fits and no end is allowed: end here, and the verdict will say so.
        kept.select(1, self.end).masked_fill_(top == -torch.inf, 0.0)
        if self._observed is not None:
            self._before = (scores, kept, best, top, ends)
        return kept

    @staticmethod
    def _each(limits: Integers, rows: int) -> Integers:
        """One number a row: a text has as many rows as it has beams or candidates."""
        return limits if len(limits) == rows else limits.repeat(rows // len(limits))

    def _read(self, input_ids: Tensor) -> LengthState:
        """Where the rows stand. Kept from step to step where rows stay in place."""
        before, width = self._standing, input_ids.shape[1] - self.start
        if self._observed is not None and before is not None and before.width == width - 1:
            before.advance(input_ids[:, -1].cpu())
            return before
        skip = self._each(self.skip, len(input_ids))
        self._standing = LengthState(self.meter, input_ids[:, self.start :].cpu(), skip)
        return self._standing

    def _closed(self, at: LengthState) -> Booleans:
        """Rows whose last token is a full stop: (rows,)."""
        if not (self.finish and at.width):
            return np.zeros_like(at.begun)
        return self.prices.closing[at.columns[-1]]

    def _enough(self, at: LengthState, room: Integers, high: Integers, closed: Booleans) -> Booleans:
        """`closed` rows with no room for another sentence, or no need of one (no maximum), and finished: (rows,)."""
        enough = closed & ((room < self.shortest) | (high == UNLIMITED))
        for row in enough.nonzero()[0].tolist():  # once a sentence
            enough[row] = finished(at.written(row).decode("utf-8", "ignore"))
        return enough

    def _ban_late(self, kept: Tensor, at: LengthState, left: Integers, low: Integers, over: Booleans) -> None:
        """Tokens that leave too few behind them to end a character or to reach the minimum."""
        hurry = self.prices.hurry(at, left, low)
        late = (hurry | (left <= _LAST_TOKENS)) & ~over
        if late.any():
            rows = late.nonzero()[0]
            never = self.prices.late(at, left, hurry, rows)
            _ban(kept, rows, pad(never, (0, kept.shape[1] - never.shape[1])))

    def _ban_unwanted(self, kept: Tensor, scores: Tensor, best: Tensor, rows: Integers) -> None:
        """Tokens other than full stops that are far from being the model's favourite."""
        assert self._wide is not None
        index = _sent(rows, scores)
        _ban(kept, rows, (scores[index] < (best[index] + _GOES_ON).unsqueeze(1)) & ~self._wide.closes)

    def _pull(self, used: Integers, room: Integers, low: Integers) -> NDArray[np.float32] | None:
        """For a full stop where the text may end and the room runs out; against one that leaves room for a stump only.

        (rows, plain closers), in nats; None where there is nothing to say.
        """
        if not self.finish or room.min() > self.landing + self.shortest:
            return None
        cost = self.prices.closing_costs  # (closers,)
        after = room[:, None] - cost
        good = used[:, None] + cost >= low[:, None]
        stump = ~good & (after > 0) & (after < self.shortest)
        nearness = (1 - after.astype(np.float32) / np.float32(self.landing)).clip(0, 1)
        pull = (_PULL * nearness * good - _PUSH * stump).astype(np.float32)
        return pull if pull.any() else None

    # ---- what was done to the model's choices

    def _observe(self, taken: Tensor) -> None:
        """TokenScores the tokens (rows, 1) taken after the last step."""
        if self._observed is not None and self._before is not None:
            self._observed.append(self._opinion(taken))

    def _opinion(self, taken: Tensor) -> tuple[Tensor, ...]:
        """Of the token: the model's score and what was made of it; the best of each; the scores of the ends."""
        assert self._before is not None
        raw, kept, *rest = self._before
        return raw.gather(1, taken).squeeze(1), kept.gather(1, taken).squeeze(1), *rest

    def freedom(self) -> list[float]:
        """Of row 0 so far: a stream looks at it while the text is written."""
        for step in (self._observed or [])[len(self._freedom) :]:
            own, made, best, top = (column[0] for column in step[:4])
            self._freedom.append(float(freedom(own, made, best, top)))
        return self._freedom

    def notes(self, last: Tensor) -> TokenScores | None:
        """What was observed, given the tokens (rows,) that were taken after the last step."""
        if self._observed is None or self._before is None:
            return None
        steps = [*self._observed, self._opinion(last.unsqueeze(1))]
        own, made, best, top, ends = (torch.stack(column, 1) for column in zip(*steps, strict=True))
        return TokenScores(freedom(own, made, best, top), (ends.amax(-1) - best).exp(), own - best)


class _Wide:
    """What a step needs on the model's device, as wide as its logits."""

    def __init__(self, prices: TokenCosts, eos: Tensor, scores: Tensor) -> None:
        extra = scores.shape[1] - prices.rows.shape[1]  # embeddings padded beyond the tokenizer's size
        rows = pad(prices.rows, (0, extra), value=BANNED).index_fill(1, eos, BANNED)  # ends are allowed one by one
        self.prices = rows.to(scores.device)  # (states, vocabulary)
        self.dearest, self.dtype = prices.dearest, scores.dtype
        self.closes = pad(prices.closes, (0, extra)).to(scores.device)
        self.closers, self.eos = prices.closers.to(scores.device), eos.to(scores.device)
        self._caps: dict[tuple[int, int], Tensor] = {}

    def caps(self, state: Integers, room: Integers) -> Tensor:
        """Plus infinity for what a row may take, minus infinity for what it may not: (rows, vocabulary).

        (vocabulary,) where all rows may take the same, as in most steps: whatever is not banned in every room.
        """
        ample = room >= self.dearest
        state = np.where(
            ample & (state == State.OPEN), State.CLOSED, state
        )  # they differ in prices, not in what is banned
        keys = list(zip(state.tolist(), np.minimum(room, self.dearest).tolist(), strict=True))
        if len(set(keys)) == 1:
            return self._cap(keys[0])
        return torch.stack([self._cap(key) for key in keys])

    def _cap(self, key: tuple[int, int]) -> Tensor:
        if key not in self._caps:
            state, room = key
            self._caps[key] = torch.where(self.prices[state] > room, -torch.inf, torch.inf).to(self.dtype)
        return self._caps[key]


def _ban(kept: Tensor, rows: Integers, out: Tensor) -> None:
    """Minus infinity for what is `out` (some rows, vocabulary) of these `rows` of `kept`."""
    index = _sent(rows, kept)
    kept[index] = kept[index].masked_fill(out.to(kept.device), -torch.inf)


def _sent(numbers: NDArray[Any], where: Tensor) -> Tensor:
    return torch.from_numpy(numbers).to(where.device)
