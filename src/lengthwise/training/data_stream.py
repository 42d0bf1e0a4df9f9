"""The stream of training batches: corpora are mixed, shuffled and batched in pools of documents, epoch by epoch.

A pool is a number of documents whose examples are batched together. It depends only on the recipe, the epoch and its
own number, so any worker can make it, and a resumed run does not make the earlier pools again. Corpora are never held
in memory.
"""

import math
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, cycle, islice
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from ..controls.length_tokens import QUANTILES, LengthTokens
from ..corpora import DataError, Document, Limits, Report, mix, read
from ..corpora.document import NoFile
from ..corpora.readers import missing
from .batches import Batch, Layout, batches
from .examples import ExampleMaker, Skipped
from .recipe import Corpora, Corpus, Recipe

_QUANTILE_SAMPLE = 20_000  # documents from which the quantiles of a corpus are estimated


@dataclass(frozen=True)
class Place:
    """A position in the data: the next batch is number `batch` of `pool` of `epoch`, or the first of the next pool."""

    epoch: int = 1
    pool: int = 0
    batch: int = 0
    documents: int = 0  # in the pools before this one, of all epochs
    share: float = 0.0  # of the epoch


@dataclass
class Pool:
    """Pool `number` of `epoch`, after `before` documents of all epochs."""

    epoch: int
    number: int
    before: int
    documents: int
    batches: list[Batch]
    skipped: Skipped


class Stream:
    """The endless sequence of a recipe's batches."""

    def __init__(self, recipe: Recipe, maker: ExampleMaker, layout: Layout, per_epoch: int) -> None:
        self.recipe, self.maker, self.layout, self.per_epoch = recipe, maker, layout, per_epoch
        self.skipped = Skipped()

    def from_(self, place: Place) -> Iterator[tuple[Batch, Place]]:
        """Yield each batch from `place` on, with the place after it."""
        empty = place.pool == 0 and place.batch == 0  # no batch in this epoch so far
        for pool in self._pools(place):
            if pool.number == 0 and pool.epoch > place.epoch:
                if empty:
                    raise _no_examples(self.recipe.data.train, self.skipped, self.recipe)
                empty = True
            self.skipped += pool.skipped
            first = place.batch if (pool.epoch, pool.number) == (place.epoch, place.pool) else 0
            for number in range(first, len(pool.batches)):
                empty = False
                read = pool.number * self.recipe.batch.pool + pool.documents * (number + 1) / len(pool.batches)
                share = min(read / max(self.per_epoch, 1), 1.0)
                yield pool.batches[number], Place(pool.epoch, pool.number, number + 1, pool.before, share)

    def _pools(self, place: Place) -> Iterable[Pool]:
        if not (workers := self.recipe.batch.workers):
            return self.pools_of_worker(place)
        options: dict[str, Any] = {"prefetch_factor": 2, "worker_init_fn": _start_worker}
        options["generator"] = torch.Generator()  # workers must not advance the default one, which dropout uses
        return map(_as_tensors, DataLoader(_Pools(self, place), batch_size=None, num_workers=workers, **options))

    def pools_of_worker(self, place: Place, own: int = 0, workers: int = 1) -> Iterator[Pool]:
        """Yield the pools from `place` on that worker number `own` makes: with n workers, every nth pool.

        The order of the pools is always the same. Each worker reads all documents, which is cheap, and starts the next
        epoch without waiting for the others.
        """
        size, number, before, tick = self.recipe.batch.pool, place.pool, place.documents, self.recipe.lengths.tick
        turns = cycle(range(workers))
        for epoch in count(place.epoch):
            documents = epoch_documents(self.recipe, epoch, consumed=number * size)
            while chunk := list(islice(documents, size)):
                if next(turns) == own:
                    random = Random(f"{self.recipe.seed}/{epoch}/{number}")
                    time = epoch if tick is None else 1 + before / tick
                    examples, skipped = self.maker.examples(chunk, time, random)
                    made = batches(examples, self.layout, random)
                    yield Pool(epoch, number, before, len(chunk), made, skipped)
                number, before = number + 1, before + len(chunk)
            number = 0


@dataclass
class _Pools(IterableDataset[Pool | DataError]):
    """The pools that the current worker process makes."""

    stream: Stream
    place: Place

    def __iter__(self) -> Iterator[Pool | DataError]:
        info = get_worker_info()
        assert info is not None
        try:
            for pool in self.stream.pools_of_worker(self.place, info.id, info.num_workers):
                # Arrays, because each tensor would need a file handle.
                yield replace(
                    pool, batches=[batch.map_tensors(lambda tensor: tensor.numpy()) for batch in pool.batches]
                )
        except DataError as error:
            yield error  # raised by the reader: an error that a worker raises arrives with tracebacks in its text


