"""Which records go into the next request. Pure: the time is passed in.

Records are moved in parcels, not one by one: what a user hands in at once stays together as long as it
meets one fate, and so costs a few list operations instead of an object per record.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lakestream_loadgen.kinesis.wire import MAX_BYTES, MAX_RECORDS, size_of, sizes_of
from lakestream_loadgen.records import Record


class Waiting(Protocol):
    """Who waits for records to be settled."""

    def settled(self, records: int, *, acknowledged: bool) -> None: ...


class Parcel:
    """Records of one user that travel together and have the same history."""

    __slots__ = ("attempts", "data_bytes", "possible", "records", "rows", "since", "size", "waiting")

    def __init__(self, records: Sequence[Record], waiting: Waiting, since: float) -> None:
        self.records = records
        self.waiting = waiting
        self.since = since
        """When the user handed them in."""
        self.data_bytes, self.size = sizes_of(records)
        self.rows: Sequence[int] = ()
        """Their rows in the ledger; none until they are first sent."""
        self.attempts = 0
        """Times sent."""
        self.possible = 0
        """Times sent with the chance of having been written."""

    def __len__(self) -> int:
        return len(self.records)

    def part(self, indices: Sequence[int]) -> Parcel:
        """Some of the records, with the same history, as a parcel of their own."""
        part = Parcel.__new__(Parcel)
        part.records = [self.records[index] for index in indices]
        part.rows = [self.rows[index] for index in indices] if self.rows else ()
        part.data_bytes, part.size = sizes_of(part.records)
        part.waiting, part.since = self.waiting, self.since
        part.attempts, part.possible = self.attempts, self.possible
        return part


@dataclass(frozen=True)
class BatchLimits:
    """When a batch is full, and how long it may wait to become so."""

    linger: float = 0.05
    """Seconds that the first record of a batch may wait for others."""
    records: int = MAX_RECORDS
    bytes: int = MAX_BYTES


def parcels(records: Sequence[Record], waiting: Waiting, since: float, limits: BatchLimits) -> Iterator[Parcel]:
    """Cut what a user hands in into parcels that each fit into a batch."""
    parcel = Parcel(records, waiting, since)
    if len(parcel) <= limits.records and parcel.size <= limits.bytes:
        yield parcel
        return
    indices: list[int] = []
    size = 0
    for index, record in enumerate(records):
        if indices and (len(indices) == limits.records or size + size_of(record) > limits.bytes):
            yield parcel.part(indices)
            indices, size = [], 0
        indices.append(index)
        size += size_of(record)
    yield parcel.part(indices)


class Accumulator:
    """Parcels that wait to be sent: new ones in order, and ones to be sent again at a time of their own."""

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._queue: deque[Parcel] = deque()
        self.records = 0
        """Queued, without those for later."""
        self._bytes = 0
        self._oldest = 0.0
        self._later: list[tuple[float, int, Parcel]] = []
        self._numbers = 0

    def add(self, parcel: Parcel, now: float) -> bool:
        """Queue a parcel; ``now`` starts the linger time of the first in an empty queue.

        Returns whether ``next_due`` may have moved: most additions need wake nobody.
        """
        first = not self._queue
        if first:
            self._oldest = now
        self._queue.append(parcel)
        self.records += len(parcel.records)
        self._bytes += parcel.size
        return first or self._is_full()

    def hurry(self) -> None:
        """From now on nothing waits for others to share its request."""
        self._limits = replace(self._limits, linger=0.0)

    def add_later(self, parcel: Parcel, due: float) -> None:
        """Queue a parcel that must not be sent before ``due``."""
        self._numbers += 1
        heapq.heappush(self._later, (due, self._numbers, parcel))

    def next_due(self, now: float) -> float | None:
        """When a batch should leave: ``now`` or before if it is full, None if nothing waits."""
        self._release(now)
        if self._is_full():
            return now
        times = [self._oldest + self._limits.linger] if self._queue else []
        if self._later:
            times.append(self._later[0][0])
        return min(times, default=None)

    def take(self, now: float) -> list[Parcel]:
        """The next batch if one is due, else nothing."""
        due = self.next_due(now)
        if due is None or due > now:
            return []
        batch: list[Parcel] = []
        records = size = 0
        queue, limits = self._queue, self._limits
        while queue:
            parcel = queue[0]
            records_after, size_after = records + len(parcel.records), size + parcel.size
            if batch and (records_after > limits.records or size_after > limits.bytes):
                break
            batch.append(queue.popleft())
            records, size = records_after, size_after
        self.records -= records
        self._bytes -= size
        self._oldest = now
        return batch

    def clear(self) -> list[Parcel]:
        """Give up waiting: everything that is queued."""
        left = [*self._queue, *(parcel for _, _, parcel in self._later)]
        self._queue.clear()
        self._later.clear()
        self.records = self._bytes = 0
        return left

    def _is_full(self) -> bool:
        return self.records >= self._limits.records or self._bytes >= self._limits.bytes

    def _release(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            _, _, parcel = heapq.heappop(self._later)
            self.add(parcel, now)
