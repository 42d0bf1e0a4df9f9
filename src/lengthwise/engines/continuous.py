"""Rolling: many prompts through one batch that is never empty, since a row that ends makes room for the next prompt.

For thousands of answers of unknown length, drawn freely: no budget, no beams. Every step writes one column, the same
for all rows, of a cache that is used round and round; a key knows its position, so it does not matter which column it
stands in, and what a row may look at is a mask. So no shape ever changes, and on a GPU one step is one CUDA graph: it
costs what the GPU takes and not what the host takes to launch some thousand kernels.
This file knows token ids and decoders of transformers; it knows nothing of texts, templates and files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, Cache

from ..generation.sampling import nucleus, uniforms

STRIDE = 16  # steps between two looks at which rows have ended
SHARE = 16  # a 1/16 of the rows is filled at once, or a long prompt's attention would not fit the memory


@dataclass(frozen=True)
class Request:
    """What to answer: token ids, and the seed of the row's own random numbers."""

    prompt: list[int]
    seed: int


@dataclass(frozen=True)
class Completion:
    """An answer's token ids, without the end token, and whether the model ended it."""

    place: int  # among the jobs
    ids: list[int]
    ended: bool


@dataclass(frozen=True)
class SamplingParams:
    """How answers are drawn: of the likeliest tokens, those that make up `top_p` (0: always the first), 50 at most."""

    eos: list[int]
    pad: int
    most: int  # tokens; then an answer is cut
    temperature: float
    top_p: float
    least: int = 0  # tokens before which it is not over: an end that comes earlier is not drawn

    def __post_init__(self) -> None:
        if self.temperature <= 0 or self.most < 1:
            told = f"{self.most}, {self.temperature}"
            raise ValueError(f"most must be at least 1, temperature above 0 (greedy: top_p=0); got {told}")
        if self.least >= self.most:
            raise ValueError(f"an answer of at most {self.most} tokens cannot have at least {self.least} and an end")


@torch.inference_mode()
def generate_continuous(
    model: Any, jobs: Sequence[Request], manner: SamplingParams, *, rows: int
) -> Iterator[Completion]:
    """The answers, in the order in which they end. `rows`: how many are written at a time."""
    if not all(job.prompt for job in jobs):
        raise ValueError("a prompt has at least one token")
    if not jobs:
        return
    before = model.config._attn_implementation
    model.set_attn_implementation(_ATTENTION)
    try:
        if model.config._attn_implementation != _ATTENTION:
            raise ValueError(f"{type(model).__name__} has an attention of its own, which cannot be replaced here")
        batch = _Batch(model, jobs, manner, min(rows, len(jobs)))
        waiting: list[Completion] = []
        while batch.busy or batch.next < len(jobs):
            batch.fill()
            batch.advance(STRIDE)
            yield from waiting  # whoever takes them works on them while the GPU works on the next steps
            waiting = batch.ended()
        yield from waiting
    finally:
        model.set_attn_implementation(before)


