"""Stand-ins for the classes of vLLM that `lengthwise.integrations.vllm` uses, and servers that move rows as vLLM does.

`V1Server` keeps a persistent batch: rows are removed, filled with new requests, moved into gaps and swapped. `V2Server`
keeps requests in slots, changes the order of the rows in each step, and does not schedule every request. Both preempt
requests and resume them.
"""

import sys
from dataclasses import dataclass, field
from enum import Enum, auto
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch

from length_cases import noise

V1_MODULE, V2_MODULE = "vllm.v1.sample.logits_processor", "vllm.v1.worker.gpu.sample.logits_processor"


class MoveDirectionality(Enum):
    UNIDIRECTIONAL = auto()
    SWAP = auto()


@dataclass(frozen=True)
class BatchUpdate:
    batch_size: int
    removed: list[int]
    added: list[tuple[int, Any, list[int] | None, list[int]]]
    moved: list[tuple[int, int, MoveDirectionality]]


@dataclass
class SamplingParams:
    extra_args: dict[str, Any] | None = None
    max_tokens: int | None = 50
    all_stop_token_ids: set[int] = field(default_factory=lambda: {2})
    eos_token_id: int | None = 2
    stop: list[str] = field(default_factory=list)
    ignore_eos: bool = False
    structured_outputs: Any = None


def modules(*, v2: bool) -> dict[str, ModuleType]:
    """Return stand-ins for vLLM's modules, with or without the V2 interface, for `sys.modules`."""
    made: dict[str, Any] = {}
    for name in (V1_MODULE, *([V2_MODULE] if v2 else [])):
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            made.setdefault(".".join(parts[:end]), ModuleType(".".join(parts[:end])))
        made[name].LogitsProcessor = type("LogitsProcessor", (), {})
    if not v2:
        made[V2_MODULE] = None  # importing it fails
    return made


def load(monkeypatch: Any, *, v2: bool = True) -> Any:
    """Import the integration with the stand-ins, and return its module."""
    for name, module in modules(v2=v2).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "lengthwise.integrations.vllm", raising=False)
    import lengthwise.integrations.vllm as integration

    monkeypatch.delitem(sys.modules, "lengthwise.integrations.vllm")  # the next test imports it again
    return integration


def config(tokenizer: str, vocabulary: int, **options: Any) -> SimpleNamespace:
    """Return the parts of vLLM's configuration that the processor reads."""
    model = SimpleNamespace(tokenizer=tokenizer, tokenizer_revision=None, trust_remote_code=False, max_model_len=400)
    model.get_vocab_size = lambda: vocabulary
    return SimpleNamespace(model_config=model, speculative_config=None, **options)


@dataclass(eq=False)
class Request:
    parameters: SamplingParams
    prompt: list[int]
    output: list[int] = field(default_factory=list)
    place: int | None = None  # its row in V1, its slot in V2; None while it waits


class Server:
    """Runs requests with noise as scores. `check(request, scores, kept)` is called for each row in each step."""

    def __init__(self, processor: Any, width: int, check: Any, seed: int) -> None:
        self.processor, self.width, self.check = processor, width, check
        self.generator = torch.Generator().manual_seed(seed)
        self.requests: list[Request] = []  # those in the batch
        self.waiting: list[Request] = []

    def step(self, rows: list[Request], context: Any = None) -> None:
        """Run one step, in which these requests have rows in this order; remove those that end from the batch."""
        scores = noise(self.generator, len(rows), self.width)
        logits = scores.clone()
        kept = self.processor.apply(logits) if context is None else self.processor.apply(logits, context)
        for row, request in enumerate(rows):
            self.check(request, scores[row : row + 1], kept[row : row + 1])
            self.write(request, int(torch.multinomial(kept[row].softmax(0), 1, generator=self.generator)))

    def write(self, request: Request, token: int) -> None:
        request.output.append(token)

    def ended(self, request: Request) -> bool:
        return request.output[-1:] == [2] or len(request.output) >= (request.parameters.max_tokens or 400)


