"""Fit: a hard budget as a LogitsProcessor.

Whatever the model and the search (greedy, sampling, beam), a row never grows past its maximum, never ends before its
minimum, never enters a state from which the budget cannot be met, and never ends inside a UTF-8 character. Near the
end of the room it also steers towards a sentence end. It reads its state off the ids, so beams may be reordered freely.
It knows prices and rooms; whether a text is *really* finished is for `ending.py`, which sees the text.

Counting is done on the CPU, on a few integers a row; only the masks are as wide as the vocabulary.
"""

import math
from typing import Any

import regex
import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import LogitsProcessor

from ..meter import Meter
from ..utf8 import STATES
from .review import Notes
from .standing import Standing

UNLIMITED = 1 << 30
_BANNED = 1 << 29  # a price that no room can pay

# Tokens after which a text may stop: a full stop of some script, with quotes and brackets that close behind it.
_CLOSER = regex.compile(r"\s?[.!?…。！？｡۔؟।]['\"”’»›)\]）」』]*")
_PLAIN_CLOSER = regex.compile(r"[.!?。！？۔؟।]")
_UNPRINTABLE = regex.compile(r"(?![\t\n\r])\p{Cc}")

# Per unit: the stretch before the maximum in which ends are steered, and the shortest sentence worth starting.
_LANDING = {"tokens": (16, 6), "words": (12, 4)}
_LANDING_OTHER = (64, 20)
_PULL = 4.0  # nats in favour of a sentence end at the very end of the room
_PUSH = 12.0  # nats against one behind which only a stump would fit
_WANTED = 0.1  # a token is wanted if it is this likely, beside the model's favourite

# A row's state picks the row of prices that applies to its next token.
_CLOSED, _OPEN, _FRESH, _SPLIT = 0, 1, 2, 2  # _SPLIT + n: in UTF-8 state n, inside a character


