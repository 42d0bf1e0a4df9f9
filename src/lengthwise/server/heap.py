"""The heap of a server: memory that is freed goes back to the system at once."""

import ctypes

LARGE = 1 << 20  # bytes
_M_MMAP_THRESHOLD = -3  # of mallopt, in glibc's malloc.h


def return_freed_memory() -> bool:
    """Have glibc map each large block on its own, and return whether it does. Other C libraries are left alone.

    By default, glibc keeps blocks of up to 32 MB in its heap once such a block was freed. KV caches of all sizes come
    and go in a server, and would leave gaps there that are never returned.
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE))
    except (OSError, AttributeError, TypeError):  # macOS and musl have no mallopt, Windows no CDLL(None)
        return False
