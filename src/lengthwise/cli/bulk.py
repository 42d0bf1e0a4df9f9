"""Bulk work: `--engine ray` does the lines of a file or of stdin on the workers of a Ray cluster.

The lines are cut into the batches that one process would make of them, and each batch is done as there: the texts are
the same. With --journal, finished batches are kept in a file, and the same command resumes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .terminal import UsageError

if TYPE_CHECKING:
    from ..generation.generator import Written

T = TypeVar("T")
W = TypeVar("W", bound="Written")
Work = Callable[[Sequence[T]], Iterable[W]]  # from a batch of rows to their texts
RAY = "ray"


def in_turn(work: Work[T, W], batches: Iterable[Sequence[T]]) -> Iterator[tuple[Sequence[T], Iterable[W]]]:
    """Yield each batch with its texts, which this process makes."""
    for batch in batches:
        yield batch, work(batch)


def cluster(
    engine: str | None, device: str | None, address: str | None, workers: int | None, journal: Path | None, lines: bool
) -> "Cluster | None":
    """Return the cluster that the options ask for; None: this process does the work. `lines`: the input is lines."""
    name, _, inner = (engine or "").partition(":")
    if name != RAY:
        for option, given in (("--ray-address", address), ("--workers", workers), ("--journal", journal)):
            if given:
                raise UsageError(f"{option} is for --engine {RAY}")
        return None
    from ..generation.load import ENGINES

    if inner and inner not in ENGINES:
        names = " or ".join(f"{RAY}:{one}" for one in ENGINES)
        raise UsageError(f"--engine {RAY} may name the engine of its workers, {names}; got {engine!r}")
    if not lines:
        raise UsageError(f"--engine {RAY} is for lines of text: give a text file, or - and lines on stdin")
    return Cluster(inner or None, device, address, workers, journal)


@dataclass(frozen=True)
class Cluster:
    """The cluster that was asked for. `engine`: that of its workers. None: the default."""

    engine: str | None
    device: str | None
    address: str | None
    workers: int | None
    journal: Path | None

    def run(
        self, make: "partial[Work[T, W]]", batches: Iterable[Sequence[T]], size: int, kind: type[W]
    ) -> Iterator[tuple[Sequence[T], list[W]]]:
        """Yield batches of `size` rows with their texts, in the order of the rows.

        `make` is called in each worker, with a device and `engine`, and returns what does a batch. Its arguments and
        the rows decide the texts: a journal is resumed only if they are the same. `kind`: the class of the texts.
        """
        from ..integrations.ray import spread
        from ..translation.journal import Journal

        rows = chain.from_iterable(batches)
        cut = dict(enumerate(iter(lambda: list(islice(rows, size)), [])))
        settings = make.keywords | {"engine": self.engine, "device": self.device, "lines": _digest(cut)}
        settings = {name: None if value is None else str(value) for name, value in settings.items()}
        journal = Journal(self.journal, settings, alone=True, option="--journal")
        done = {row["batch"]: [_restored(kind, one) for one in row["texts"]] for [row] in journal.stored() if row}
        left = {number: batch for number, batch in cut.items() if number not in done}
        fresh = spread(
            partial(_lists, make, engine=self.engine),
            left,
            address=self.address,
            workers=self.workers,
            device=self.device,
        )
        for turn, batch in cut.items():
            while turn not in done:
                number, texts = next(fresh)
                journal.append([{"batch": number, "texts": [asdict(one) for one in texts]}])
                done[number] = texts
            yield batch, done.pop(turn)
        journal.unlink()
        journal.close()


def batch_work(
    cluster: Cluster | None, make: "partial[Work[T, W]]", size: int, kind: type[W], device: str | None, **here: Any
) -> Callable[[Iterable[Sequence[T]]], Iterator[tuple[Sequence[T], Iterable[W]]]]:
    """Return what does batches of rows: the cluster, or this process, which loads the models now.

    `here`: more arguments of `make` in this process.
    """
    if cluster:
        return partial(cluster.run, make, size=size, kind=kind)
    return partial(in_turn, make(device, **here))


def _lists(make: "partial[Work[T, W]]", device: str | None, **options: Any) -> Callable[[Sequence[T]], list[W]]:
    """Return what makes the texts of a batch, as lists: a worker cannot send an iterator."""
    work = make(device, **options)
    return lambda rows: list(work(rows))


def _digest(value: Any) -> str:
    return blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _restored(kind: type[W], row: dict[str, Any]) -> W:
    """Return the text that `asdict` has turned into plain values."""
    return kind(**row | {"candidates": [_restored(kind, one) for one in row["candidates"]], "ids": tuple(row["ids"])})