class Fit(LogitsProcessor):  # type: ignore[misc]  # transformers is untyped
    """Keeps every row of a batch inside `low[row] <= length <= high[row]`, counted by `meter`.

    `start` is the column of the first written token (the prompt's width; 1 after a decoder's start token); `eos` the
    ids that end a text, `limit` the tokens that will be written at most. With `finish` the last unit of the room is
    kept for a full stop. With `observe` (rows stay in place: no beams) it notes what the model itself thought of each
    token taken.
    """

    def __init__(
        self,
        meter: Meter,
        low: Tensor,
        high: Tensor,
        *,
        start: int,
        eos: list[int],
        limit: int | None = None,
        finish: bool = True,
        observe: bool = False,
    ) -> None:
        self.meter, self.low, self.high, self.start, self.finish = meter, low.cpu(), high.cpu(), start, finish
        self.limit = limit
        self.eos = torch.tensor(eos)
        texts = [piece.decode("utf-8", "replace") for piece in meter.pieces]
        self.closes = torch.tensor([bool(_CLOSER.fullmatch(t)) for t in texts])
        self.plain_closers = torch.tensor([i for i, t in enumerate(texts) if _PLAIN_CLOSER.fullmatch(t)]).long()
        self.prices = self._price_rows(texts)  # (states, vocabulary)
        self.dearest = int(self.prices[self.prices < _BANNED].max())
        self.landing, self.shortest = _LANDING.get(meter.unit.name, _LANDING_OTHER)
        self._wide: tuple[Tensor, ...] | None = None
        self._standing: Standing | None = None
        self._observed: list[tuple[Tensor, Tensor, Tensor]] | None = [] if observe else None
        self._before: tuple[Tensor, Tensor] | None = None

    def _price_rows(self, texts: list[str]) -> Tensor:
        """What the next token takes from the room, by state: (states, vocabulary); int32.

        A token that cannot end the text also reserves what it takes to end it: a full stop, the missing bytes of a
        character, something to follow a space.
        """
        meter, unit, closer = self.meter, self.meter.unit.name, self.closes
        ends_word = closer | torch.tensor([bool(t) and (t[-1].isalnum() or t[-1] in "'’\ufffd") for t in texts])
        closed = ends_word if unit == "words" else closer if self.finish else meter.trail == 0  # words: a stop is free
        price = meter.prices + (~closed).long()
        inside = price - meter.joins.long() if meter.joins is not None else price
        # The first token may take the whole room, "Yes", but must be something, and no full stop.
        fresh = (meter.prices - meter.lead).masked_fill(meter.blank | closer, _BANNED)
        # The rest of a character is paid for already, and so is the full stop behind it.
        rest = inside - ((meter.prices == 0) & ~closed).long()
        rows = [price, inside, fresh, *[rest] * (len(STATES) - 1)]
        never = torch.tensor([not t or bool(_UNPRINTABLE.search(t)) for t in texts])
        missing = torch.tensor([state[0] for state in STATES])
        for n, state in enumerate([0, 0, 0, *range(1, len(STATES))]):
            after = meter.utf8[state]  # (vocabulary,)
            if unit in ("bytes", "tokens"):  # what a character still lacks has a price of its own
                rows[n] = rows[n] + missing[after]
            rows[n] = rows[n].masked_fill(never | (after < 0), _BANNED)
        return torch.stack(rows).int()

    # ---- one step

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        prices, closes, closers, eos = self._tables_for(scores)
        ids = input_ids[:, self.start :].cpu()
        best = scores.amax(1, keepdim=True)  # (rows, 1)
        self._observe(scores, best, input_ids[:, -1:])
        low, high = self._limits(len(ids))
        at = self._read(ids)
        state, room = self._state(at), high - at.used
        may_end = (at.settled >= low) & at.begun & (at.character == 0)
        closed = self.closes[ids[:, -1]] if self.finish and ids.shape[1] else torch.zeros_like(may_end)
        room = room.masked_fill(closed & may_end & (room < self.shortest), -1)  # finished, and no room for another
        tight, uniform = int(room.min()) < self.dearest, int(state.min()) == int(state.max())
        pull = self._pull(at.used, room, low)

        numbers = torch.stack([room, state, may_end.long(), closed.long()]).to(scores.device)  # one transfer
        price = prices[int(state[0])] if uniform else prices[numbers[1]]  # (vocabulary,) or (rows, vocabulary)
        if tight or not uniform:
            kept = scores.masked_fill(price > numbers[0].int().unsqueeze(1), -torch.inf)
        else:
            kept = scores.masked_fill(price >= _BANNED, -torch.inf)
        last_word = (room == 0) & (state == _OPEN)
        if self.meter.opens is not None and bool(last_word.any()):
            # Here letters cost nothing: only those go on that the model itself wants.
            unwanted = (scores < best + math.log(_WANTED)) & ~closes
            kept = kept.masked_fill(unwanted & last_word.to(scores.device).unsqueeze(1), -torch.inf)
        if (idle := self._idle(ids, at.used, low, state)) is not None:
            kept[:, : idle.shape[1]].masked_fill_(idle.to(scores.device), -torch.inf)
        if pull is not None:
            kept[:, closers] += pull.to(scores.device)
        ends = scores[:, eos]
        allowed = numbers[2].bool().unsqueeze(1)
        if self.finish:
            allowed = allowed & (numbers[3].bool().unsqueeze(1) | (ends >= best + math.log(_WANTED)))
        kept[:, eos] = ends.masked_fill(~(allowed | (numbers[0] < 0).unsqueeze(1)), -torch.inf)
        if tight:  # nothing fits and no end is allowed: end here, and the verdict will say so
            stuck = kept.amax(1) == -torch.inf
            kept[:, eos[0]] = kept[:, eos[0]].masked_fill(stuck, 0.0)
        return kept

    def _limits(self, rows: int) -> tuple[Tensor, Tensor]:
        """Least and most, each (rows,): a text has as many rows as it has beams or candidates."""
        if rows == len(self.low):
            return self.low, self.high
        return self.low.repeat_interleave(rows // len(self.low)), self.high.repeat_interleave(rows // len(self.low))

    def _tables_for(self, scores: Tensor) -> tuple[Tensor, ...]:
        """Prices, closing tokens, plain closers and ends on the model's device, as wide as its logits."""
        if self._wide is None:
            extra = scores.shape[1] - self.prices.shape[1]  # embeddings padded beyond the tokenizer's size
            prices = pad(self.prices, (0, extra), value=_BANNED)
            tables = (prices, pad(self.closes, (0, extra)), self.plain_closers, self.eos)
            self._wide = tuple(table.to(scores.device) for table in tables)
        return self._wide

    def _read(self, ids: Tensor) -> Standing:
        """Where the rows stand. Kept from step to step where rows stay in place."""
        before = self._standing
        if self._observed is not None and before is not None and before.width == ids.shape[1] - 1:
            before.advance(ids)
            return before
        self._standing = Standing(self.meter, ids)
        return self._standing

    @staticmethod
    def _state(at: Standing) -> Tensor:
        """Which row of prices applies: (rows,)."""
        state = torch.where(at.begun, at.open.long(), _FRESH)
        return torch.where(at.character > 0, _SPLIT + at.character, state)

    def _idle(self, ids: Tensor, used: Tensor, low: Tensor, state: Tensor) -> Tensor | None:
        """Tokens that start no word, in rows that need a new one with every token to reach their minimum in time.

        (rows, vocabulary); None where no row is in a hurry.
        """
        if self.meter.joins is None or self.limit is None:
            return None
        hurry = (low > used) & (self.limit - ids.shape[1] <= low - used + 1)  # one more token for a full stop
        if not bool(hurry.any()):
            return None
        gain = self.meter.prices - (state == _OPEN).long().unsqueeze(1) * self.meter.joins.long()
        return hurry.unsqueeze(1) & (gain < 1)

    def _pull(self, used: Tensor, room: Tensor, low: Tensor) -> Tensor | None:
        """For a full stop where the text may end and the room runs out; against one that leaves room for a stump only.

        (rows, plain closers), in nats; None where there is nothing to say.
        """
        if not self.finish or int(room.min()) > self.landing + self.shortest:
            return None
        cost = self.prices[_OPEN, self.plain_closers].long()  # (closers,)
        after = room[:, None] - cost
        good = used[:, None] + cost >= low[:, None]
        stump = ~good & (after > 0) & (after < self.shortest)
        return _PULL * (1 - after / self.landing).clamp(0, 1) * good - _PUSH * stump

    # ---- what the model thought

    def _observe(self, scores: Tensor, best: Tensor, last: Tensor) -> None:
        if self._observed is None:
            return
        if self._before is not None:
            self._observed.append(self._opinion(last))
        self._before = (scores, best)

    def _opinion(self, taken: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of the tokens (rows, 1) taken after the last step: liking, liking of an end instead, score; each (rows,)."""
        assert self._before is not None
        assert self._wide is not None
        scores, best = self._before
        relative = scores.gather(1, taken) - best
        end = scores[:, self._wide[3]].amax(1) - best.squeeze(1)
        return relative.squeeze(1).exp(), end.exp(), relative.squeeze(1)

    def notes(self, last: Tensor) -> Notes | None:
        """What was observed, given the tokens (rows,) that were taken after the last step."""
        if self._observed is None or self._before is None:
            return None
        steps = [*self._observed, self._opinion(last.unsqueeze(1))]
        return Notes(*(torch.stack(column, 1) for column in zip(*steps, strict=True)))
