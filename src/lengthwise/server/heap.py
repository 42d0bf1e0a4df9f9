"""The heap of a server: memory that is freed goes back to the system at once."""

import ctypes

LARGE = 1 << 20  # bytes
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # of mallopt, in glibc's malloc.h


def return_freed_memory() -> bool:
    """Have glibc map each large block on its own, and return whether it does. Other C libraries are left alone.

    By default, glibc keeps blocks of up to 32 MB in its heap once such a block was freed. KV caches of all sizes come
    and go in a server, and would leave gaps there that are never returned. Small blocks of all threads are in one heap,
    not in up to eight per core. Call it before threads are started.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
        return bool(mallopt(_M_MMAP_THRESHOLD, LARGE) and mallopt(_M_ARENA_MAX, 1))
    except (OSError, AttributeError, TypeError):  # macOS and musl have no mallopt, Windows no CDLL(None)
        return False
