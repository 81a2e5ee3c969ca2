"""How much arrival time a batch covers: the planner's rule."""

from __future__ import annotations

import math
from collections import deque

from lakestream_bench.simulation.batches import Batch
from lakestream_bench.simulation.streams import Scenario
from lakestream_operator.autoscaler.shard_policy import SHARD_WRITE_BYTES, SHARD_WRITE_RECORDS

OVERLOADED, FIXED = 1.5, 3.0
"""A batch takes as many trigger intervals at most, or times of the quickest before, as far as the best of the last ten
tells."""


class Slices:
    """What the planner knows of the batches before."""

    def __init__(self) -> None:
        self._records, self._bytes, self._seconds, self._span = 0.0, 0.0, 0.0, 0.0
        self._paces: deque[tuple[float, float]] = deque(maxlen=10)

    def next(self, scenario: Scenario, position: float, slots: int) -> float:
        """Seconds of arrival time that the next batch covers at most."""
        trigger, shards = scenario.spec.trigger, scenario.shards_at(position)
        full = min(
            trigger.max_records_per_batch / (SHARD_WRITE_RECORDS * shards),
            trigger.max_bytes_per_batch / (SHARD_WRITE_BYTES * shards),
        )
        if not self._seconds:
            return full
        wanted = self._seconds * min(
            trigger.max_records_per_batch / max(self._records, 1.0), trigger.max_bytes_per_batch / max(self._bytes, 1.0)
        )
        manageable = math.inf
        if self._paces:
            # A batch that the cores are long at work on would tell late that there are too few of them.
            allowed = max(OVERLOADED * scenario.interval, FIXED * min(seconds for seconds, _ in self._paces))
            done = min(slots, shards) * max(records for _, records in self._paces)
            manageable = allowed * done * self._seconds / max(self._records, 1.0)
        return min(wanted, manageable, max(2 * self._span, full), max(16 * full, 60.0))

    def planned(self, batch: Batch) -> None:
        """A batch is planned."""
        self._span = max(batch.horizon - batch.base, 1e-3)
        self._records = self._records / 2 + batch.records
        self._bytes = self._bytes / 2 + batch.bytes
        self._seconds = self._seconds / 2 + self._span

    def worked(self, longest: float, pace: float) -> None:
        """A batch is committed, whose longer stage took so many seconds, and did so many records a second and task."""
        self._paces.append((longest, pace))
