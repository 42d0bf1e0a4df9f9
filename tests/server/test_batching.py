"""The queue and its worker, without models."""

import threading
from concurrent.futures import CancelledError

import pytest

from lengthwise.server.batching import Closed, Job, QueueFull, Worker


class Work:
    """A function of a worker that records its batches and waits for its gate."""

    def __init__(self):
        self.batches, self.gate, self.begun = [], threading.Event(), threading.Event()

    def __call__(self, options, payloads):
        self.begun.set()
        assert self.gate.wait(30)
        self.batches.append((options, list(payloads)))
        if "bad" in payloads:
            raise ValueError("a bad payload")
        for place in reversed(range(len(payloads))):
            yield place, payloads[place] * 2


@pytest.fixture
def work():
    return Work()


@pytest.fixture
def worker():
    made = Worker("tests", batch=4, queue=8)
    yield made
    made.close()
    made.join(10)


def submit(worker, work, payloads, options="a", rows=1):
    jobs = [Job(work, options, payload, rows) for payload in payloads]
    worker.submit(jobs)
    return jobs


def occupy(worker, work):
    """Let the worker begin a job that waits for the gate."""
    [job] = submit(worker, work, ["first"])
    assert work.begun.wait(30)
    return job


def test_what_waits_shares_batches_by_options_and_size(worker, work):
    occupy(worker, work)
    some = submit(worker, work, [1, 2])
    other = submit(worker, work, [3], options="b")
    more = submit(worker, work, [4, 5, 6])
    work.gate.set()
    assert [job.future.result(30) for job in [*some, *other, *more]] == [2, 4, 6, 8, 10, 12]
    assert work.batches[1:] == [("a", [1, 2, 4, 5]), ("b", [3]), ("a", [6])]


def test_a_job_may_take_several_rows(worker, work):
    occupy(worker, work)
    jobs = submit(worker, work, [1, 2], rows=3)
    [wide] = submit(worker, work, [9], rows=99)
    work.gate.set()
    assert [job.future.result(30) for job in [*jobs, wide]] == [2, 4, 18]
    assert [batch for _, batch in work.batches[1:]] == [[1], [2], [9]]


def test_a_full_queue_takes_all_or_nothing(worker, work):
    occupy(worker, work)
    submit(worker, work, range(6))
    with pytest.raises(QueueFull, match="6 of 8") as full:
        submit(worker, work, range(3))
    assert full.value.seconds >= 1
    assert worker.waiting == 6
    work.gate.set()


def test_a_cancelled_job_leaves_its_place(worker, work):
    occupy(worker, work)
    jobs = submit(worker, work, range(8))
    jobs[3].cancel()
    submit(worker, work, ["more"])
    work.gate.set()
    with pytest.raises(CancelledError):
        jobs[3].future.result(30)
    assert jobs[4].future.result(30) == 8
    assert all(3 not in batch for _, batch in work.batches)


def test_an_error_reaches_its_own_job_only(worker, work):
    occupy(worker, work)
    jobs = submit(worker, work, [1, "bad", 2])
    work.gate.set()
    assert [jobs[0].future.result(30), jobs[2].future.result(30)] == [2, 4]
    with pytest.raises(ValueError, match="bad payload"):
        jobs[1].future.result(30)
    assert submit(worker, work, [7])[0].future.result(30) == 14


def test_a_closed_worker(work):
    worker = Worker("tests", batch=4, queue=8)
    running = occupy(worker, work)
    [waiting] = submit(worker, work, [1])
    worker.close()
    assert waiting.future.cancelled()
    assert isinstance(running.future.exception(0), Closed)  # at once: the gate is still shut
    with pytest.raises(Closed):
        submit(worker, work, [2])
    work.gate.set()
    worker.join(30)
    assert isinstance(running.future.exception(0), Closed)  # what came later is no result


class Part:
    """A payload that says whether it can run again."""

    def __init__(self, again):
        self.again, self.runs = again, 0

    def restart(self):
        return self.again


def test_what_cannot_run_again_receives_the_error_of_its_batch(worker, work):
    def together(options, payloads):
        for one in payloads:
            one.runs += 1
        if len(payloads) > 1:
            raise ValueError("too many")
        yield 0, "alone"

    first = occupy(worker, work)
    jobs = submit(worker, together, [Part(True), Part(False)])
    work.gate.set()
    assert first.future.result(30)
    assert jobs[0].future.result(30) == "alone"
    with pytest.raises(ValueError, match="too many"):
        jobs[1].future.result(30)
    assert [job.payload.runs for job in jobs] == [2, 1]


def test_jobs_that_join_begin_while_others_run(work):
    rows = []
    worker = Worker("tests", batch=4, queue=8, observe=rows.append, joins=True)
    [wide] = submit(worker, work, ["wide"], rows=3)
    assert work.begun.wait(30)
    fast = Work()
    fast.gate.set()
    [joins] = submit(worker, fast, [1], options="b")
    assert joins.future.result(30) == 2
    [waits] = submit(worker, fast, [2], rows=2)
    [behind] = submit(worker, fast, [3])
    assert not fast.batches[1:]
    assert worker.waiting == 2  # in their order: a wide job is not overtaken for ever
    work.gate.set()
    assert [job.future.result(30) for job in (wide, waits, behind)] == ["widewide", 4, 6]
    assert rows[:2] == [3, 4]
    worker.close()
    worker.join(10)
    assert not any(thread.is_alive() for thread in worker._threads)


@pytest.mark.parametrize(("error", "runs"), [(ValueError, 1), (OSError, 2)])
def test_a_job_that_joins_runs_again_unless_the_request_is_wrong(error, runs):
    begun = []

    def fail(options, payloads):
        begun.append(payloads)
        raise error("no")
        yield

    worker = Worker("tests", batch=4, queue=8, joins=True)
    [job] = submit(worker, fail, [1])
    assert isinstance(job.future.exception(30), error)
    assert len(begun) == runs
    worker.close()
    worker.join(10)
