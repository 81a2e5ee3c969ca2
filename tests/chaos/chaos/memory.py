"""This process lives for hours, and has a stream, its ledger and all of a lake's rows in memory for minutes."""

from __future__ import annotations

import ctypes
import gc

_ARENAS, _MAPPED_FROM = -8, -3
"""`M_ARENA_MAX` and `M_MMAP_THRESHOLD` of glibc's malloc.h."""


def hold_in_few_arenas() -> None:
    """Of glibc: it has an arena for almost each thread otherwise, and each stays as large as it has once been.

    Holds for threads that are started from now on. What is large gets pages of its own, which go when it does.
    """
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_ARENAS, 2)
        mallopt(_MAPPED_FROM, 2**20)


def give_back() -> None:
    """Return what nobody refers to any more to the system.

    A world and what is in it refer to each other, and are few objects with many bytes: Python, which counts objects,
    sees no need to look for such circles. glibc keeps freed memory where anything above it is in use.
    """
    gc.collect()
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
