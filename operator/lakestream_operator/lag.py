"""Lag: the age of the oldest record that is not in the table, over the slowest shard. Pure.

It falls with each commit and grows until the next one. The status tells what a commit leaves; the autoscaler counts
with what it was just before.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from lakestream_api import BatchSummary

_OVERDUE = 2
"""Trigger intervals from the planning of a batch to its end: one is for the batch, in another one it may take its turn
behind the batch before."""


def read_until(batch: BatchSummary) -> datetime | None:
    """Up to when all shards are read, by the clock of `finished_at`; None: the driver's release does not tell."""
    if batch.horizon_age_seconds is None:
        return batch.horizon
    return batch.finished_at - timedelta(seconds=batch.horizon_age_seconds)


def lag_after(batch: BatchSummary) -> float:
    """Of what a batch leaves.

    0 where it has read all there was when it was planned. What came since is for the next one, and counts only where
    the batch took so long that this is late.
    """
    if (until := read_until(batch)) is None:
        return batch.lag_seconds
    waited = (batch.finished_at - until).total_seconds()
    return max(batch.lag_seconds, waited if waited > _OVERDUE * batch.trigger_interval.total_seconds() else 0.0)


def lag_before(batch: BatchSummary) -> float:
    """Of the oldest record of a batch, when it came into the table."""
    if (until := read_until(batch)) is None:
        return max(batch.lag_seconds, batch.seconds.total)
    covers = batch.records / batch.arrival_rate if batch.arrival_rate else 0.0
    return (batch.finished_at - until).total_seconds() + covers
