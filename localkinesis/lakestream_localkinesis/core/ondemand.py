"""How an on-demand stream grows: a shard that a minute has filled by more than half is split."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakestream_localkinesis.core.limits import MIB

INITIAL_SHARDS = 4
"""Of a new stream: 4 MiB/s and 4,000 records/s at first. Source: "On-demand mode" in the developer guide."""

SPLIT_RECORDS_PER_S = 500
SPLIT_BYTES_PER_S = MIB // 2
"""Half of a shard's rates: so the stream has room for twice its peak, wherever its keys fall."""
OBSERVED_MS = 60_000
"""Rates are those of a minute: a burst of a second is not a new peak.

Kinesis takes up to 15 minutes to make room, and forgets a peak after 30 days; neither is kept here.
"""

Given = tuple[int, int, int]
"""A shard by its index, the records that it has been given since it was opened, and their bytes."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The minute that is being observed, from the running totals of the open shards."""

    since_ms: int | None = None
    given: tuple[Given, ...] = ()
    """When it began. A shard that is not among them has been opened since."""

    def observe(self, now_ms: int, given: Iterable[Given]) -> tuple[Demand, list[int]]:
        """What is observed from the totals of this instant on, and the shards to split; it changes once a minute."""
        if self.since_ms is None:
            return Demand(now_ms, tuple(given)), []
        elapsed_ms = now_ms - self.since_ms
        if elapsed_ms < OBSERVED_MS:
            return self, []
        following = Demand(now_ms, tuple(given))
        before = {index: (records, size) for index, records, size in self.given}
        hot = []
        for index, records, size in following.given:
            records_before, size_before = before.get(index, (0, 0))
            if (records - records_before) * 1000 > SPLIT_RECORDS_PER_S * elapsed_ms or (
                size - size_before
            ) * 1000 > SPLIT_BYTES_PER_S * elapsed_ms:
                hot.append(index)
        return following, hot
