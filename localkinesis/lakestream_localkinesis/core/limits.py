"""Rates per shard and per operation, kept in windows of one second.

A window opens with the first use after the one before has passed, so a producer or consumer that keeps to
the rate is never refused, and a burst gets one second's worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
WINDOW_MS = 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """What one shard, and one account, may do in a second.

    Source: "Quotas and limits" in the Kinesis Data Streams developer guide.
    """

    write_records: float = 1000
    write_bytes: float = 1 * MIB
    """Data and partition keys. A record above it is paid for by what the seconds before left over, 10 MiB at most."""
    reads: float = 5
    """GetRecords calls, of all consumers together."""
    read_bytes: float = 2 * MIB
    """An answer may be larger (10 MiB): it is paid off afterwards."""
    iterators: float = 5
    """GetShardIterator calls."""
    operation_rates: bool = True
    """Whether control operations have a rate (CreateStream 5/s, DescribeStream 10/s, ...)."""

    @classmethod
    def none(cls) -> Limits:
        """No rate at all; sizes and counts per request are still checked."""
        return cls(math.inf, math.inf, math.inf, math.inf, math.inf, operation_rates=False)


class CallRate:
    """So many calls a second."""

    __slots__ = ("_calls", "_opened_ms", "_rate")

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._opened_ms = -WINDOW_MS
        self._calls = 0

    def admit(self, now_ms: int) -> bool:
        """Count a call, or refuse it."""
        if now_ms - self._opened_ms >= WINDOW_MS:
            self._opened_ms = now_ms
            self._calls = 0
        if self._calls >= self._rate:
            return False
        self._calls += 1
        return True


BURST_BYTES = 10 * MIB


class WriteRate:
    """So many records and bytes a second.

    What a second leaves of its bytes is kept, up to 10 MiB, for single records that are larger than a second's worth.
    Source: "Handle large records" in the developer guide, which gives the size and no exact rule.
    """

    __slots__ = ("_bytes", "_max_bytes", "_max_records", "_opened_ms", "_records", "_spare_bytes")

    def __init__(self, limits: Limits) -> None:
        self._max_records = limits.write_records
        self._max_bytes = limits.write_bytes
        self._opened_ms = -WINDOW_MS
        self._records = 0
        self._bytes = 0
        self._spare_bytes: float = BURST_BYTES

    def admit(self, now_ms: int, size: int) -> bool:
        """Count a record of `size` bytes, or refuse it. A refused record uses nothing up."""
        elapsed_ms = now_ms - self._opened_ms
        if elapsed_ms >= WINDOW_MS:
            left = self._max_bytes * elapsed_ms / WINDOW_MS - self._bytes
            self._spare_bytes = min(BURST_BYTES, self._spare_bytes + left)
            self._opened_ms = now_ms
            self._records = 0
            self._bytes = 0
        if self._records >= self._max_records:
            return False
        if size > self._max_bytes:
            if size > self._spare_bytes:
                return False
            self._spare_bytes -= size
            self._records += 1
            return True
        if self._bytes + size > self._max_bytes:
            return False
        self._records += 1
        self._bytes += size
        return True


class ReadRate:
    """So many calls a second, and a byte rate that answers may overdraw: 10 MiB block the shard for 5 s."""

    __slots__ = ("_blocked_until_ms", "_bytes", "_calls", "_max_bytes", "_opened_ms")

    def __init__(self, limits: Limits) -> None:
        self._calls = CallRate(limits.reads)
        self._max_bytes = limits.read_bytes
        self._opened_ms = -WINDOW_MS
        self._blocked_until_ms = -WINDOW_MS
        self._bytes = 0

    def admit(self, now_ms: int) -> bool:
        """Count a call, or refuse it."""
        if now_ms < self._blocked_until_ms or not self._calls.admit(now_ms):
            return False
        if now_ms - self._opened_ms >= WINDOW_MS:
            self._opened_ms = now_ms
            self._bytes = 0
        return True

    def charge(self, size: int) -> None:
        """Account for the answer to the call just admitted."""
        self._bytes += size
        if self._bytes >= self._max_bytes:
            self._blocked_until_ms = self._opened_ms + math.ceil(WINDOW_MS * self._bytes / self._max_bytes)