def epoch_documents(recipe: Recipe, epoch: int, *, consumed: int = 0) -> Iterator[Document]:
    """Return the training documents of an epoch, mixed and shuffled."""
    data = recipe.data
    sources = [(partial(read_corpus, corpus, recipe), corpus.weight) for corpus in data.train]
    limit = data.documents_per_epoch
    seed = recipe.seed + 1_000_003 * epoch
    documents = mix(sources, seed, endless=limit is not None, buffer=data.shuffle, consumed=consumed)
    return documents if limit is None else islice(documents, max(0, limit - consumed))


def with_thresholds(recipe: Recipe) -> Recipe:
    """Return the recipe with numbers for thresholds of length tokens that are quantiles of the corpus."""
    if not any(config.get("thresholds") == QUANTILES for config in recipe.controls):
        return recipe
    documents = islice(epoch_documents(recipe, epoch=0), _QUANTILE_SAMPLE)
    pairs = [pair for document in documents for pair in document.segments]

    def filled(config: dict[str, Any]) -> dict[str, Any]:
        if config.get("thresholds") != QUANTILES:
            return config
        names = config.get("names", LengthTokens().names)
        unit = next((unit for unit in recipe.unit if unit != "tokens"), "chars")  # there is no tokenizer yet
        return config | {"thresholds": list(LengthTokens.from_corpus(pairs, names, unit).thresholds)}

    return recipe.model_copy(update={"controls": [filled(config) for config in recipe.controls]})


def read_corpus(corpus: Corpus, recipe: Recipe, report: Report | None = None) -> Iterator[Document]:
    options = corpus.model_dump(exclude={"files", "weight"})
    limits = Limits(**recipe.data.model_dump(include={"max_chars", "max_ratio", "max_malformed", "duplicates"}))
    return read(corpus.files, **options, limits=limits, report=report)


def check_corpora(recipe: Recipe) -> None:
    """Raise an error that names every missing file, before any work on the others."""
    corpora = [*recipe.data.train, *(recipe.data.dev or [])]
    sources = [s for corpus in corpora for s in (corpus.files if isinstance(corpus.files, list) else [corpus.files])]
    absent = dict.fromkeys(name for source in sources for name in missing(source))
    if len(absent) > 1:
        raise NoFile(f"no files {', '.join(map(repr, absent))} (looked from {Path.cwd()})")
    for corpus in corpora:
        read_corpus(corpus, recipe)  # one missing file, or another fault in a name: raised here, not in a worker


def count_documents(recipe: Recipe) -> tuple[int, Report]:
    """Return the documents of an epoch, and a report that is empty if the recipe gives their number."""
    report = Report()
    if recipe.data.documents_per_epoch is not None:
        return recipe.data.documents_per_epoch, report
    return sum(1 for corpus in recipe.data.train for _ in read_corpus(corpus, recipe, report)), report


def dev_batches(recipe: Recipe, maker: ExampleMaker, layout: Layout) -> list[Batch]:
    """Return the dev batches. Lengths are drawn as in the last epoch, or with `train.steps` uniformly."""
    corpora = recipe.data.dev or []
    documents = [d for corpus in corpora for d in islice(read_corpus(corpus, recipe), recipe.data.dev_documents)]
    examples, skipped = maker.examples(documents, recipe.train.epochs or math.inf, Random(f"{recipe.seed}/dev"))
    if corpora and not examples:
        raise _no_examples(corpora, skipped, recipe)
    return batches(examples, replace(layout, before=1.0), Random(0))  # the dev loss is over every token


def _no_examples(corpora: Corpora, skipped: Skipped, recipe: Recipe) -> DataError:
    names = ", ".join(str(corpus.files) for corpus in corpora)
    return DataError(
        f"no example of {names} can be used: {skipped['empty']:,} are empty, {skipped['long']:,} have more than "
        f"data.max_tokens = {recipe.data.max_tokens} tokens, {skipped['excluded']:,} have a length in lengths.without"
    )


def _start_worker(number: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads do not survive a fork
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at Ctrl-C the loop completes its step, which needs batches


def _as_tensors(pool: Pool | DataError) -> Pool:
    if isinstance(pool, DataError):
        raise pool
    return replace(pool, batches=[batch.map_tensors(torch.from_numpy) for batch in pool.batches])
