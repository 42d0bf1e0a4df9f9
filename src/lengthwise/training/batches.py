"""Batches: group examples of similar length, and collate them into the tensors that a model receives.

Rows are padded on the right: a causal model then never attends to padding and needs no mask, so the fastest attention
kernel runs. Only response tokens have a loss; a batch contains the places where they are predicted.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .examples import Example

IGNORED = -100  # the label that PyTorch's cross entropy ignores


@dataclass(frozen=True)
class Layout:
    """The form of a model's batches."""

    tokens: int  # of both sides at most, padding included
    multiple: int  # every width is a multiple of this
    encoder_decoder: bool
    pad: int
    end: int
    first: int | None = None  # the decoder start token of an encoder-decoder
    signal: bool = False  # whether a control receives lengths and positions
    mask: bool = False  # decoder-only: a control needs the attention mask
    packing: int = 0  # decoder-only: the width of rows that hold several examples; 0: one example per row
    last: int = 0  # the number of tokens at a response's end that have a loss
    before: float = 1.0  # the share of the tokens before them that have one


@dataclass(frozen=True)
class Batch:
    """One forward pass of a model."""

    inputs: dict[str, Tensor]  # the model's arguments
    rows: Tensor  # (responses,) index into the batch × time hidden states: those that predict a response token
    labels: Tensor  # (responses,) that token; IGNORED where there is no loss
    uniform: Tensor  # (batch,), or (batch, time) if packed: a draw from [0, 1) for each example
    max_shift: Tensor  # of the same shape: the largest shift of the example's length
    names: list[str]
    responses: int  # tokens that have a loss, ends included
    tokens: int  # of both sides, without padding
    padded: int  # of both sides, with padding
    packed: dict[str, Tensor] = field(default_factory=dict)  # the signal at each token of packed rows
    sources: list[int] = field(default_factory=list)  # tokens of each example's source
    targets: list[int] = field(default_factory=list)  # and of its decoder input: source and target, if decoder-only

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on `device`, without waiting for the transfer."""
        # Pinned: a copy from pageable memory would wait until the GPU has finished its queue.
        cuda = device.type == "cuda"
        return self.map_tensors(lambda t: (t.pin_memory() if cuda else t).to(device, non_blocking=True))

    def map_tensors(self, change: Callable[[Any], Any]) -> "Batch":
        """Return the batch with `change` applied to each of its tensors."""
        return replace(self.map_rows(change), rows=change(self.rows), labels=change(self.labels))

    def map_rows(self, change: Callable[[Any], Any]) -> "Batch":
        """Return the batch with `change` applied to each tensor that has one row per example or pack."""
        return replace(
            self,
            inputs={key: change(value) for key, value in self.inputs.items()},
            packed={key: change(value) for key, value in self.packed.items()},
            uniform=change(self.uniform),
            max_shift=change(self.max_shift),
        )

    def without_labels(self) -> "Batch":
        """Return the batch without a loss, for a process that has no batch left while others do."""
        return replace(self, labels=torch.full_like(self.labels, IGNORED), responses=0, tokens=0)

    def shifted(self, shift: Tensor) -> "Batch":
        """Return the batch with each example's length increased by `shift`, which has the shape of `uniform`."""
        if self.packed:
            return replace(self, packed=self.packed | {"length": self.packed["length"] + shift})
        if "decoder_length" not in self.inputs:  # the length is in the prompt
            return self
        return replace(self, inputs=self.inputs | {"decoder_length": self.inputs["decoder_length"] + shift})


