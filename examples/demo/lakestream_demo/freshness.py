"""How soon records became visible, from when each arrived and what each batch covered. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt

from lakestream_api import Progress
from lakestream_demo.result import Freshness

Microseconds = npt.NDArray[np.int64]
"""Times since the epoch."""


def caught_up_at(batches: Sequence[Progress]) -> datetime | None:
    """When a writer had caught up for the first time, if ever.

    What arrived before waited for Spark to start, which says nothing about a running application.
    """
    return next((batch.finished_at for batch in batches if batch.caught_up), None)


def freshness(
    arrivals: Mapping[str, Microseconds], batches: Sequence[Progress], since: datetime | None
) -> Freshness | None:
    """Freshness of every record that arrived from some time on.

    Args:
        arrivals: arrival times of all records of the stream by shard, in any order.
        batches: of one writer, in order.
        since: the time; None if it never came.

    Returns:
        None if no record arrived since then.
    """
    if since is None:
        return None
    first = _microseconds(since.timestamp())
    waits = [_waits(times[times >= first], *_steps(shard_id, batches)) for shard_id, times in arrivals.items()]
    waited = np.concatenate(waits) / 1e6 if waits else np.empty(0)
    if not len(waited):
        return None
    p50, p99 = np.percentile(waited, (50, 99))
    return Freshness(round(float(p50), 3), round(float(p99), 3), len(waited))


def _steps(shard_id: str, batches: Sequence[Progress]) -> tuple[Microseconds, Microseconds]:
    """Up to which arrival each batch covers a shard, and when that was visible."""
    covered, visible = [], []
    for batch in batches:
        for shard in batch.shards:
            if shard.shard_id == shard_id and shard.last_arrival is not None:
                covered.append(_microseconds(shard.last_arrival.timestamp()))
                visible.append(_microseconds(batch.finished_at.timestamp()))
    return np.array(covered, np.int64), np.array(visible, np.int64)


def _waits(arrivals: Microseconds, covered: Microseconds, visible: Microseconds) -> Microseconds:
    """A record became visible with the first batch that covers its arrival."""
    batch = np.searchsorted(covered, arrivals, side="left")
    seen = batch < len(covered)
    waits: Microseconds = visible[batch[seen]] - arrivals[seen]
    return waits


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)
