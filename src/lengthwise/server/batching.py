"""Batching: a bounded queue, and threads that run what waits.

A job names a function and its options. A worker has one thread, in which jobs with the same function and options share
a batch, oldest first; or, if its jobs join, a thread for each row, in which a job begins while others run. This file
knows nothing of models or HTTP.
"""

import math
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

GATHER = 0.005  # seconds that an idle worker waits for companions of the first job

# (options, payloads) -> the place of a payload and its result, as each is done
Function = Callable[[Any, list[Any]], Iterator[tuple[int, Any]]]


class QueueFull(Exception):
    """More jobs wait than the queue holds."""

    def __init__(self, waiting: int, size: int, seconds: int) -> None:
        super().__init__(f"the queue is full: {waiting} of {size} texts wait; try again in {seconds} s")
        self.seconds = seconds


class Closed(Exception):
    """The worker has stopped."""


@dataclass(eq=False)
class Job:
    """A payload for a function. `rows`: how many rows of a batch it takes.

    A payload may have `close`, which asks it to end, and `restart`, which returns whether it can run again.
    """

    function: Function
    options: Hashable
    payload: Any
    rows: int = 1
    future: "Future[Any]" = field(default_factory=Future)

    def cancel(self) -> None:
        """Drop the job if it waits; ask its payload to end if it runs."""
        if not self.future.cancel() and hasattr(self.payload, "close"):
            self.payload.close()

    def end(self) -> None:
        """Drop the job if it waits; if it runs, its result is `Closed` from now on."""
        with suppress(InvalidStateError):
            if not self.future.cancel():
                self.future.set_exception(Closed("the server is shutting down"))
        self.cancel()

    def restart(self) -> bool:
        """Return whether the job can run again after its batch has failed."""
        return not hasattr(self.payload, "restart") or bool(self.payload.restart())


class Worker:
    """Runs jobs in threads. `batch`: rows that run together; `queue`: jobs that may wait.

    `joins`: each job runs alone, and joins those that run, as soon as there is room. `observe` receives the rows that
    run when a batch or a job begins.
    """

    def __init__(
        self,
        name: str,
        batch: int,
        queue: int,
        observe: Callable[[int], None] = lambda rows: None,
        joins: bool = False,
    ) -> None:
        self.batch, self.queue, self.joins, self._observe = batch, queue, joins, observe
        self._jobs: list[Job] = []
        self._wake = threading.Condition()
        self._closed = False
        self._current: list[Job] = []  # the jobs that run
        self._seconds = 1.0  # of the last batch
        names = [f"batches of {name}"] * (batch if joins else 1)
        self._threads = [threading.Thread(target=self._run, name=one, daemon=True) for one in names]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        with self._wake:
            return sum(not job.future.cancelled() for job in self._jobs)

    @property
    def running(self) -> int:
        return len(self._current)

    @property
    def busy(self) -> bool:
        with self._wake:  # a job that begins is in none of the two for a moment
            return bool(self.running or self.waiting)

    def submit(self, jobs: list[Job]) -> None:
        """Put all of these jobs into the queue, or none: `QueueFull`, `Closed`."""
        with self._wake:
            if self._closed:
                raise Closed("the server is shutting down")
            self._jobs = [job for job in self._jobs if not job.future.cancelled()]
            if len(self._jobs) + len(jobs) > self.queue:
                batches = math.ceil(len(self._jobs) / self.batch)
                raise QueueFull(len(self._jobs), self.queue, max(1, math.ceil(batches * self._seconds)))
            self._jobs += jobs
            self._wake.notify(len(jobs))

    def close(self) -> None:
        """Refuse new jobs, drop those that wait and end those that run. The thread may run a little longer."""
        with self._wake:
            self._closed = True
            jobs, self._jobs = [*self._jobs, *self._current], []
            self._wake.notify_all()
        for job in jobs:
            job.end()

    def join(self, seconds: float) -> None:
        """Wait for the threads of a closed worker."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    # ---- the threads

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._jobs and not self._closed:
                    self._wake.wait()
                if self._closed and not self._jobs:
                    return
            time.sleep(0 if self.joins else GATHER)
            with self._wake:
                jobs = self._take()
                if not jobs and self._jobs:
                    self._wake.wait()  # for room
                self._current += jobs
                rows = sum(job.rows for job in self._current)
            if jobs:
                self._observe(rows)
                start = time.monotonic()
                self._work(jobs)
                self._seconds = time.monotonic() - start
                with self._wake:
                    self._current = [job for job in self._current if job not in jobs]
                    self._wake.notify_all()

    def _take(self) -> list[Job]:
        """Remove and return the oldest job, if there is room for it, and those behind it that can share its batch."""
        self._jobs = [job for job in self._jobs if not job.future.cancelled()]
        taken: list[Job] = []
        rows = sum(job.rows for job in self._current)
        for job in self._jobs[: 1 if self.joins else None]:
            first = taken[0] if taken else job
            alike = (job.function, job.options) == (first.function, first.options)
            fits = not rows or rows + job.rows <= self.batch
            if alike and fits and job.future.set_running_or_notify_cancel():
                taken.append(job)
                rows += job.rows
        self._jobs = [job for job in self._jobs if not job.future.running()]
        return taken

    def _work(self, jobs: list[Job], again: bool = False) -> None:
        """Run a batch. If it fails, run each job again alone, so that one job's error does not reach the others.

        A job that cannot run again, such as a stream whose client has text, receives the error. So does a job that ran
        alone and raised a `ValueError`: it would do so again.
        """
        failure: Exception | None = None
        try:
            for place, result in jobs[0].function(jobs[0].options, [job.payload for job in jobs]):
                _settle(jobs[place].future.set_result, result)
        except Exception as error:
            failure = error
            traceback.clear_frames(error.__traceback__)  # their variables are large, and a second run needs the room
        failure = failure or RuntimeError("the batch has no result for this job")
        helps = len(jobs) > 1 or (self.joins and not again and not isinstance(failure, ValueError))
        for job in jobs:
            if job.future.done():
                continue
            if helps and job.restart():
                self._work([job], again=True)
            else:
                _settle(job.future.set_exception, failure)


def _settle(settle: Callable[[Any], None], value: Any) -> None:
    """Give a future its result or exception, unless `close` has ended it."""
    with suppress(InvalidStateError):
        settle(value)
