"""Fit: a hard budget as a LogitsProcessor.

Whatever the model and the search (greedy, sampling, beam), a row never grows past its maximum, never ends before its
minimum, never enters a state from which the budget cannot be met, and never ends inside a UTF-8 character. Near the
end of the room it also steers towards a sentence end. It reads its state off the ids, so beams may be reordered freely.
It knows rooms and prices; whether a text is *really* finished is for `ending.py`, which sees the text.

Counting is done on the CPU, on a few integers a row; only the masks are as wide as the vocabulary.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import LogitsProcessor

from ..meter import Meter
from ..sentences import finished
from .prices import BANNED, State, prices_of
from .review import Notes
from .standing import Standing

UNLIMITED = BANNED - 1

# Per unit: the stretch before the maximum in which ends are steered, and the shortest sentence worth starting.
_LANDING = {"tokens": (16, 6), "words": (12, 4)}
_LANDING_OTHER = (64, 20)
_PULL = 4.0  # nats in favour of a sentence end at the very end of the room
_PUSH = 12.0  # nats against one behind which only a stump would fit
_WANTED = math.log(0.1)  # an end is the model's own wish if it is this likely, beside the favourite
_GOES_ON = math.log(0.5)  # and so is a piece that goes on with the last word of the room


class Fit(LogitsProcessor):  # type: ignore[misc]  # transformers is untyped
    """Keeps every row of a batch inside `low[row] <= length <= high[row]`, counted by `meter`.

    `start` is the column of the first written token (the prompt's width; 1 after a decoder's start token); `eos` the
    ids that end a text; `limit[row]` the tokens that a row may write at most. With `finish` the last unit of the room
    is kept for a full stop. With `observe` (rows stay in place: no beams) it notes what it did to the model's choices.
    """

    def __init__(
        self,
        meter: Meter,
        low: Tensor,
        high: Tensor,
        *,
        start: int,
        eos: list[int],
        limit: Tensor | None = None,
        finish: bool = True,
        observe: bool = False,
    ) -> None:
        self.meter, self.start, self.finish = meter, start, finish
        self.low, self.high = low.cpu(), high.cpu().clamp(max=UNLIMITED)
        self.limit = torch.full_like(self.low, UNLIMITED) if limit is None else limit.cpu()
        self.eos = torch.tensor(eos)
        self.prices = prices_of(meter, finish)
        self.landing, self.shortest = _LANDING.get(meter.unit.name, _LANDING_OTHER)
        self._wide: tuple[Tensor, ...] | None = None
        self._standing: Standing | None = None
        self._observed: list[tuple[Tensor, Tensor, Tensor]] | None = [] if observe else None
        self._before: tuple[Tensor, ...] | None = None  # scores, what was kept of them, the best of each

    # ---- one step

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if input_ids.shape[1] < self.start:  # a language token is forced here; it is no text
            return scores
        prices, closes, closers, eos = self._tables_for(scores)
        ids = input_ids[:, self.start :].cpu()
        best = scores.amax(1, keepdim=True)  # (rows, 1)
        self._observe(input_ids[:, -1:])
        low, high, left = (self._each(limits, len(ids)) for limits in (self.low, self.high, self.limit - ids.shape[1]))
        at = self._read(ids)
        state, room = self.prices.state(at), high - at.used
        may_end = (at.settled >= low) & at.begun & (at.character == 0)
        closed = self._closed(ids)
        over = (closed & may_end & self._enough(ids, room, high)) | (left < 1)
        room = room.masked_fill(over, -1)  # nothing more is affordable

        numbers = torch.stack([room, state, may_end.long(), closed.long()]).to(scores.device)  # one transfer
        rooms, ends = numbers[0].unsqueeze(1), scores[:, eos]
        uniform = int(state.min()) == int(state.max())
        tight = int(room.min()) < self.prices.dearest
        price = prices[int(state[0])] if uniform else prices[numbers[1]]  # (vocabulary,) or (rows, vocabulary)
        kept = scores.masked_fill(price > rooms.int() if tight else price >= BANNED, -torch.inf)
        if (late := self.prices.late(at, left, low)) is not None:
            kept[:, : late.shape[1]].masked_fill_(late.to(scores.device), -torch.inf)
        last_word = (room == 0) & (state == State.OPEN)
        if self.meter.opens is not None and bool(last_word.any()):  # here letters cost nothing: only what is wanted
            unwanted = (scores < best + _GOES_ON) & ~closes
            kept = kept.masked_fill(unwanted & last_word.to(scores.device).unsqueeze(1), -torch.inf)
        if (pull := self._pull(at.used, room, low)) is not None:
            kept[:, closers] += pull.to(scores.device)
        allowed = numbers[2].bool().unsqueeze(1)
        if self.finish:
            allowed = allowed & (numbers[3].bool().unsqueeze(1) | (ends >= best + _WANTED))
        kept[:, eos] = ends.masked_fill(~(allowed | (rooms < 0)), -torch.inf)
        top = kept.amax(1)  # a pass over the vocabulary is what a step costs: this one serves twice
        stuck = top == -torch.inf  # nothing fits and no end is allowed: end here, and the verdict will say so
        kept[:, eos[0]] = kept[:, eos[0]].masked_fill(stuck, 0.0)
        if self._observed is not None:
            self._before = (scores, kept, best.squeeze(1), top.masked_fill(stuck, 0.0))
        return kept

    def _tables_for(self, scores: Tensor) -> tuple[Tensor, ...]:
        """Prices, closing tokens, plain closers and ends on the model's device, as wide as its logits."""
        if self._wide is None:
            extra = scores.shape[1] - self.prices.rows.shape[1]  # embeddings padded beyond the tokenizer's size
            rows = pad(self.prices.rows, (0, extra), value=BANNED)
            tables = (rows, pad(self.prices.closes, (0, extra)), self.prices.closers, self.eos)
            self._wide = tuple(table.to(scores.device) for table in tables)
        return self._wide

    @staticmethod
    def _each(limits: Tensor, rows: int) -> Tensor:
        """One number a row: a text has as many rows as it has beams or candidates."""
        return limits if len(limits) == rows else limits.repeat_interleave(rows // len(limits))

    def _read(self, ids: Tensor) -> Standing:
        """Where the rows stand. Kept from step to step where rows stay in place."""
        before = self._standing
        if self._observed is not None and before is not None and before.width == ids.shape[1] - 1:
            before.advance(ids)
            return before
        self._standing = Standing(self.meter, ids)
        return self._standing

    def _closed(self, ids: Tensor) -> Tensor:
        """Rows whose last token is a full stop: (rows,)."""
        if not (self.finish and ids.shape[1]):
            return torch.zeros(len(ids), dtype=torch.bool)
        return self.prices.closes[ids[:, -1]]

    def _enough(self, ids: Tensor, room: Tensor, high: Tensor) -> Tensor:
        """Rows with no room for another sentence, or no need of one (no maximum), whose text is finished: (rows,)."""
        enough = (room < self.shortest) | (high == UNLIMITED)
        for row in (enough & self._closed(ids)).nonzero().flatten().tolist():  # once a sentence
            enough[row] = finished(self.meter.spell(ids[row].tolist()).decode("utf-8", "ignore"))
        return enough

    def _pull(self, used: Tensor, room: Tensor, low: Tensor) -> Tensor | None:
        """For a full stop where the text may end and the room runs out; against one that leaves room for a stump only.

        (rows, plain closers), in nats; None where there is nothing to say.
        """
        if not self.finish or int(room.min()) > self.landing + self.shortest:
            return None
        cost = self.prices.rows[State.OPEN, self.prices.closers].long()  # (closers,)
        after = room[:, None] - cost
        good = used[:, None] + cost >= low[:, None]
        stump = ~good & (after > 0) & (after < self.shortest)
        return _PULL * (1 - after / self.landing).clamp(0, 1) * good - _PUSH * stump

    # ---- what was done to the model's choices

    def _observe(self, last: Tensor) -> None:
        if self._observed is not None and self._before is not None:
            self._observed.append(self._opinion(last))

    def _opinion(self, taken: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of the tokens (rows, 1) taken after the last step: freedom, liking of an end instead, score; each (rows,).

        Freedom is 1 where the model's own order stood, small where its favourites were banned or a full stop pulled.
        """
        assert self._before is not None
        assert self._wide is not None
        raw, kept, best, top = self._before
        own, made = (table.gather(1, taken).squeeze(1) for table in (raw, kept))
        freedom = ((own - best) - (made - top)).clamp(max=0).exp()
        return freedom, (raw[:, self._wide[3]].amax(1) - best).exp(), own - best

    def freedom(self) -> list[float]:
        """Of row 0 so far: a stream looks at it while the text is written."""
        return [float(step[0][0]) for step in self._observed or []]

    def notes(self, last: Tensor) -> Notes | None:
        """What was observed, given the tokens (rows,) that were taken after the last step."""
        if self._observed is None or self._before is None:
            return None
        steps = [*self._observed, self._opinion(last.unsqueeze(1))]
        return Notes(*(torch.stack(column, 1) for column in zip(*steps, strict=True)))
