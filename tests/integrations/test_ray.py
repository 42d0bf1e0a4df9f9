"""Batches on a cluster: every batch once, whatever dies. Two machines of a real cluster where ray is installed."""

import os
import signal
import sys
from pathlib import Path

import pytest

from integrations.ray_stand_in import Ray
from lengthwise.integrations import ray as module
from lengthwise.integrations.ray import Placement, WorkersDied, _Pool, placement, spread

BATCHES = {number: f"batch {number}" for number in range(7)}
UPPER = {number: text.upper() for number, text in BATCHES.items()}


@pytest.mark.parametrize(
    ("nodes", "workers", "device", "expected"),
    [
        ([{"CPU": 2}], None, None, Placement(1, 2)),
        ([{"CPU": 16}], None, None, Placement(4, 4)),
        ([{"CPU": 16}, {"CPU": 2}], None, None, Placement(9, 2)),  # the small machine has a worker, too
        ([{"CPU": 8}, {"CPU": 8}], 2, None, Placement(2, 8)),
        ([{"CPU": 8}, {"CPU": 8}], 3, None, Placement(3, 4)),
        ([{"CPU": 1}, {"CPU": 1}], 2, None, Placement(2, 1)),
        ([{"CPU": 32, "GPU": 4}, {"CPU": 8}], None, None, Placement(4, 1, 1)),
        ([{"CPU": 32, "GPU": 4}], 2, "cuda", Placement(2, 1, 1)),
        ([{"CPU": 2, "GPU": 4}], None, None, Placement(4, 0, 1)),
        ([{"CPU": 8, "GPU": 2}, {"GPU": 1}], None, None, Placement(3, 0, 1)),
        ([{"CPU": 8, "GPU": 4}], None, "cpu", Placement(2, 4)),
        ([{"CPU": 8}, {"memory": 1.0}], None, None, Placement(2, 4)),  # a machine that lends no core
    ],
)
def test_placement(nodes, workers, device, expected):
    assert placement(nodes, workers, device) == expected
    assert placement(nodes, workers, device).device == ("cuda" if expected.gpus else "cpu")


@pytest.mark.parametrize(
    ("nodes", "workers", "device", "message"),
    [
        ([{"CPU": 2}], 3, None, "3 workers were asked for; the cluster has 2 cores"),
        ([{"CPU": 2, "GPU": 1}], 2, None, "2 workers were asked for; the cluster has 1 GPUs"),
        ([{"CPU": 2}], None, "cuda", "^the cluster has 0 GPUs, and a worker needs one"),
        ([{"CPU": 2}], None, "cuda:1", "Ray chooses the GPU of each worker"),
        ([{"memory": 1.0}], None, None, "^the cluster has 0 cores"),
    ],
)
def test_a_cluster_that_is_too_small(nodes, workers, device, message):
    with pytest.raises(ValueError, match=message):
        placement(nodes, workers, device)


def run(ray, workers=2, work=str.upper):
    made = []

    def make(device):
        made.append(device)
        return work

    return list(_Pool(ray, make, Placement(workers, 3)).run(BATCHES)), made


@pytest.mark.parametrize("choose", [lambda calls: calls[0], lambda calls: calls[-1]])
def test_each_batch_is_done_once(choose):
    ray = Ray(choose=choose)
    results, made = run(ray)
    assert sorted(results) == sorted(UPPER.items())
    assert sorted(ray.done) == sorted(BATCHES.values())
    assert len(made) <= ray.started == 2
    assert set(made) == {"cpu"}
    assert ray.resources == {"num_cpus": 3, "num_gpus": 0, "max_restarts": 0}


def test_no_more_workers_than_batches():
    ray = Ray()
    run(ray, workers=50)
    assert ray.started == len(BATCHES)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("deaths", [{"batch 0": 1}, {"batch 6": 2}, {"batch 1": 1, "batch 2": 2}, {None: 2}])
def test_the_batch_of_a_dead_worker_is_done_again(deaths, workers):
    ray = Ray(deaths)
    results, _ = run(ray, workers)
    assert sorted(results) == sorted(UPPER.items())
    assert sorted(ray.done) == sorted(BATCHES.values())
    assert ray.started - workers == ray.killed == sum(deaths.values())


@pytest.mark.parametrize(("key", "where"), [("batch 2", "with batch 3"), (None, "before they were ready")])
def test_what_kills_every_worker_ends_the_work(key, where):
    ray = Ray({key: 99})
    with pytest.raises(WorkersDied, match=f"3 workers died {where}: killed with {key}"):
        run(ray)


def test_an_exception_of_the_work_reaches_the_caller():
    def work(batch):
        raise LookupError(f"no {batch}")

    with pytest.raises(LookupError, match="no batch"):
        run(Ray(), work=work)


def test_workers_with_another_version():
    worker = module._Worker()
    with pytest.raises(ValueError, match=r"the workers have lengthwise \S+, this machine has 0\.0\.0"):
        worker.load(lambda device: str.upper, "cpu", "0.0.0")


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[ray\]'"):
        next(spread(lambda device: str.upper, BATCHES))


@pytest.fixture
def two_machines():
    """Yield a cluster of two machines with a core each, and the second of them. They run on this machine."""
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install '.[ray]'")
    from ray.cluster_utils import Cluster

    memory = 80_000_000  # bytes, the least that Ray accepts
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": memory})
    second = cluster.add_node(num_cpus=1, object_store_memory=memory)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster, second
    ray.shutdown()
    cluster.shutdown()


def test_two_machines_of_which_one_is_lost(two_machines, tmp_path):
    """A worker is killed in the middle of its batch. Then a machine is lost, and the other one does the rest."""
    cluster, second = two_machines
    flag = tmp_path / "killed"

    def make(device):
        def work(batch):
            if batch == 5 and not Path(flag).exists():
                Path(flag).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return batch * batch, os.getpid()

        return work

    found = []
    for number, (square, process) in spread(make, {n: n for n in range(40)}):
        found.append((number, square, process))
        if len(found) == 20:
            cluster.remove_node(second, allow_graceful=False)
    assert sorted((number, square) for number, square, _ in found) == [(n, n * n) for n in range(40)]
    assert flag.exists()
    assert len({process for *_, process in found}) >= 2
