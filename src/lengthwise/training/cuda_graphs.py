"""Steps as CUDA graphs: a fast GPU does not wait for the processor to launch some thousand kernels in each of them.

Widths of batches come from a short list (`batches.up`), so shapes come again: a few dozen in the training of a decoder,
a few hundred in that of an encoder-decoder, which has two widths. The first batch of a shape is learnt from with as
many rows as the graph will have, so that all is compiled for it; the second is recorded, and it and all others are
played back: their numbers are copied to where the graph looks for them. A batch with fewer rows than the graph has
leaves the rows of an earlier one below its own, from which nothing is learnt. Knows batches and addresses; what is
computed is its caller's matter.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .batches import Batch, up

Learn = Callable[[Batch, Tensor], Tensor]  # a batch on the device and a factor: adds to the gradients, returns the loss
Replay = Callable[[], None]
MOST = 256  # graphs: each takes some memory
_NOTHING = -100  # the label of a place from which nothing is learnt


@dataclass
class _Recorded:
    replay: Replay
    batch: Batch  # whose tensors the graph reads
    factor: Tensor
    loss: Tensor


class Graphs:
    """Learns from batches, by graphs where it can. `tokens`: padded ones of a batch, at most."""

    def __init__(self, learn: Learn, tokens: int, device: torch.device, say: Callable[[str], None]) -> None:
        self.learn, self.tokens, self.device, self.say = learn, tokens, device, say
        self.met: set[Any] = set()
        self.recorded: dict[Any, _Recorded] = {}
        self.broken = False
        self.pool: Any = None  # graphs are played one after the other, so they share their memory

    def __call__(self, batch: Batch, factor: float) -> Tensor:
        """The summed loss of `batch`, which is still in the host's memory; its gradients times `factor` are added."""
        key = self._key(batch)
        if key not in self.recorded and len(self.recorded) < MOST and not self.broken:
            still = widened(batch, self._rows(batch), self._labels(batch)).to(self.device)
            if key not in self.met:  # what the compiler has to do for this shape, it does now
                self.met.add(key)
                return self.learn(still, self._factor(factor))
            self._record(key, still)
        if key not in self.recorded:
            return self.learn(batch.to(self.device), self._factor(factor))
        recorded = self.recorded[key]
        fill(recorded.batch, batch)
        recorded.factor.fill_(factor)
        recorded.replay()
        return recorded.loss.clone()

    def _key(self, batch: Batch) -> Any:
        return tuple((name, *tensor.shape[1:]) for name, tensor in named(batch)), self._labels(batch)

    def _rows(self, batch: Batch) -> int:
        return max(len(batch.chance), self.tokens // (batch.padded // len(batch.chance)))

    def _labels(self, batch: Batch) -> int:
        """Places for labels: an encoder-decoder has hardly a place without one; else as many as there are, or so."""
        if (ids := batch.inputs.get("decoder_input_ids")) is not None:
            return int(self._rows(batch) * ids.shape[1])
        return up(len(batch.labels), 1)

    def _factor(self, factor: float) -> Tensor:
        return torch.tensor(factor, device=self.device)

    def _record(self, key: Any, still: Batch) -> None:
        factor = self._factor(0.0)
        try:
            replay, loss = self.capture(still, factor)
        except RuntimeError as error:  # a model that asks the device something in the middle of a step
            self.broken = True
            why = next(iter(str(error).splitlines()), type(error).__name__)
            self.say(f"steps are not recorded as CUDA graphs: {why}")
            return
        self.recorded[key] = _Recorded(replay, still, factor, loss)

    def capture(self, batch: Batch, factor: Tensor) -> tuple[Replay, Tensor]:
        """What learns from whatever stands in `batch` by then, and where it leaves its loss. Nothing is learnt yet."""
        stream, graph = torch.cuda.current_stream(self.device), torch.cuda.CUDAGraph()
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        torch.cuda.synchronize(self.device)
        try:
            with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
                loss = self.learn(batch, factor)
        except RuntimeError:
            torch.cuda.set_stream(stream)  # one that failed does not come back from its own
            torch.cuda.synchronize(self.device)
            raise
        return graph.replay, loss


def named(batch: Batch) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a batch that have a row for each of its rows."""
    yield from sorted({**batch.inputs, **{f"packed.{key}": value for key, value in batch.packed.items()}}.items())


def widened(batch: Batch, rows: int, labels: int) -> Batch:
    """`batch` with `rows` rows, its own over and over, and as many labels: nothing is learnt from what is added."""

    def more(tensor: Tensor) -> Tensor:
        return tensor[torch.arange(rows) % len(tensor)]

    missing = labels - len(batch.labels)
    return replace(
        batch.by_row(more),
        rows=torch.cat([batch.rows, batch.rows.new_zeros(missing)]),
        labels=torch.cat([batch.labels, batch.labels.new_full((missing,), _NOTHING)]),
    )


def fill(still: Batch, batch: Batch) -> None:
    """Copies `batch` over the first rows of `still`, which may be on a device; what is below teaches nothing."""
    cuda = still.labels.is_cuda
    for (_, place), (_, tensor) in zip(named(still), named(batch), strict=True):
        place[: len(tensor)].copy_(tensor.pin_memory() if cuda else tensor, non_blocking=True)
    count = len(batch.labels)
    for place, tensor, nothing in ((still.rows, batch.rows, 0), (still.labels, batch.labels, _NOTHING)):
        place[:count].copy_(tensor.pin_memory() if cuda else tensor, non_blocking=True)
        place[count:].fill_(nothing)