def batches(examples: Sequence[Example], layout: Layout, random: Random) -> list[Batch]:
    """Return the examples in batches, in an order that `random` decides."""
    groups = _packs(examples, layout.packing) if layout.packing else _groups(examples, layout)
    _shuffle(groups, random)
    if not layout.packing:
        return [collate(group, layout) for group in groups]
    per_batch = max(1, layout.tokens // layout.packing)
    return [pack(groups[n : n + per_batch], layout) for n in range(0, len(groups), per_batch)]


def _shuffle(items: list[Any], random: Random) -> None:
    # Not Random.shuffle: only random() is guaranteed to be the same in every version of Python.
    for n in range(len(items) - 1, 0, -1):
        other = int(random.random() * (n + 1))
        items[n], items[other] = items[other], items[n]


def _groups(examples: Sequence[Example], layout: Layout) -> list[list[Example]]:
    """Return groups of examples of similar size, each as large as fits a batch.

    With examples sorted by source length, targets would be half padding. So the sorted sources are cut into strata, and
    each stratum is sorted by target length. The best number of strata depends on the corpus; all are tried.
    """
    counts = range(1, 9) if layout.encoder_decoder else (1,)
    tried = [_filled_up(_stratified(examples, count, layout), layout) for count in counts]
    return min(tried, key=lambda found: found[1])[0]


def _stratified(examples: Sequence[Example], count: int, layout: Layout) -> list[Example]:
    """Return the examples by source length in `count` strata, sorted by target length, alternately down and up."""
    ordered = sorted(examples, key=lambda e: (*_sizes(e, layout), e.name), reverse=True)
    if count == 1:
        return ordered
    height = -(-len(ordered) // count)
    strata = [ordered[n * height : (n + 1) * height] for n in range(count)]
    turns = [sorted(s, key=lambda e: (len(e.target), e.name), reverse=n % 2 == 0) for n, s in enumerate(strata)]
    return [example for stratum in turns for example in stratum]


def _filled_up(ordered: Sequence[Example], layout: Layout) -> tuple[list[list[Example]], int]:
    """Return groups of neighbours, each as large as fits a batch, and the padded tokens of all groups."""
    groups: list[list[Example]] = []
    padded: list[int] = []
    widest = (0, 0)
    for example in ordered:
        source, target = (round_up(size, layout.multiple) for size in _sizes(example, layout))
        widest = (max(widest[0], source), max(widest[1], target))
        if not groups or (len(groups[-1]) + 1) * sum(widest) > layout.tokens:
            groups.append([])
            padded.append(0)
            widest = (source, target)
        groups[-1].append(example)
        padded[-1] = len(groups[-1]) * sum(widest)
    return groups, sum(padded)


def _sizes(example: Example, layout: Layout) -> tuple[int, int]:
    """Return the tokens of source and target; a decoder-only model has one side."""
    source, target = len(example.source), len(example.target)
    return (source, target + 1) if layout.encoder_decoder else (source + target, 0)


def round_up(count: int, multiple: int) -> int:
    """Return `count`, rounded up to a multiple and to one of eight sizes between each power of two and the next.

    With few sizes, CUDA graphs and compiled kernels of a shape can be reused: 100 → 104, 200 → 208, 390 → 416.
    """
    step = -(-(1 << max(0, count.bit_length() - 4)) // multiple) * multiple
    return -(-count // step) * step


# ---- one example per row


def collate(examples: Sequence[Example], layout: Layout) -> Batch:
    """Return the examples as one batch, one per row."""

    def filled(rows: Sequence[Sequence[int]], filler: int) -> Tensor:  # (rows, width), padded on the right
        cells = np.full((len(rows), round_up(max(map(len, rows)), layout.multiple)), filler, np.int64)
        for number, row in enumerate(rows):
            cells[number, : len(row)] = row
        return torch.from_numpy(cells)

    def mask(rows: Sequence[Sequence[int]]) -> Tensor:
        sizes, width = np.array([[len(row)] for row in rows]), round_up(max(map(len, rows)), layout.multiple)
        return torch.from_numpy((np.arange(width) < sizes).astype(np.int64))

    if layout.encoder_decoder:
        assert layout.first is not None
        sources, decoded = [e.source for e in examples], [[layout.first, *e.target] for e in examples]
        inputs = {"input_ids": filled(sources, layout.pad), "attention_mask": mask(sources)}
        inputs["decoder_input_ids"] = filled(decoded, layout.pad)
        starts, positions = [1] * len(examples), [[0, *e.counts] for e in examples]
    else:
        decoded = [e.source + e.target for e in examples]
        inputs = {"input_ids": filled(decoded, layout.pad)} | ({"attention_mask": mask(decoded)} if layout.mask else {})
        starts, positions = [len(e.source) for e in examples], [_positions(e) for e in examples]
    padded = sum(ids.numel() for key, ids in inputs.items() if key.endswith("input_ids"))
    width = inputs.get("decoder_input_ids", inputs["input_ids"]).shape[1]
    if layout.signal:
        inputs["decoder_length"] = torch.tensor([e.length for e in examples])
        inputs["decoder_start"] = torch.tensor(starts)
        inputs["decoder_position"] = filled(positions, 0)
        inputs["decoder_unit"] = torch.tensor([e.unit for e in examples])
        inputs["decoder_at_most"] = torch.tensor([e.at_most for e in examples])
    places = [row * width + start - 1 for row, start in enumerate(starts)]
    draws = {key: torch.tensor([getattr(e, key) for e in examples]) for key in ("uniform", "max_shift")}
    return _batch(examples, places, layout, inputs=inputs, padded=padded, **draws)


def _positions(example: Example) -> list[int]:
    """Return the units written after each token; in the prompt, minus those of it that follow the token.

    prompt tokens of 3 and 2 units, answer tokens of 4 and 1 → -2 0 4 5
    """
    following = accumulate(reversed(example.costs[1:]), initial=0) if example.costs else []
    return [-units for units in following][::-1] + example.counts


def _batch(examples: Sequence[Example], places: Sequence[int], layout: Layout, **fields: Any) -> Batch:
    """Return the batch with these `fields`. `places`: which hidden state predicts each example's first target token."""
    rows, labels = [], []
    for place, example in zip(places, examples, strict=True):
        trained = _trained_tokens(example, layout)
        rows += [place + n for n in trained]
        labels += [example.target[n] if n < len(example.target) else layout.end for n in trained]
    tokens = sum(len(e.source) + len(e.target) + layout.encoder_decoder for e in examples)
    fields |= {"names": [e.name for e in examples], "responses": len(labels), "tokens": tokens}
    fields["sources"] = [len(e.source) for e in examples]
    fields["targets"] = [len(e.target) + (1 if layout.encoder_decoder else len(e.source)) for e in examples]
    # By numpy: torch.tensor of a list takes twice the time.
    arrays = [torch.from_numpy(np.array(values, np.int64)) for values in (rows, labels)]
    return Batch(rows=arrays[0], labels=arrays[1], **fields)


def _trained_tokens(example: Example, layout: Layout) -> Sequence[int]:
    """Return the tokens of a response, its end included, that have a loss; in a truncated one only the end has."""
    count = len(example.target) + 1
    if example.truncated:
        return [count - 1]
    if layout.before == 1:
        return range(count)
    random = Random(example.uniform)  # which differs in each epoch
    return [n for n in range(count) if random.random() < layout.before or n >= count - layout.last]


# ---- several examples per row


def _packs(examples: Sequence[Example], width: int) -> list[list[Example]]:
    """Return the examples in rows of at most `width` tokens, by best fit decreasing."""
    packs: list[list[Example]] = []
    free: list[tuple[int, int]] = []  # (tokens left, index of the row), sorted
    for example in sorted(examples, key=lambda e: (len(e.source) + len(e.target), e.name), reverse=True):
        size = len(example.source) + len(example.target)
        place = bisect_left(free, (size, -1))
        if place == len(free):
            left, number = width - size, len(packs)
            packs.append([example])
        else:
            left, number = free.pop(place)
            left -= size
            packs[number].append(example)
        if left > 0:
            insort(free, (left, number))
    return packs


def pack(packs: Sequence[Sequence[Example]], layout: Layout) -> Batch:
    """Return a batch with one pack per row. Position ids restart per example, so that transformers separates them."""
    width = max(layout.packing, *(sum(len(e.source) + len(e.target) for e in row) for row in packs))
    columns: dict[str, list[list[float]]] = {}
    places = []
    for number, row in enumerate(packs):
        used = 0
        for example in row:
            places.append(number * width + used + len(example.source) - 1)
            used += len(example.source) + len(example.target)
        cells = [_cells(example) for example in row]
        if rest := width - used:  # padding is one more example, without a loss
            padding = _cells(Example("", [], [layout.pad] * rest, [0] * rest, []))
            cells.append(padding | {"length": [1] * rest, "column": [0] * rest, "live": [0] * rest})
        for key in cells[0]:
            columns.setdefault(key, []).append([value for cell in cells for value in cell[key]])
    tensors = {key: torch.tensor(rows) for key, rows in columns.items()}  # (packs, width)
    fields: dict[str, Any] = {key: tensors.pop(key) for key in ("uniform", "max_shift")}
    fields["inputs"] = {key: tensors.pop(key) for key in ("input_ids", "position_ids")}
    if layout.signal:
        fields["packed"] = tensors | {key: tensors[key].bool() for key in ("live", "at_most")}
    return _batch([e for row in packs for e in row], places, layout, padded=len(packs) * width, **fields)


def _cells(example: Example) -> dict[str, Sequence[float]]:
    size, start = len(example.source) + len(example.target), len(example.source)
    return {
        "input_ids": example.source + example.target,
        "position_ids": list(range(size)),
        "position": _positions(example),
        "length": [example.length] * size,
        "column": list(range(-start, size - start)),
        "live": [1] * size,
        "unit": [example.unit] * size,
        "at_most": [int(example.at_most)] * size,
        "uniform": [example.uniform] * size,
        "max_shift": [example.max_shift] * size,
    }
