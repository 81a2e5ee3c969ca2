"""When shards answer again that have given more at once than they may in a second."""

from __future__ import annotations

import math
from threading import Lock

from lakestream.kinesis.port import RecordPage

_BYTES_PER_SECOND = 2 * 2.0**20
"""That a shard gives, to all who poll it. A page may have the bytes of five seconds, for which all of them then wait
("subsequent calls made within the next 5 seconds throw an exception", developer guide, quotas and limits)."""
_WORTH_KNOWING = 0.5
"""Seconds; a few attempts fill less."""
_MOST = 10_000
"""Iterators whose shards are known; most are used once, and some never."""


class BusyShards:
    """Of the iterators of a client, the time until which their shards give nothing. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._shards: dict[str, str] = {}
        self._free_at: dict[str, float] = {}

    def of(self, iterator: str, shard_id: str) -> None:
        """Know which shard an iterator is of."""
        with self._lock:
            if len(self._shards) >= _MOST:
                self._shards.clear()
            self._shards[iterator] = shard_id

    def free_at(self, iterator: str) -> float:
        """When a call with this iterator has a chance, by the clock of `gave`; long ago, if nothing is known."""
        with self._lock:
            return self._free_at.get(self._shards.get(iterator, ""), -math.inf)

    def gave(self, iterator: str, page: RecordPage, began: float) -> None:
        """Take note of the answer to a call that began at this (monotonic) time."""
        seconds = sum(map(len, page.data)) / _BYTES_PER_SECOND
        with self._lock:
            shard_id = self._shards.pop(iterator, None)
            if shard_id is None:
                return
            if page.next_iterator is not None:
                self._shards[page.next_iterator] = shard_id
            if seconds >= _WORTH_KNOWING:
                self._free_at[shard_id] = began + seconds
