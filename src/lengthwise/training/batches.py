"""Batches: examples of like length side by side, as tensors that a model takes as they are.

A batch holds at most so many tokens, padding included. Rows are padded on the right: a causal model then never looks at
the padding and needs no mask, which lets the fastest attention run. Losses are taken on response rows only, so a batch
says which they are. Knows nothing of files, epochs or the device.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import torch
from torch import Tensor

from .examples import Example


@dataclass(frozen=True)
class Layout:
    """How a model wants its batches."""

    tokens: int  # padded tokens of both sides, at most
    multiple: int
    encoder_decoder: bool
    pad: int
    end: int
    first: int | None = None  # what the decoder of an encoder-decoder reads first
    signal: bool = False  # a control counts: lengths and positions go along
    mask: bool = False  # decoder-only: a control needs to know the padding
    packing: int = 0  # decoder-only: the width of rows that hold several examples; 0: one example a row
    last: int = 0  # tokens at a response's end that are all learnt
    before: float = 1.0  # the share that is learnt of those before them


@dataclass(frozen=True)
class Batch:
    """What goes through the model at once."""

    inputs: dict[str, Tensor]  # the model's arguments
    rows: Tensor  # (responses,) which of the batch × time hidden states predict a token of a response
    labels: Tensor  # (responses,) that token; -100 where there is nothing to learn
    chance: Tensor  # (batch,), or (batch, time) if packed: a draw from [0, 1) for each example
    furthest: Tensor  # of the same shape: the most that the example's length may be shifted
    names: list[str]
    responses: int  # tokens to learn, ends included
    tokens: int  # real ones, of both sides
    padded: int  # all of them
    packed: dict[str, Tensor] = field(default_factory=dict)  # the signal at each token of packed rows

    def to(self, device: torch.device) -> "Batch":
        """On `device`, without waiting for the transfer."""

        def move(tensor: Tensor) -> Tensor:
            # From memory that may be paged out, the copy would wait for all that the GPU has still to do.
            pinned = tensor.pin_memory() if device.type == "cuda" else tensor
            return pinned.to(device, non_blocking=True)

        return self.each(move)

    def each(self, change: Callable[[Any], Any]) -> "Batch":
        """The batch with `change` applied to each of its tensors."""
        return replace(self.by_row(change), rows=change(self.rows), labels=change(self.labels))

    def by_row(self, change: Callable[[Any], Any]) -> "Batch":
        """The batch with `change` applied to each tensor that has a row for each example, or pack of them."""
        return replace(
            self,
            inputs={key: change(value) for key, value in self.inputs.items()},
            packed={key: change(value) for key, value in self.packed.items()},
            chance=change(self.chance),
            furthest=change(self.furthest),
        )

    def muted(self) -> "Batch":
        """The same batch with nothing to learn: for a process that has none left while others do."""
        return replace(self, labels=torch.full_like(self.labels, -100), responses=0, tokens=0)

    def lengthened(self, shift: Tensor) -> "Batch":
        """Every example's length moved up by its `shift`, of the shape of `chance`."""
        if self.packed:
            return replace(self, packed=self.packed | {"length": self.packed["length"] + shift})
        return replace(self, inputs=self.inputs | {"decoder_length": self.inputs["decoder_length"] + shift})


