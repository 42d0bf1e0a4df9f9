"""The number of threads of engines: OMP_NUM_THREADS, which torch obeys as well."""

import os


def thread_limit() -> int | None:
    """Return the number of threads that OMP_NUM_THREADS sets; None if it sets none."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(first) or None if first.isdecimal() else None


def threads() -> int:
    """Return the number of threads that OMP_NUM_THREADS sets; else one per core that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return thread_limit() or cores