class _Batch:
    """The rows that are being written. All tensors stay where they are: a CUDA graph knows them by their address."""

    def __init__(self, model: Any, jobs: Sequence[Request], manner: SamplingParams, rows: int) -> None:
        self.model, self.jobs, self.manner, most = model, jobs, manner, manner.most
        self.width = -(-(max(len(job.prompt) for job in jobs) + most) // 16) * 16
        window = getattr(model.config.get_text_config(), "sliding_window", None)
        if window and self.width > window:
            raise ValueError(
                f"{type(model).__name__} sees {window} tokens at a time, and prompt and answer may have {self.width}; "
                "ask for shorter answers"
            )
        self.busy: dict[int, int] = {}  # row: the job it answers
        self.next = 0  # the first job that no row has taken
        self.at = 0  # the column that the next step writes, as the host knows it
        device = model.device
        self.eos = torch.tensor(manner.eos, device=device)
        self.column = torch.zeros(1, dtype=torch.long, device=device)
        self.ring = _Ring(rows, self.width, self.column)
        self.bias = torch.full((rows, self.width), _least(model), dtype=model.dtype, device=device)  # 0: may be seen
        self.token, self.position, self.count = torch.zeros(3, rows, dtype=torch.long, device=device)
        self.over = torch.ones(rows, dtype=torch.bool, device=device)
        self.by_model = torch.zeros(rows, dtype=torch.bool, device=device)
        self.written = torch.zeros(rows, most, dtype=torch.long, device=device)
        self.chance = torch.zeros(rows, most, device=device)
        self.graph: Any = None

    # ---- prompts in

    def fill(self) -> None:
        """New prompts into free rows, if there are enough of one or the other to be worth a pass."""
        rows = len(self.token)
        share = -(-rows // SHARE)
        while self.next < len(self.jobs):
            free = [row for row in range(rows) if row not in self.busy][:share]
            if len(free) < min(share, len(self.jobs) - self.next):
                return
            taken = range(self.next, min(self.next + len(free), len(self.jobs)))
            self._read(free[: len(taken)], [self.jobs[place] for place in taken])
            self.busy.update(zip(free, taken, strict=False))
            self.next = taken.stop

    def _read(self, free: list[int], jobs: list[Request]) -> None:
        """All but the last token of each prompt: the last is what the first step reads."""
        device = self.token.device
        wide = max(1, *(len(job.prompt) - 1 for job in jobs))
        pads = torch.tensor([wide + 1 - len(job.prompt) for job in jobs], device=device)
        pad = self.manner.pad
        ids = torch.tensor([[pad] * (wide + 1 - len(job.prompt)) + job.prompt[:-1] for job in jobs], device=device)
        rows = torch.tensor(free, device=device)
        steps = torch.arange(wide, device=device)
        columns = (self.at - wide + steps) % self.width
        real = steps >= pads[:, None]  # (rows, wide)
        seen = real[:, None, None, :] & (steps <= steps[:, None])
        least = _least(self.model)
        self.ring.filled = (rows, columns)
        self.model(
            input_ids=ids,
            position_ids=(steps - pads[:, None]).clamp(min=0),
            attention_mask=torch.zeros_like(seen, dtype=self.bias.dtype).masked_fill(~seen, least),
            past_key_values=self.ring,
            use_cache=True,
            logits_to_keep=1,
        )
        self.ring.filled = None
        self.bias[rows] = least
        self.bias[rows[:, None], columns] = torch.zeros_like(real, dtype=self.bias.dtype).masked_fill(~real, least)
        self.token[rows] = torch.tensor([job.prompt[-1] for job in jobs], device=device)
        self.position[rows] = torch.tensor([len(job.prompt) - 1 for job in jobs], device=device)
        self.chance[rows] = uniforms([job.seed for job in jobs], self.manner.most).to(self.chance)
        self.count[rows] = 0
        self.over[rows] = False
        self.by_model[rows] = False

    # ---- steps

    def advance(self, steps: int) -> None:
        with torch.cuda.device_of(self.token):  # type: ignore[no-untyped-call]  # nothing on a CPU
            if self.graph is None and self.token.is_cuda:
                steps -= self._capture()
            step = self._step if self.graph is None else self.graph.replay
            for _ in range(steps):
                step()
                self.at = (self.at + 1) % self.width

    def _capture(self) -> int:
        """Makes the graph. Libraries set themselves up in their first steps, which cannot be captured: so many."""
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                self._step()
        torch.cuda.current_stream().wait_stream(aside)
        self.at = (self.at + 3) % self.width
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._step()
        return 3

    def _step(self) -> None:
        """One token more for every row; one that is over goes on, and nothing of it is kept."""
        self.bias.index_fill_(1, self.column, 0)
        logits = self.model(
            input_ids=self.token[:, None],
            position_ids=self.position[:, None],
            attention_mask=self.bias[:, None, None],
            past_key_values=self.ring,
            use_cache=True,
        ).logits[:, -1]
        if self.manner.least:
            early = torch.where(self.count < self.manner.least, _least(self.model), 0.0).to(logits.dtype)
            logits = logits.index_add(1, self.eos, early[:, None].expand(-1, len(self.eos)))
        place = self.count.clamp(max=self.manner.most - 1)[:, None]
        drawn = nucleus(logits, self.chance.gather(1, place), self.manner.temperature, self.manner.top_p)
        self.written.scatter_(1, place, torch.where(self.over[:, None], self.written.gather(1, place), drawn))
        self.token.copy_(drawn[:, 0])
        self.by_model |= ~self.over & (drawn == self.eos).any(1)
        self.count += ~self.over
        self.over |= self.by_model | (self.count >= self.manner.most)
        self.position += ~self.over
        self.column.add_(1).remainder_(self.width)

    # ---- answers out

    def ended(self) -> list[Completion]:
        """The rows that have ended since; they are free now."""
        over = self.over.tolist()
        rows = [row for row in self.busy if over[row]]
        if not rows:
            return []
        index = torch.tensor(rows, device=self.token.device)
        columns = (self.written[index].tolist(), self.count[index].tolist(), self.by_model[index].tolist())
        return [
            Completion(self.busy.pop(row), ids[: count - ended], ended)
            for row, ids, count, ended in zip(rows, *columns, strict=True)
        ]


class _Ring(Cache):  # type: ignore[misc]  # transformers is untyped
    """Keys and values (rows, heads, width, size) of each layer.

    A step writes to `column` of all rows, a prompt to the rows and columns that `filled` names. Zeros at first:
    what the mask hides is still multiplied by zero, and must be a number.
    """

    def __init__(self, rows: int, width: int, column: Tensor) -> None:
        super().__init__(layers=[])
        self.rows, self.width, self.column = rows, width, column
        self.filled: tuple[Tensor, Tensor] | None = None  # rows, columns
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        if layer not in self.kept:
            keys_, values_ = (t.new_zeros(self.rows, t.shape[1], self.width, t.shape[3]) for t in (keys, values))
            self.kept[layer] = (keys_, values_)
        for kept, new in zip(self.kept[layer], (keys, values), strict=True):
            if self.filled is None:
                kept.index_copy_(2, self.column, new)
            else:
                rows, columns = self.filled
                kept[rows[:, None], :, columns] = new.transpose(1, 2)
        return self.kept[layer] if self.filled is None else (keys, values)

    def get_seq_length(self, *_: Any, **__: Any) -> int:
        return 0  # asked for positions, which are given


def _least(model: Any) -> float:
    """Not minus infinity: a pad sees nothing at all, and the softmax of that would be no number."""
    return torch.finfo(model.dtype).min


def _grouped(
    module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scaling: float | None = None, **more: Any
) -> tuple[Tensor, None]:
    """Attention where the heads that share a key are rows of one product: no key is copied for each of them.

    query (batch, heads, time, size), key and value (batch, groups, width, size), mask (batch, 1, time, width) added.
    """
    if strange := [name for name in ("s_aux", "softcap") if more.get(name) is not None]:
        raise ValueError(f"{type(module).__name__} has an attention of its own kind ({strange[0]}), not known here")
    batch, heads, time, size = query.shape
    groups, width = key.shape[1:3]
    together = query.reshape(batch, groups, -1, size)  # (batch, groups, heads/groups * time, size)
    scores = together @ key.transpose(2, 3) * (size**-0.5 if scaling is None else scaling)
    scores = scores.view(batch, groups, -1, time, width) + mask[:, :, None]
    shares = scores.softmax(-1, dtype=torch.float32).to(value.dtype).view(batch, groups, -1, width)
    found = (shares @ value).view(batch, heads, time, -1)
    return found.transpose(1, 2).contiguous(), None


_ATTENTION = "lengthwise_grouped"
AttentionInterface.register(_ATTENTION, _grouped)
