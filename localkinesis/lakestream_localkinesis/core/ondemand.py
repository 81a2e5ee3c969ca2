"""How an on-demand stream grows: room for twice the highest write rate it has seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lakestream_localkinesis.core.limits import MIB

INITIAL_SHARDS = 4
"""Of a new stream: 4 MiB/s and 4,000 records/s at first. Source: "On-demand mode" in the developer guide."""

HEADROOM = 2
OBSERVED_MS = 60_000
"""Rates are those of a minute: a burst of a second is not a new peak.

Kinesis takes up to 15 minutes to make room, and forgets a peak after 30 days; neither is kept here.
"""


@dataclass(frozen=True, slots=True)
class Demand:
    """The highest write rate of a stream, from its running totals."""

    since_ms: int | None = None
    records: int = 0
    size: int = 0
    peak_records_per_s: float = 0.0
    peak_bytes_per_s: float = 0.0

    def observe(self, now_ms: int, *, records: int, size: int) -> Demand:
        """The demand after the totals of this instant; it changes once a minute."""
        if self.since_ms is None:
            return Demand(now_ms, records, size)
        elapsed_ms = now_ms - self.since_ms
        if elapsed_ms < OBSERVED_MS:
            return self
        return Demand(
            now_ms,
            records,
            size,
            max(self.peak_records_per_s, (records - self.records) * 1000 / elapsed_ms),
            max(self.peak_bytes_per_s, (size - self.size) * 1000 / elapsed_ms),
        )

    def shards(self) -> int:
        """The shards that give the peak its headroom.

        A stream keeps those that it has, be they more or fewer than a new one gets: one that was provisioned grows from
        there. Source: "Switch between capacity modes" in the developer guide.
        """
        return max(
            math.ceil(HEADROOM * self.peak_records_per_s / 1000),
            math.ceil(HEADROOM * self.peak_bytes_per_s / MIB),
        )
