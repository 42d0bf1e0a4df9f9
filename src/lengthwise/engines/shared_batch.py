"""Shared batch: the rows of several threads, whose next steps are one forward pass.

A thread prefills its prompts alone, and its rows join at their first step. A pass begins when every thread has chosen
its tokens; the last one runs it for all. Rows have slots in one KV cache: a row that joins, forks or leaves is copied
alone. Choosing tokens is not changed, so a text is the same as without the rows beside it, except where rounding
differs.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..length.meter import Integers
from .kv_cache import KVCache, SlotCache

Floats = NDArray[np.float32]
# (cache, tokens of the rows, states of the countdown head) -> hidden states and logits of the rows
Pass = Callable[[KVCache, Integers, Integers], tuple[Floats, Floats]]

PATIENCE = 0.5  # seconds that the others wait for a thread that chooses its tokens; then its rows miss a pass
TOKENS = 32_768  # of the longest prompt × rows: bounds the KV cache, as `generation.requests.BATCH_TOKENS` does


class Slot:
    """The place of a row in the shared cache, which changes when rows before it leave."""

    def __init__(self, place: int) -> None:
        self.place = place


class Member:
    """The rows of one thread. It has the methods of a KV cache that rows need.

    `own`: the cache of its prompts, until its rows join. `rows`: their number, with forks.
    """

    can_fork = True

    def __init__(self, batch: "SharedBatch", own: KVCache, rows: int, longest: int) -> None:
        self._batch, self.rows, self.longest = batch, rows, longest
        self.own: KVCache | None = own
        self.order: Integers = np.arange(len(own.used))  # of the rows of `own`
        self.slots: list[Slot] | None = None  # None: it has not joined
        self.asked: tuple[Integers, Integers] | None = None  # tokens and states of the next pass
        self.answer: tuple[Floats, Floats] | Exception | None = None

    def select(self, rows: Integers) -> None:
        """Keep these rows in this order. A row that is named twice is forked."""
        if self.slots is None:
            self.order = self.order[rows]
        else:
            self._batch.select(self.slots, rows.tolist())
        self._batch.count(self, len(rows))

    def step(self, tokens: Integers, states: Integers) -> tuple[Floats, Floats]:
        """Append a token to each row; return its hidden state and its logits."""
        return self._batch.step(self, tokens, states)

    def close(self) -> None:
        """Give the slots back."""
        self._batch.leave(self)


class SharedBatch:
    """Runs the steps of its members together, by `run`. `padding`: the token and the state of a row that waits."""

    def __init__(self, cache: SlotCache, run: Pass, padding: tuple[int, int]) -> None:
        self._cache, self._run, self._padding = cache, run, padding
        self._slots: list[Slot] = []  # of the rows of the cache
        self._rows = threading.Lock()  # held while the rows of the cache change or are read
        self._changed = threading.Condition()  # guards the following
        self._line: deque[Member] = deque()  # those that wait for room
        self._inside: list[Member] = []  # those that have room
        self._left: list[Member] = []  # those whose slots can be freed
        self._running = False

    def enter(self, own: KVCache, rows: int, longest: int) -> Member:
        """Return a member for `rows` rows, made of those of `own`, as soon as there is room for such prompts."""
        member = Member(self, own, rows, longest)
        with self._changed:
            self._line.append(member)
            while self._line[0] is not member or not self._has_room(member):
                self._changed.wait()
            self._line.popleft()
            self._inside = [*self._inside, member]
            self._changed.notify_all()
        return member

    def leave(self, member: Member) -> None:
        """Forget a member. A finaliser may call this at any time, also during a pass: then the next one frees slots."""
        with self._changed:
            if member in self._inside:
                self._inside = [one for one in self._inside if one is not member]
                self._left = [*self._left, member]
                self._changed.notify_all()
        if self._rows.acquire(blocking=False):
            try:
                self._free()
            finally:
                self._rows.release()

    def count(self, member: Member, rows: int) -> None:
        """Note how many rows a member has now. Those that wait for room may have it if there are fewer."""
        with self._changed:
            fewer, member.rows = rows < member.rows, rows
            if fewer and self._line:
                self._changed.notify_all()

    def _has_room(self, new: Member) -> bool:
        together = [*self._inside, new]
        return not self._inside or sum(m.rows for m in together) * max(m.longest for m in together) <= TOKENS

    # ---- a pass

    def step(self, member: Member, tokens: Integers, states: Integers) -> tuple[Floats, Floats]:
        """Return the hidden states and logits of the member's rows after their next tokens."""
        with self._changed:
            member.asked, member.answer = (tokens, states), None
            waited = True
            while member.answer is None:
                if not self._running and (not waited or self._complete()):
                    self._running = True
                    asked = [one for one in self._inside if one.asked is not None]
                    break
                waited = self._changed.wait(PATIENCE)
        if member.answer is None:
            self._lead(asked)
        answer, member.answer = member.answer, None
        assert answer is not None
        if isinstance(answer, Exception):
            self.leave(member)  # its rows are lost
            # Several threads must not raise the same object: each adds its frames to the traceback.
            raise RuntimeError(f"a pass for several texts failed: {answer}") from answer
        return answer

    def _complete(self) -> bool:
        """Return whether every member that has joined has chosen its tokens."""
        return all(one.asked is not None for one in self._inside if one.slots is not None)

    def _lead(self, asked: list[Member]) -> None:
        """Run a pass for these members and give each its answer."""
        try:
            with self._rows:
                answers: list[Any] = self._passed(asked)
        except Exception as error:
            answers = [error] * len(asked)
        with self._changed:
            for member, answer in zip(asked, answers, strict=True):
                member.asked, member.answer = None, answer
            self._running = False
            self._changed.notify_all()

    def _passed(self, asked: list[Member]) -> list[tuple[Floats, Floats]]:
        self._free()
        for member in asked:
            if member.own is not None:
                prompts, member.own = member.own, None
                member.slots = []  # one by one: if the memory is full, those that have been added are freed
                for row in member.order.tolist():
                    member.slots.append(self._add(prompts, row))
        places = [[slot.place for slot in member.slots or []] for member in asked]
        tokens, states = (np.full(len(self._slots), value) for value in self._padding)
        used, waits = self._cache.used, np.ones(len(self._slots), np.bool_)
        for member, own in zip(asked, places, strict=True):
            assert member.asked is not None
            tokens[own], states[own] = member.asked
            waits[own] = False
        hidden, logits = self._run(self._cache, tokens, states)
        self._cache.used = np.where(waits, used, self._cache.used)  # the next pass overwrites their padding
        return [(hidden[own], logits[own]) for own in places]

    # ---- slots, by threads that hold `_rows`

    def select(self, slots: list[Slot], rows: list[int]) -> None:
        """Keep the slots of these rows; a row that is named twice is copied, one that is not named is dropped."""
        with self._rows:
            found, old = [], list(slots)
            for n, row in enumerate(rows):
                if row in rows[:n]:
                    slots.append(self._add(self._cache, old[row].place))  # at once: it is freed even if the next fails
                    found.append(slots[-1])
                else:
                    found.append(old[row])
            slots[:] = found
            self._drop([slot for row, slot in enumerate(old) if row not in rows])

    def _free(self) -> None:
        with self._changed:
            left, self._left = self._left, []
        for member in left:
            self._drop(member.slots or [])

    def _add(self, cache: KVCache, row: int) -> Slot:
        self._cache.add(cache, row)
        self._slots.append(Slot(len(self._slots)))
        return self._slots[-1]

    def _drop(self, slots: list[Slot]) -> None:
        for slot in slots:
            last = self._slots.pop()
            self._cache.remove(slot.place)
            if last is not slot:
                self._slots[slot.place], last.place = last, slot.place
