"""Several ranges are read at once, and given one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Condition
from typing import Generic, TypeVar

Part = TypeVar("Part")


def in_order(
    ranges: Iterable[Iterator[Part]], *, at_once: int, size: Callable[[Part], int], most: int
) -> Iterator[Part]:
    """What all ranges give, range by range, while that and the next ones are read.

    Args:
        ranges: each is run in one thread.
        at_once: so many of them.
        size: bytes of what a range gives.
        most: that each of them holds ahead of who takes it, if one alone is not more.

    Raises:
        what a range raises, in its place.
    """
    coming = iter(ranges)
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="reader")
    begun: deque[_Ahead[Part]] = deque()

    def begin(count: int) -> None:
        for one in islice(coming, count):
            begun.append(_Ahead(one, size, most))
            pool.submit(begun[-1].fetch)

    try:
        begin(at_once)
        while begun:
            yield from begun[0].given()
            begun.popleft()
            begin(1)
    finally:
        for left in begun:
            left.leave()
        # Not waited for: a task that Spark ends early must not hang on a call that is being retried.
        pool.shutdown(wait=False, cancel_futures=True)


class _Ahead(Generic[Part]):
    """What one range gives, between the thread that reads it and the one that takes it."""

    def __init__(self, parts: Iterator[Part], size: Callable[[Part], int], most: int) -> None:
        self._parts = parts
        self._size = size
        self._most = most
        self._held: deque[tuple[Part, int]] = deque()
        self._error: BaseException | None = None
        self._is_read = False
        self._is_left = False
        self._changed = Condition()

    def fetch(self) -> None:
        """Read to the end, or until nobody takes it any more."""
        try:
            for part in self._parts:
                if not self._hold(part):
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised where the range is taken
            self._error = error
        finally:
            with self._changed:
                self._is_read = True
                self._changed.notify_all()

    def _hold(self, part: Part) -> bool:
        """Keep a part, and wait until there is room for another one like it; False if nobody wants that."""
        size = self._size(part)
        with self._changed:
            self._held.append((part, size))
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_left or self._has_room(size))
            return not self._is_left

    def _has_room(self, size: int) -> bool:
        return not self._held or sum(held for _, held in self._held) + size <= self._most

    def given(self) -> Iterator[Part]:
        """All parts, as they come."""
        while (part := self._take()) is not None:
            yield part
        if self._error is not None:
            raise self._error

    def _take(self) -> Part | None:
        with self._changed:
            self._changed.wait_for(lambda: self._held or self._is_read)
            if not self._held:
                return None
            part, _ = self._held.popleft()
            self._changed.notify_all()
            return part

    def leave(self) -> None:
        """Nobody takes any more of it."""
        with self._changed:
            self._is_left = True
            self._changed.notify_all()
