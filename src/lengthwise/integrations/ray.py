"""Ray: hand out batches to the workers of a Ray cluster, each of which loads its model once.

A worker that dies is replaced, and its batch is done again. A batch goes only to a worker that is ready: a replacement
may wait for a machine, and nothing else waits for it. Knows neither models nor lengths.
"""

import logging
import os
import re
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import how_to_install
from ..version import __version__

T = TypeVar("T")
R = TypeVar("R")
Make = Callable[[str], Callable[[T], R]]  # from a device, "cpu" or "cuda", to the function that does a batch

CORES = 4  # of a worker without a GPU, if the number of workers is not given
MAX_DEATHS = 3  # of workers with the same batch, or before they are ready
_HOST_PORT = re.compile(r"(?:ray://)?(?P<host>.+):(?P<port>\d+)")


class WorkersDied(OSError):
    """Workers died again and again, with the same batch or before they were ready."""


@dataclass(frozen=True)
class Placement:
    """How many workers there are, and what each of them has."""

    workers: int
    cores: int
    gpus: int = 0

    @property
    def device(self) -> str:
        return "cuda" if self.gpus else "cpu"


def placement(
    nodes: Sequence[Mapping[str, float]], workers: int | None, device: str | None, *, what: str = "worker"
) -> Placement:
    """Return one worker per GPU, or one per group of cores; `nodes`: the resources of each machine, "CPU" and "GPU".

    `workers`: the number wanted; the cores are then divided among them. `device`: "cpu", "cuda", or None for the GPUs
    if there are any. A worker never spans two machines. `what`: what errors call a worker.
    """
    if device not in (None, "cpu", "cuda"):
        raise ValueError(f"Ray chooses the GPU of each {what}; the device is cpu or cuda, got {device!r}")
    gpus = int(sum(node.get("GPU", 0) for node in nodes))
    if device == "cuda" or (device is None and gpus):
        _check(workers, gpus, "GPUs", what)
        # A worker with a core waits forever for one on a machine that lends more GPUs than cores.
        enough = all(node.get("CPU", 0) >= node["GPU"] for node in nodes if node.get("GPU", 0))
        return Placement(workers or gpus, 1 if enough else 0, 1)
    cores = [int(node.get("CPU", 0)) for node in nodes if node.get("CPU", 0) >= 1]
    _check(workers, sum(cores), "cores", what)
    if workers is None:
        size = min(CORES, *cores)  # every machine has room for one
        return Placement(sum(count // size for count in cores), size)
    size = next(size for size in range(max(cores), 0, -1) if sum(count // size for count in cores) >= workers)
    return Placement(workers, size)


def _check(wanted: int | None, found: int, resource: str, what: str) -> None:
    if wanted is None and not found:
        raise ValueError(f"the cluster has 0 {resource}, and a {what} needs one")
    if wanted is not None and not 1 <= wanted <= found:
        raise ValueError(f"{wanted} {what}s were asked for; the cluster has {found} {resource}, and a {what} needs one")


def spread(
    make: Make[T, R],
    batches: Mapping[int, T],
    *,
    address: str | None = None,
    workers: int | None = None,
    device: str | None = None,
) -> Iterator[tuple[int, R]]:
    """Yield the number of each batch with its result, as soon as it is there. Each comes once.

    `make` is called once in each worker, so it and the batches must be picklable. `address`: of the cluster; None takes
    $RAY_ADDRESS, or else starts one on this machine for the time of the work.
    An exception that `make` or its function raises ends the work.
    """
    try:
        ray = quiet_ray()
    except ImportError:
        raise ImportError(f"this needs ray, which is not installed; {how_to_install('ray')}") from None
    own = not ray.is_initialized()
    if own:
        connect(ray, address or os.environ.get("RAY_ADDRESS") or "local")
    try:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        yield from _Pool(ray, make, placement(nodes, workers, device)).run(batches)
    finally:
        if own:
            ray.shutdown()


def quiet_ray() -> Any:
    """Return the module `ray`, which neither sends statistics nor prints what its processes say."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Without it, Ray prints to stdout, among the texts, that a worker has died. It is read when ray is imported.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    import ray

    return ray


def connect(ray: Any, address: str) -> None:
    """Connect to the cluster at `address`; "local" starts one on this machine."""
    try:
        if found := _HOST_PORT.fullmatch(address):  # Ray tries for minutes
            socket.create_connection((found["host"].strip("[]"), int(found["port"])), timeout=10).close()
        ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        why = str(error).strip().partition("\n")[0]
        raise ConnectionError(f"cannot use the Ray cluster {address}: {why}; `ray start --head` starts one") from error


class _Worker:
    """What runs in the cluster."""

    work: Callable[[Any], Any]

    def load(self, make: Make[Any, Any], device: str, version: str) -> None:
        if version != __version__:
            raise ValueError(f"the workers have lengthwise {__version__}, this machine has {version}; install the same")
        self.work = make(device)

    def run(self, batch: Any) -> Any:
        return self.work(batch)


class _Pool:
    """The workers. `busy`: the calls under way, each with its worker and the batch it has, or None while it loads."""

    def __init__(self, ray: Any, make: Make[Any, Any], place: Placement) -> None:
        self.ray, self.make, self.place = ray, make, place
        self.remote = ray.remote(num_cpus=place.cores, num_gpus=place.gpus, max_restarts=0)(_Worker)
        self.busy: dict[Any, tuple[Any, int | None]] = {}
        self.idle: list[Any] = []
        self.deaths: Counter[int | None] = Counter()

    def run(self, batches: Mapping[int, Any]) -> Iterator[tuple[int, Any]]:
        waiting, left = deque(batches), len(batches)
        for _ in range(min(self.place.workers, left)):
            self._start()
        while left:
            [call], _ = self.ray.wait(list(self.busy))
            worker, number = self.busy.pop(call)
            try:
                result = self.ray.get(call)
            except self.ray.exceptions.RayTaskError as error:  # an exception of `make` or its function
                raise error.cause or error from None
            except self.ray.exceptions.RayError as error:  # the worker, its machine, or the result is gone
                self._replace(worker, number, error)
                waiting.extendleft(() if number is None else (number,))
                number = None
            else:
                self.idle.append(worker)
                self.deaths[None] = 0
            while self.idle and waiting:
                ready, given = self.idle.pop(), waiting.popleft()
                self.busy[ready.run.remote(batches[given])] = ready, given
            if number is not None:
                left -= 1
                yield number, result

    def _start(self) -> None:
        worker = self.remote.remote()
        self.busy[worker.load.remote(self.make, self.place.device, __version__)] = worker, None

    def _replace(self, worker: Any, number: int | None, error: Exception) -> None:
        """Start another worker, unless too many have died at the same point; `number`: None while it loaded."""
        self.deaths[number] += 1
        if self.deaths[number] >= MAX_DEATHS:
            where = "before they were ready" if number is None else f"with batch {number + 1}"
            raise WorkersDied(f"{MAX_DEATHS} workers died {where}: {' '.join(str(error).split())}") from error
        self.ray.kill(worker)
        self._start()
