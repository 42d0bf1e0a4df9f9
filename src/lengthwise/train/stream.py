"""The stream of batches: corpora, mixed and shuffled, pool by pool and epoch after epoch.

A pool is so many documents, read in an order that the seed decides, made into examples and batches together. It depends
on the recipe, the epoch and its own number alone, so any worker can make it, and a run that was cut off finds its place
without making the pools before it. Corpora are never held in memory. Knows nothing of models and devices.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from random import Random
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from ..data import DataError, Document, Report, mix, read
from .batches import Batch, Layout, batches
from .examples import ExampleMaker, Skipped
from .recipe import Corpora, Corpus, Recipe


@dataclass(frozen=True)
class Place:
    """How far a run has come in its data: the next batch is number `batch` of `pool` of `epoch`."""

    epoch: int = 1
    pool: int = 0
    batch: int = 0
    documents: int = 0  # in whole pools so far, of all epochs
    share: float = 0.0  # of the epoch


@dataclass
class Pool:
    """Documents that were batched together."""

    documents: int
    batches: list[Batch]
    skipped: Skipped = field(default_factory=Skipped)


class Stream:
    """The batches of a recipe, without end."""

    def __init__(self, recipe: Recipe, maker: ExampleMaker, layout: Layout, per_epoch: int) -> None:
        self.recipe, self.maker, self.layout, self.per_epoch = recipe, maker, layout, per_epoch
        self.skipped = Skipped()

    def from_(self, place: Place) -> Iterator[tuple[Batch, Place]]:
        """Each batch, and the place behind it."""
        while True:
            any_here = place.pool > 0
            for pool in self._pools(place):
                self.skipped += pool.skipped
                after = place.documents + pool.documents
                before_share, count = place.pool * self.recipe.batch.pool, len(pool.batches)
                for number in range(place.batch, count):
                    share = (before_share + pool.documents * (number + 1) / count) / max(self.per_epoch, 1)
                    place = Place(place.epoch, place.pool, number + 1, place.documents, min(share, 1.0))
                    any_here = True
                    yield pool.batches[number], place
                place = Place(place.epoch, place.pool + 1, 0, after, place.share)
            if not any_here:
                raise DataError(
                    f"no example of {_names(self.recipe.data.train)} can be used: {self.skipped.empty:,} are empty and "
                    f"{self.skipped.long:,} have more than data.max_tokens = {self.recipe.data.max_tokens} tokens"
                )
            place = Place(place.epoch + 1, 0, 0, place.documents, 0.0)

    def _pools(self, place: Place) -> Iterable[Pool]:
        dataset = _Pools(self.recipe, self.maker, self.layout, place)
        workers = self.recipe.batch.workers
        if not workers:
            return dataset
        options: dict[str, Any] = {"prefetch_factor": 2, "worker_init_fn": _start_worker}
        loader = DataLoader(dataset, batch_size=None, num_workers=workers, collate_fn=_same, **options)
        return map(_as_tensors, loader)


class _Pools(IterableDataset[Pool]):
    """The pools of one epoch from a place on; each worker of n makes every nth, so their order is always the same."""

    def __init__(self, recipe: Recipe, maker: ExampleMaker, layout: Layout, place: Place) -> None:
        self.recipe, self.maker, self.layout, self.place = recipe, maker, layout, place

    def __iter__(self) -> Iterator[Pool]:
        info = get_worker_info()
        own, workers = (info.id, info.num_workers) if info else (0, 1)
        size, place = self.recipe.batch.pool, self.place
        documents = epoch_documents(self.recipe, place.epoch, consumed=place.pool * size)
        number = 0
        while chunk := list(islice(documents, size)):
            if number % workers == own:
                pool = self._pool(chunk, place.pool + number, place.documents + number * size)
                yield _as_arrays(pool) if info else pool
            number += 1

    def _pool(self, documents: list[Document], number: int, before: int) -> Pool:
        recipe, epoch = self.recipe, self.place.epoch
        random = Random(f"{recipe.seed}/{epoch}/{number}")
        tick = recipe.lengths.tick
        examples, skipped = self.maker.examples(documents, epoch if tick is None else 1 + before / tick, random)
        return Pool(len(documents), batches(examples, self.layout, random), skipped)


def epoch_documents(recipe: Recipe, epoch: int, *, consumed: int = 0) -> Iterator[Document]:
    """The training documents of an epoch, mixed and shuffled."""
    data = recipe.data
    sources = [(partial(_opened, corpus, recipe), corpus.weight) for corpus in data.train]
    endless = data.documents_per_epoch is not None
    seed = recipe.seed + 1_000_003 * epoch
    documents = mix(sources, seed, endless=endless, buffer=data.shuffle, consumed=consumed)
    return islice(documents, max(0, (data.documents_per_epoch or 0) - consumed)) if endless else documents


def _opened(corpus: Corpus, recipe: Recipe, report: Report | None = None) -> Iterator[Document]:
    return read(
        corpus.files,
        format=corpus.format,
        fields=corpus.fields,
        blank_lines=corpus.blank_lines,
        limits=recipe.data.limits(),
        report=report,
    )


def count_documents(recipe: Recipe) -> tuple[int, Report]:
    """Documents in an epoch, and what became of the corpus. Reads it once, unless the recipe says how many."""
    report = Report()
    if recipe.data.documents_per_epoch is not None:
        return recipe.data.documents_per_epoch, report
    count = sum(1 for corpus in recipe.data.train for _ in _opened(corpus, recipe, report))
    return count, report


def dev_batches(recipe: Recipe, maker: ExampleMaker, layout: Layout) -> list[Batch]:
    """The dev set, cut as at the end of the training. In memory: it is read many times, and small."""
    corpora = recipe.data.dev or []
    documents = [d for corpus in corpora for d in islice(_opened(corpus, recipe), recipe.data.dev_documents)]
    examples, skipped = maker.examples(documents, recipe.train.epochs or 1, Random(f"{recipe.seed}/dev"))
    if corpora and not examples:
        raise DataError(f"no example of {_names(corpora)} can be used: {skipped.empty} empty, {skipped.long} too long")
    return batches(examples, layout, Random(0))


def _names(corpora: Corpora) -> str:
    return ", ".join(str(corpus.files) for corpus in corpora)


# ---- between processes: arrays, not tensors, each of which would take a file handle


def _start_worker(number: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads did not survive the fork
    torch.set_num_threads(1)


def _same(item: Any) -> Any:
    return item


def _as_arrays(pool: Pool) -> Pool:
    return Pool(pool.documents, [batch.each(lambda tensor: tensor.numpy()) for batch in pool.batches], pool.skipped)


def _as_tensors(pool: Pool) -> Pool:
    return Pool(pool.documents, [batch.each(torch.from_numpy) for batch in pool.batches], pool.skipped)
