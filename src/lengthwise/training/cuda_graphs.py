"""CUDA graphs of training steps, one per batch shape, so that the GPU does not wait for kernel launches.

There are few widths of batches (`batches.round_up`), so shapes recur: a few dozen for a decoder, a few hundred for an
encoder-decoder, which has two widths. The first batch of a shape is padded to the rows of its future graph and trained
on eagerly, so that kernels are compiled for that shape. The second batch is captured. It and all later ones are
replayed: their values are copied into the graph's tensors. Rows that a smaller batch does not use have no labels.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .batches import IGNORED, Batch, round_up

# Takes a batch on the device and a factor, adds to the gradients, returns the loss.
Step = Callable[[Batch, Tensor], Tensor]
Replay = Callable[[], None]
_Captured = tuple[Replay, Batch, Tensor, Tensor]  # and the batch, the factor and the loss whose tensors it uses
MAX_GRAPHS = 256  # each takes some memory


class Graphs:
    """Computes losses and gradients of batches, with graphs where possible. `tokens`: maximum of a padded batch."""

    def __init__(self, step: Step, tokens: int, device: torch.device, say: Callable[[str], None]) -> None:
        self.step, self.tokens, self.device, self.say = step, tokens, device, say
        self.seen: set[Any] = set()
        self.captured: dict[Any, _Captured] = {}
        self.failed = False
        self.pool: Any = None  # graphs are replayed one after the other, so they share memory

    def __call__(self, batch: Batch, factor: float) -> Tensor:
        """Return the summed loss of `batch`, a batch on the CPU, and add its gradients times `factor`."""
        key = tuple((name, *tensor.shape[1:]) for name, tensor in row_tensors(batch)), self._labels(batch)
        if key not in self.captured and len(self.captured) < MAX_GRAPHS and not self.failed:
            static = widened(batch, self._rows(batch), self._labels(batch)).to(self.device)
            if key not in self.seen:  # kernels for this shape are compiled now
                self.seen.add(key)
                return self.step(static, torch.tensor(factor, device=self.device))
            self._capture(key, static)
        if key not in self.captured:
            return self.step(batch.to(self.device), torch.tensor(factor, device=self.device))
        replay, static, static_factor, loss = self.captured[key]
        fill(static, batch)
        static_factor.fill_(factor)
        replay()
        return loss.clone()

    def _rows(self, batch: Batch) -> int:
        return max(len(batch.uniform), self.tokens // (batch.padded // len(batch.uniform)))

    def _labels(self, batch: Batch) -> int:
        """Return the number of labels of a graph: one for every decoder step, or a decoder-only batch's rounded up."""
        if (ids := batch.inputs.get("decoder_input_ids")) is not None:
            return int(self._rows(batch) * ids.shape[1])
        return round_up(len(batch.labels), 1)

    def _capture(self, key: Any, static: Batch) -> None:
        factor = torch.tensor(0.0, device=self.device)
        try:
            replay, loss = self.capture(static, factor)
        except RuntimeError as error:  # a model that waits for a value from the device inside a step
            self.failed = True
            why = next(iter(str(error).splitlines()), type(error).__name__)
            self.say(f"training continues without CUDA graphs, which failed: {why}")
            return
        self.captured[key] = (replay, static, factor, loss)

    def capture(self, batch: Batch, factor: Tensor) -> tuple[Replay, Tensor]:
        """Return a function that runs the step on the current values of `batch`, and the tensor that gets its loss."""
        stream, graph = torch.cuda.current_stream(self.device), torch.cuda.CUDAGraph()
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        torch.cuda.synchronize(self.device)
        try:
            with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
                loss = self.step(batch, factor)
        except RuntimeError:
            torch.cuda.set_stream(stream)  # a failed capture does not restore the stream
            torch.cuda.synchronize(self.device)
            raise
        return graph.replay, loss


def row_tensors(batch: Batch) -> Iterator[tuple[str, Tensor]]:
    """Yield the inputs of a batch that have one row per row of the batch, by name."""
    yield from sorted({**batch.inputs, **{f"packed.{key}": value for key, value in batch.packed.items()}}.items())


def widened(batch: Batch, rows: int, labels: int) -> Batch:
    """Return `batch` with its rows repeated up to `rows`, and with `labels` labels; the added ones are ignored."""
    missing = labels - len(batch.labels)
    return replace(
        batch.map_rows(lambda tensor: tensor[torch.arange(rows) % len(tensor)]),
        rows=torch.cat([batch.rows, batch.rows.new_zeros(missing)]),
        labels=torch.cat([batch.labels, batch.labels.new_full((missing,), IGNORED)]),
    )


def fill(static: Batch, batch: Batch) -> None:
    """Copy `batch` over the first rows of `static`, which may be on a device; the labels after them are ignored."""
    cuda, pairs = static.labels.is_cuda, zip(row_tensors(static), row_tensors(batch), strict=True)
    labels = [(static.rows, batch.rows), (static.labels, batch.labels)]
    for place, tensor in [*((place, tensor) for (_, place), (_, tensor) in pairs), *labels]:
        place[: len(tensor)].copy_(tensor.pin_memory() if cuda else tensor, non_blocking=True)
    static.rows[len(batch.rows) :] = 0
    static.labels[len(batch.labels) :] = IGNORED