def batches(examples: Sequence[Example], layout: Layout, random: Random) -> list[Batch]:
    """The examples in batches, in an order that `random` decides."""
    if layout.packing:
        per_batch = max(1, layout.tokens // layout.packing)
        packs = _packs(examples, layout.packing)
        _shuffle(packs, random)
        return [pack(packs[n : n + per_batch], layout) for n in range(0, len(packs), per_batch)]
    groups = _groups(examples, layout)
    _shuffle(groups, random)
    return [collate(group, layout) for group in groups]


def _shuffle(items: list[Any], random: Random) -> None:
    # Of Random, only random() is promised to be the same in every version of Python.
    for n in range(len(items) - 1, 0, -1):
        other = int(random.random() * (n + 1))
        items[n], items[other] = items[other], items[n]


def _groups(examples: Sequence[Example], layout: Layout) -> list[list[Example]]:
    """Examples of like size together, as many as fit.

    Sorted by one side, an encoder-decoder's other side would be half padding: so sources are cut into strata, each in
    the order of its targets. How many strata leave the least padding depends on the corpus; trying costs little.
    """
    counts = range(1, 9) if layout.encoder_decoder else (1,)
    tried = [_filled_up(_strata(examples, count, layout), layout) for count in counts]
    return min(tried, key=lambda found: found[1])[0]


def _strata(examples: Sequence[Example], count: int, layout: Layout) -> list[Example]:
    """Longest sources first, in `count` strata; in them targets fall and rise by turns, so that seams are smooth."""
    ordered = sorted(examples, key=lambda e: (*_sizes(e, layout), e.name), reverse=True)
    if count == 1:
        return ordered
    height = -(-len(ordered) // count)
    strata = [ordered[n * height : (n + 1) * height] for n in range(count)]
    turns = [sorted(s, key=lambda e: (len(e.target), e.name), reverse=n % 2 == 0) for n, s in enumerate(strata)]
    return [example for stratum in turns for example in stratum]


def _filled_up(ordered: Sequence[Example], layout: Layout) -> tuple[list[list[Example]], int]:
    """Groups of neighbours, as many as fit; and the padded tokens of all."""
    groups: list[list[Example]] = []
    sizes: list[int] = []
    widest = (0, 0)
    for example in ordered:
        source, target = (up(size, layout.multiple) for size in _sizes(example, layout))
        grown = (max(widest[0], source), max(widest[1], target))
        if groups and (len(groups[-1]) + 1) * sum(grown) <= layout.tokens:
            groups[-1].append(example)
            widest = grown
            sizes[-1] = len(groups[-1]) * sum(grown)
        else:
            groups.append([example])
            widest = (source, target)
            sizes.append(source + target)
    return groups, sum(sizes)


def _sizes(example: Example, layout: Layout) -> tuple[int, int]:
    """Tokens on either side; a decoder-only model has one."""
    source, target = len(example.source), len(example.target)
    return (source, target + 1) if layout.encoder_decoder else (source + target, 0)


def up(count: int, multiple: int) -> int:
    """`count`, rounded up to a multiple, and to one of eight sizes between each power of two and the next.

    Few sizes, so that what is made for a batch's shape can be used again: 100 → 104, 200 → 208, 390 → 416.
    """
    step = -(-(1 << max(0, count.bit_length() - 4)) // multiple) * multiple
    return -(-count // step) * step


# ---- one example a row


def collate(examples: Sequence[Example], layout: Layout) -> Batch:
    """Examples as one batch, a row each."""
    if layout.encoder_decoder:
        assert layout.first is not None
        first = layout.first
        inputs = {"input_ids": _filled([e.source for e in examples], layout.pad, layout.multiple)}
        inputs["attention_mask"] = _filled([[1] * len(e.source) for e in examples], 0, layout.multiple)
        inputs["decoder_input_ids"] = _filled([[first, *e.target] for e in examples], layout.pad, layout.multiple)
        starts, positions = [1] * len(examples), [[0, *e.counts] for e in examples]
        padded = inputs["input_ids"].numel() + inputs["decoder_input_ids"].numel()
        width = inputs["decoder_input_ids"].shape[1]
    else:
        inputs = {"input_ids": _filled([e.source + e.target for e in examples], layout.pad, layout.multiple)}
        if layout.mask:
            ones = [[1] * (len(e.source) + len(e.target)) for e in examples]
            inputs["attention_mask"] = _filled(ones, 0, layout.multiple)
        starts, positions = [len(e.source) for e in examples], [_positions(e) for e in examples]
        padded, width = inputs["input_ids"].numel(), inputs["input_ids"].shape[1]
    if layout.signal:
        inputs["decoder_length"] = torch.tensor([e.length for e in examples])
        inputs["decoder_start"] = torch.tensor(starts)
        inputs["decoder_position"] = _filled(positions, 0, layout.multiple)
        inputs["decoder_unit"] = torch.tensor([e.unit for e in examples])
        inputs["decoder_at_most"] = torch.tensor([e.at_most for e in examples])
    places = [row * width + start - 1 for row, start in enumerate(starts)]
    drawn = (torch.tensor([e.chance for e in examples]), torch.tensor([e.furthest for e in examples]))
    return _batch(examples, places, layout, inputs, padded, drawn)


def _filled(rows: Sequence[list[int]], filler: int, multiple: int) -> Tensor:
    """(rows, widest), filled up on the right."""
    width = up(max(map(len, rows)), multiple)
    return torch.tensor([row + [filler] * (width - len(row)) for row in rows])


def _positions(example: Example) -> list[int]:
    """Units written at each token of prompt and response; in the prompt below 0: what of it is still to be read."""
    if not any(example.costs):
        return [0] * len(example.source) + example.counts
    before, to_read = [], 0
    for cost in reversed(example.costs):
        before.append(-to_read)
        to_read += cost
    return before[::-1] + example.counts


def _batch(
    examples: Sequence[Example],
    places: Sequence[int],
    layout: Layout,
    inputs: dict[str, Tensor],
    padded: int,
    drawn: tuple[Tensor, Tensor],
    packed: dict[str, Tensor] | None = None,
) -> Batch:
    """`places`: of each example, the (flat) place at which its first target token is predicted."""
    rows, labels = [], []
    for place, example in zip(places, examples, strict=True):
        wanted = _learnt(example, layout)
        rows += [place + n for n in wanted]
        labels += [example.target[n] if n < len(example.target) else layout.end for n in wanted]
    tokens = sum(len(e.source) + len(e.target) + layout.encoder_decoder for e in examples)
    return Batch(
        inputs=inputs,
        rows=torch.tensor(rows),
        labels=torch.tensor(labels),
        chance=drawn[0],
        furthest=drawn[1],
        names=[e.name for e in examples],
        responses=len(labels),
        tokens=tokens,
        padded=padded,
        packed=packed or {},
    )


def _learnt(example: Example, layout: Layout) -> Sequence[int]:
    """Which tokens of a response, its end included, are learnt: all, or the last ones and a share of the others.

    Of a torn one only the end.
    """
    count = len(example.target) + 1
    if example.torn:
        return [count - 1]
    if layout.before == 1:
        return range(count)
    random = Random(example.chance)  # drawn anew with the example in each epoch
    return [n for n in range(count) if random.random() < layout.before or n >= count - layout.last]


# ---- several examples a row


def _packs(examples: Sequence[Example], width: int) -> list[list[Example]]:
    """Examples in rows of at most `width` tokens, each in the fullest row that still takes it (best fit decreasing)."""
    packs: list[list[Example]] = []
    room: list[tuple[int, int]] = []  # (tokens left, number of the row), sorted
    for example in sorted(examples, key=lambda e: (len(e.source) + len(e.target), e.name), reverse=True):
        size = len(example.source) + len(example.target)
        place = bisect_left(room, (size, -1))
        if place == len(room):
            left, number = width - size, len(packs)
            packs.append([example])
        else:
            left, number = room.pop(place)
            left -= size
            packs[number].append(example)
        if left > 0:
            insort(room, (left, number))
    return packs


def pack(packs: Sequence[Sequence[Example]], layout: Layout) -> Batch:
    """Each pack in a row. Positions start anew with each example; by that, transformers keeps them apart."""
    widest = max(sum(len(e.source) + len(e.target) for e in row) for row in packs)
    width = max(layout.packing, widest)
    columns: dict[str, list[list[float]]] = {}
    places = []
    for number, row in enumerate(packs):
        cells = [_cells(e) for e in row]
        used = 0
        for example in row:
            places.append(number * width + used + len(example.source) - 1)
            used += len(example.source) + len(example.target)
        cells.append(_empty(width - used, layout))
        for key in cells[0]:
            columns.setdefault(key, []).append([value for cell in cells for value in cell[key]])
    tensors = {key: torch.tensor(rows) for key, rows in columns.items()}  # (packs, width)
    inputs = {key: tensors.pop(key) for key in ("input_ids", "position_ids")}
    drawn = (tensors.pop("chance"), tensors.pop("furthest"))
    signal = tensors | {key: tensors[key].bool() for key in ("live", "at_most")} if layout.signal else {}
    flat = [example for row in packs for example in row]
    return _batch(flat, places, layout, inputs, len(packs) * width, drawn, signal)


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
        "chance": [example.chance] * size,
        "furthest": [example.furthest] * size,
    }


def _empty(size: int, layout: Layout) -> dict[str, Sequence[float]]:
    """Padding: an example of its own that nothing is learnt from."""
    zeros = [0] * size
    return {
        "input_ids": [layout.pad] * size,
        "position_ids": list(range(size)),
        "position": zeros,
        "length": [1] * size,
        "column": zeros,
        "live": zeros,
        "unit": zeros,
        "at_most": zeros,
        "chance": [0.0] * size,
        "furthest": zeros,
    }