class V1Server(Server):
    """A persistent batch as vLLM's InputBatch keeps it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.batch: list[Request | None] = []

    def advance(self, new: list[Request], preempted: list[int], swaps: list[tuple[int, int]]) -> None:
        """Remove rows that have ended or are preempted, add rows, condense the batch, swap rows; then run a step."""
        removed = [row for row, one in enumerate(self.batch) if one is not None and self.ended(one)]
        for n in preempted:
            row = n % (len(self.batch) or 1)
            if self.batch and row not in removed:
                removed.append(row)
                self.waiting.append(self.batch[row])
        for row in removed:
            self.batch[row] = None
        added, gaps = [], sorted(removed)
        for request in new:
            request.output = list(request.output)  # a resumed request comes with a list of its own
            row = gaps.pop(0) if gaps else len(self.batch)
            self.batch[row : row + 1] = [request]
            added.append((row, request.parameters, request.prompt, request.output))
        moved = []
        while None in self.batch:
            gap, last = self.batch.index(None), len(self.batch) - 1
            if gap != last:
                moved.append((last, gap, MoveDirectionality.UNIDIRECTIONAL))
                self.batch[gap] = self.batch[last]
            self.batch.pop()
        for a, b in ((a % len(self.batch), b % len(self.batch)) for a, b in swaps if self.batch):
            if a != b:
                moved.append((a, b, MoveDirectionality.SWAP))
                self.batch[a], self.batch[b] = self.batch[b], self.batch[a]
        changed = bool(removed or added or moved)
        self.processor.update_state(BatchUpdate(len(self.batch), gaps, added, moved) if changed else None)
        self.step([one for one in self.batch if one is not None])


class V2Server(Server):
    """Slots and token buffers as vLLM's V2 model runner keeps them."""

    def __init__(self, processor: Any, width: int, check: Any, seed: int, states: Any) -> None:
        super().__init__(processor, width, check, seed)
        self.states, self.free = states, list(range(len(states.prompt_len.np)))

    @staticmethod
    def states(slots: int) -> SimpleNamespace:
        """Return request states: prompt lengths on the host, tokens on the device."""
        return SimpleNamespace(
            prompt_len=SimpleNamespace(np=np.zeros(slots, np.int32)),
            all_token_ids=SimpleNamespace(gpu=torch.zeros(slots, 400, dtype=torch.int32)),
        )

    def advance(self, new: list[Request], preempted: list[int], order: list[int]) -> None:
        """Free slots, fill slots, and run a step with some of the requests, in another order."""
        leaving = [one for one in self.requests if self.ended(one)]
        for n in preempted:
            if self.requests and (one := self.requests[n % len(self.requests)]) not in leaving:
                leaving.append(one)
                self.waiting.append(one)
        for one in leaving:
            self.requests.remove(one)
            self.free.append(one.place)
        for one in new:
            one.place = self.free.pop()
            self.requests.append(one)
            self.states.prompt_len.np[one.place] = len(one.prompt)
            self.states.all_token_ids.gpu[one.place] = -7  # of another request
            known = [*one.prompt, *one.output]
            self.processor.add_request(one.place, one.parameters)
            self.states.all_token_ids.gpu[one.place, : len(known)] = torch.tensor(known)
        rows = sorted(self.requests, key=lambda one: order[one.place % len(order)])
        rows = [one for one in rows if order[one.place % len(order)] % 5]  # the others are not scheduled
        if rows:
            slots = np.array([one.place for one in rows])
            lengths = np.array([len(one.prompt) + len(one.output) for one in rows])
            self.step(rows, SimpleNamespace(idx_mapping_np=slots, seq_lens_upper_bound_np=lengths))

    def write(self, request: Request, token: int) -> None:
        self.states.all_token_ids.gpu[request.place, len(request.prompt) + len(request.output)] = token
        super().write(request, token)
