"""Continuous batching: when a row has ended, the next prompt is prefilled into it.

For sampling thousands of answers without a budget. The KV cache is a ring buffer: every step writes one column, the
same for all rows. Keys contain their rotary positions, so a key may be in any column; a mask selects the keys of each
row. No shape changes, so on a GPU a step is one CUDA graph, and the CPU does not launch a thousand kernels per step.
This file handles token ids and decoder-only models of transformers, not texts, chat templates or files.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .cuda_graph import record
from .fixed_cache import FixedCache, fewer_kernels, lowest
from .sampling import uniforms
from .torch_sampling import sample

STRIDE = 16  # steps between two checks of which rows have ended
SHARE = 16  # 1/16 of the rows is prefilled at once: the attention of long prompts must fit the memory
TOP_K = 50  # top-k sampling: sorting the whole vocabulary takes longer than the model's forward pass


@dataclass(frozen=True)
class SeededPrompt:
    """A prompt as token ids, and the seed of its random numbers."""

    prompt: list[int]
    seed: int


@dataclass(frozen=True)
class Completion:
    """The token ids of an answer, without the end token, and whether the model ended it."""

    place: int  # among the requests
    ids: list[int]
    ended: bool


@dataclass(frozen=True)
class SamplingParams:
    """How answers are sampled: from the most probable tokens that make up `top_p` (0: greedy), 50 at most."""

    eos: list[int]
    pad: int
    max_tokens: int  # the answer is truncated there
    temperature: float
    top_p: float
    min_tokens: int = 0  # the end token is masked before

    def __post_init__(self) -> None:
        if self.temperature <= 0 or self.max_tokens < 1:
            given = f"{self.max_tokens} and {self.temperature}"
            raise ValueError(f"max_tokens must be at least 1 and temperature above 0 (greedy: top_p=0); got {given}")
        if self.min_tokens >= self.max_tokens:
            raise ValueError(f"min_tokens must be below max_tokens; got {self.min_tokens} and {self.max_tokens}")


@torch.inference_mode()
def generate_continuous(
    model: Any, requests: Sequence[SeededPrompt], params: SamplingParams, *, rows: int
) -> Iterator[Completion]:
    """Yield the answers in the order in which they end. `rows`: how many are decoded at a time."""
    if not all(request.prompt for request in requests):
        raise ValueError("a prompt must have at least one token; got an empty one")
    if not requests:
        return
    with fewer_kernels(model):
        batch = _Batch(model, requests, params, min(rows, len(requests)))
        waiting: list[Completion] = []
        while batch.busy or batch.next < len(requests):
            batch.fill()
            batch.advance(STRIDE)
            yield from waiting  # the caller processes them while the GPU computes the next steps
            waiting = batch.ended()
        yield from waiting


class _Batch:
    """The rows that are being decoded. Tensors are changed in place: a CUDA graph refers to them by address."""

    def __init__(self, model: Any, requests: Sequence[SeededPrompt], params: SamplingParams, rows: int) -> None:
        self.model, self.requests, self.params, most = model, requests, params, params.max_tokens
        self.width = -(-(max(len(request.prompt) for request in requests) + most) // 16) * 16
        window = getattr(model.config.get_text_config(), "sliding_window", None)
        if window and self.width > window:
            raise ValueError(
                f"{type(model).__name__} attends to {window} tokens; prompt and answer may have {self.width}: "
                "lower max_tokens"
            )
        self.busy: dict[int, int] = {}  # row: the request it answers
        self.next = 0  # the first request that no row has taken
        self.at = 0  # the column that the next step writes, as a Python number
        device = model.device
        self.eos = torch.tensor(params.eos, device=device)
        self.column = torch.zeros(1, dtype=torch.long, device=device)
        self.ring = FixedCache(rows, self.width, self.column)
        self.bias = torch.full((rows, self.width), lowest(model), dtype=model.dtype, device=device)  # 0: attended
        self.token, self.position, self.count = torch.zeros(3, rows, dtype=torch.long, device=device)
        self.done = torch.ones(rows, dtype=torch.bool, device=device)
        self.ended_by_model = torch.zeros(rows, dtype=torch.bool, device=device)
        self.written = torch.zeros(rows, most, dtype=torch.long, device=device)
        self.uniform = torch.zeros(rows, most, device=device)
        self.graph: Callable[[], None] | None = None

    # ---- prefill

    def fill(self) -> None:
        """Prefill free rows with new prompts, if there are enough of both to be worth a forward pass."""
        rows = len(self.token)
        share = -(-rows // SHARE)
        while self.next < len(self.requests):
            free = [row for row in range(rows) if row not in self.busy][:share]
            if len(free) < min(share, len(self.requests) - self.next):
                return
            taken = range(self.next, min(self.next + len(free), len(self.requests)))
            self._read(free[: len(taken)], [self.requests[place] for place in taken])
            self.busy.update(zip(free, taken, strict=False))
            self.next = taken.stop

    def _read(self, free: list[int], requests: list[SeededPrompt]) -> None:
        """Prefill all but the last token of each prompt: the first step reads the last one."""
        device = self.token.device
        wide = max(1, *(len(request.prompt) - 1 for request in requests))
        pads = torch.tensor([wide + 1 - len(request.prompt) for request in requests], device=device)
        pad = self.params.pad
        ids = torch.tensor(
            [[pad] * (wide + 1 - len(request.prompt)) + request.prompt[:-1] for request in requests], device=device
        )
        rows = torch.tensor(free, device=device)
        steps = torch.arange(wide, device=device)
        columns = (self.at - wide + steps) % self.width
        real = steps >= pads[:, None]  # (rows, wide)
        seen = real[:, None, None, :] & (steps <= steps[:, None])
        masked = lowest(self.model)
        self.ring.filled = (rows, columns)
        self.model(
            input_ids=ids,
            position_ids=(steps - pads[:, None]).clamp(min=0),
            attention_mask=torch.zeros_like(seen, dtype=self.bias.dtype).masked_fill(~seen, masked),
            past_key_values=self.ring,
            use_cache=True,
            logits_to_keep=1,
        )
        self.ring.filled = None
        self.bias[rows] = masked
        self.bias[rows[:, None], columns] = torch.zeros_like(real, dtype=self.bias.dtype).masked_fill(~real, masked)
        self.token[rows] = torch.tensor([request.prompt[-1] for request in requests], device=device)
        self.position[rows] = torch.tensor([len(request.prompt) - 1 for request in requests], device=device)
        drawn = uniforms([request.seed for request in requests], self.params.max_tokens)
        self.uniform[rows] = torch.from_numpy(drawn).to(self.uniform)
        self.count[rows] = 0
        self.done[rows] = False
        self.ended_by_model[rows] = False

    # ---- steps

    def advance(self, steps: int) -> None:
        with torch.cuda.device_of(self.token):  # type: ignore[no-untyped-call]  # nothing on a CPU
            if self.graph is None and self.token.is_cuda:
                steps -= self._record()
            step = self.graph or self._step
            for _ in range(steps):
                step()
                self.at = (self.at + 1) % self.width

    def _record(self) -> int:
        """Record a step and return how many steps were taken for that."""
        self.graph, taken = record(self.model, self._step)
        self.at = (self.at + taken) % self.width
        return taken

    def _step(self) -> None:
        """Decode one token for every row; tokens of finished rows are discarded."""
        self.bias.index_fill_(1, self.column, 0)
        logits = self.model(
            input_ids=self.token[:, None],
            position_ids=self.position[:, None],
            attention_mask=self.bias[:, None, None],
            past_key_values=self.ring,
            use_cache=True,
        ).logits[:, -1]
        if self.params.min_tokens:
            early = torch.where(self.count < self.params.min_tokens, lowest(self.model), 0.0).to(logits.dtype)
            logits = logits.index_add(1, self.eos, early[:, None].expand(-1, len(self.eos)))
        place = self.count.clamp(max=self.params.max_tokens - 1)[:, None]
        drawn = sample(
            logits,
            self.uniform.gather(1, place),
            temperature=self.params.temperature,
            top_p=self.params.top_p,
            top_k=TOP_K,
        )
        self.written.scatter_(1, place, torch.where(self.done[:, None], self.written.gather(1, place), drawn))
        self.token.copy_(drawn[:, 0])
        self.ended_by_model |= ~self.done & (drawn == self.eos).any(1)
        self.count += ~self.done
        self.done |= self.ended_by_model | (self.count >= self.params.max_tokens)
        self.position += ~self.done
        self.column.add_(1).remainder_(self.width)

    # ---- answers

    def ended(self) -> list[Completion]:
        """Return the answers that have ended since the last call; their rows are free now."""
        over = self.done.tolist()
        rows = [row for row in self.busy if over[row]]
        if not rows:
            return []
        index = torch.tensor(rows, device=self.token.device)
        columns = (self.written[index].tolist(), self.count[index].tolist(), self.ended_by_model[index].tolist())
        return [
            Completion(self.busy.pop(row), ids[: count - ended], ended)
            for row, ids, count, ended in zip(rows, *columns, strict=True)
        ]
