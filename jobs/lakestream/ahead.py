"""Many requests at a time, for what is wanted one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

_AT_ONCE = 16


def answers(ask: Callable[[Key], Value], keys: Iterable[Key]) -> Iterator[tuple[Key, Value]]:
    """Each key with its answer, in order; no more than sixteen of them are asked for, or held, ahead of who takes them.

    Raises what `ask` raises, in its place.
    """
    coming = iter(keys)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while some := list(islice(coming, _AT_ONCE)):
            yield from zip(some, pool.map(ask, some), strict=True)
