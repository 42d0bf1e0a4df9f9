"""Fit: a hard budget as a LogitsProcessor.

Whatever the model and the search (greedy, sampling, beam), a row never grows past its maximum, never ends before its
minimum, never enters a state from which the budget cannot be met, and never ends inside a UTF-8 character. Near the
end of the room it also steers towards a sentence end. It reads its state off the ids, so beams may be reordered freely.
It knows prices and rooms; whether a text is *really* finished is for `ending.py`, which sees the text.
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
from .review import Notes, judge

UNLIMITED = 1 << 30
_BANNED = 1 << 29  # a price that no room can pay

# Tokens after which a text may stop: a full stop of some script, with quotes and brackets that close behind it.
_CLOSER = regex.compile(r"\s?[.!?…。！？｡۔؟।]['\"”’»›)\]）」』]*")
_UNPRINTABLE = regex.compile(r"(?![\t\n\r])\p{Cc}")
_PLAIN_CLOSER = regex.compile(r"[.!?。！？۔؟।]")

# Per unit: the stretch before the maximum in which ends are steered, and the shortest sentence worth starting.
_LANDING = {"tokens": (16, 6), "words": (12, 4)}
_LANDING_OTHER = (64, 20)
_PULL = 4.0  # nats in favour of a sentence end at the very end of the room
_WANTED = 0.1  # a token is wanted if it is this likely, beside the model's favourite
_PUSH = 12.0  # nats against one behind which only a stump would fit

# A row's state picks the row of prices that applies to its next token.
_CLOSED, _OPEN, _FRESH, _SPLIT = 0, 1, 2, 2  # _SPLIT + n: in UTF-8 state n, inside a character


class Fit(LogitsProcessor):  # type: ignore[misc]  # transformers is untyped
    """Keeps every row of a batch inside `low[row] <= length <= high[row]`, counted by `meter`.

    `start` is the column of the first written token (the prompt's width; 1 after a decoder's start token); `eos` the
    ids that end a text. With `finish` the last unit of the room is kept for a full stop. With `observe` (rows stay in
    place: no beams) it notes what the model itself thought of each token taken.
    """

    def __init__(
        self,
        meter: Meter,
        low: Tensor,
        high: Tensor,
        *,
        start: int,
        eos: list[int],
        finish: bool = True,
        observe: bool = False,
    ) -> None:
        device = low.device
        self.meter, self.low, self.high, self.start, self.finish = meter, low, high, start, finish
        self.eos = torch.tensor(eos, device=device)
        texts = [piece.decode("utf-8", "replace") for piece in meter.pieces]
        closer = torch.tensor([bool(_CLOSER.fullmatch(t)) for t in texts], device=device)
        self.plain_closers = torch.tensor(
            [i for i, t in enumerate(texts) if _PLAIN_CLOSER.fullmatch(t)], dtype=torch.long, device=device
        )
        self.closes = closer
        self._observed: list[tuple[Tensor, Tensor, Tensor]] | None = [] if observe else None
        self._before: Tensor | None = None
        self.prices = self._price_rows(texts, closer)  # (states, vocabulary)
        self.dearest = int(self.prices[self.prices < _BANNED].max())
        self.landing, self.shortest = _LANDING.get(meter.unit.name, _LANDING_OTHER)

    def _price_rows(self, texts: list[str], closer: Tensor) -> Tensor:
        """What the next token takes from the room, by state: (states, vocabulary); int32.

        A token that cannot end the text also reserves what it takes to end it: a full stop, the missing bytes of a
        character, something to follow a space.
        """
        meter, unit = self.meter, self.meter.unit.name
        ends_word = torch.tensor([bool(t) and (t[-1].isalnum() or t[-1] in "'’\ufffd") for t in texts])
        ends_word = ends_word.to(closer.device) | closer
        closed = ends_word if unit == "words" else closer if self.finish else meter.trail == 0  # words: a stop is free
        price = meter.prices + (~closed).long()
        inside = price - meter.joins.long() if meter.joins is not None else price
        never = torch.tensor([not t or bool(_UNPRINTABLE.search(t)) for t in texts], device=closer.device)
        # The first token may take the whole room, "Yes", but must be something, and no full stop.
        fresh = (meter.prices - meter.lead).masked_fill(meter.blank | closer, _BANNED)
        # The rest of a character is paid for already, and so is the full stop behind it.
        rest = inside - ((meter.prices == 0) & ~closed).long()
        rows = [price, inside, fresh, *[rest] * (len(STATES) - 1)]
        characters = [0, 0, 0, *range(1, len(STATES))]
        missing = torch.tensor([state[0] for state in STATES], device=closer.device)
        for n, state in enumerate(characters):
            after = meter.utf8[state]  # (vocabulary,)
            if unit in ("bytes", "tokens"):  # what a character still lacks has a price of its own
                rows[n] = rows[n] + missing[after]
            rows[n] = rows[n].masked_fill(never | (after < 0), _BANNED)
        return torch.stack(rows).int()

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        ids = input_ids[:, self.start :]
        if self._observed is not None:
            if self._before is not None:
                self._observed.append(judge(self._before, ids[:, -1], self.eos))
            self._before = scores
        beams = len(ids) // len(self.low)
        low, high = self.low.repeat_interleave(beams), self.high.repeat_interleave(beams)  # (rows,)
        used, settled, state, character = self._read(ids)
        room = high - used
        may_end = (settled >= low) & (settled > 0) & (character == 0)
        if self.finish and ids.shape[1]:
            closed = self.closes[ids[:, -1]]
            # A finished sentence and no room for another: nothing more is affordable.
            room = room.masked_fill(closed & may_end & (room < self.shortest), -1)
            may_end = may_end & (closed | self._wanted(scores, self.eos).any(1))
        kept = scores.masked_fill(self._unaffordable(room, state, scores.shape[1]), -torch.inf)
        if self.meter.opens is not None:
            kept = self._end_last_word(kept, scores, (room == 0) & (state == _OPEN))
        if self.finish:
            kept[:, self.plain_closers] += self._pull(used, room, low)
        kept[:, self.eos] = scores[:, self.eos].masked_fill(~(may_end | (room < 0))[:, None], -torch.inf)
        # Nothing fits and no end is allowed (prices misjudged by a neighbour): end here; the verdict will say so.
        stuck = kept.amax(1) == -torch.inf
        kept[:, self.eos[0]] = kept[:, self.eos[0]].masked_fill(stuck, 0.0)
        return kept

    def notes(self, last: Tensor) -> Notes | None:
        """What was observed, given the tokens (rows,) that were taken after the last step."""
        if self._observed is None or self._before is None:
            return None
        steps = [*self._observed, judge(self._before, last, self.eos)]
        return Notes(*(torch.stack(column, 1) for column in zip(*steps, strict=True)))

    def _unaffordable(self, room: Tensor, state: Tensor, vocabulary: int) -> Tensor:
        """Tokens that the room cannot pay for: (rows, vocabulary), or (1, vocabulary) where it is the same for all."""
        if self.prices.shape[1] < vocabulary:  # embeddings padded beyond the tokenizer's size
            self.prices = pad(self.prices, (0, vocabulary - self.prices.shape[1]), value=_BANNED)
        first, last, least = torch.stack([state.min(), state.max(), room.min()]).tolist()
        if first == last and least >= self.dearest:
            return self.prices[first : first + 1] >= _BANNED
        rows = self.prices[first : first + 1] if first == last else self.prices[state]
        return rows > room[:, None]

    def _read(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(units used, units if it ended here, price state, UTF-8 state), each (rows,)."""
        meter = self.meter
        if not ids.shape[1]:
            none = ids.new_zeros(len(ids))
            return none, none, none + _FRESH, none
        running = meter.running(ids)
        character = meter.character(ids)
        state = meter.opens[ids[:, -1]].long() if meter.opens is not None else torch.zeros_like(character)
        state = torch.where(meter.blank[ids].all(1), _FRESH, state)
        state = torch.where(character > 0, _SPLIT + character, state)
        return running[:, -1], meter.settled(ids, running=running), state, character

    def _end_last_word(self, kept: Tensor, scores: Tensor, last: Tensor) -> Tensor:
        """In the last word of the room letters cost nothing: only those go on that the model itself wants there."""
        if not bool(last.any()):
            return kept
        stays = self._wanted(scores, slice(None))
        stays[:, : len(self.closes)] |= self.closes
        return kept.masked_fill(~stays & last[:, None], -torch.inf)

    @staticmethod
    def _wanted(scores: Tensor, tokens: Any) -> Tensor:
        """Which of these tokens the model itself would readily take: (rows, tokens)."""
        return scores[:, tokens] >= scores.amax(1, keepdim=True) + math.log(_WANTED)

    def _pull(self, used: Tensor, room: Tensor, low: Tensor) -> Tensor:
        """For a full stop where the text may end and the room runs out; against one that leaves room for a stump only.

        (rows, plain closers), in nats.
        """
        cost = self.prices[_OPEN, self.plain_closers].long()  # (closers,)
        after = room[:, None] - cost
        good = used[:, None] + cost >= low[:, None]
        stump = ~good & (after > 0) & (after < self.shortest)
        return _PULL * (1 - after / self.landing).clamp(0, 1) * good - _PUSH * stump
