"""What a decision is based on: what one writer's driver last said, and what its pods and the spec say beside it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakestream_api import BatchSummary, DriverReport, ExecutorsReport, FetchedBatch, Spec


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What bounds a batch: `spec.trigger` and `spec.resources.executor.cores`."""

    interval: float
    """Seconds between the beginnings of two batches at the tip."""
    max_records: int
    max_bytes: int
    cores: int
    """Of each executor."""


@dataclass(frozen=True, slots=True)
class ScalingWindow:
    """All that is known of one writer at one evaluation."""

    limits: BatchLimits
    batches: tuple[BatchSummary, ...] = ()
    """Newest last, as many as the driver still reports. Those seen before are known by their numbers."""
    executors: ExecutorsReport | None = None
    """None: the driver has not reported yet."""
    reported_at: datetime | None = None
    """When the driver last reported anything; None: never."""
    caught_up_at: datetime | None = None
    """When the driver last looked at the stream, found nothing to read, and was at the tip."""
    consumers: int = 1
    """Writers that ask for this stream's records; they share the read limit of each shard. 0: records are pushed to
    this one, which has the limit for itself."""
    fetched: FetchedBatch | None = None
    """None: no batch is fetched yet, or the driver is of a release that does not tell."""
    fullest_shard: str = ""
    """That gave most bytes to the last batch; empty: not known."""
    pending_since: datetime | None = None
    """Since when the oldest executor pod has waited for a node, or for its image; None: none waits."""
    pending_for: str = ""
    """What that one says it waits for."""


def window_of(
    spec: Spec, report: DriverReport | None, pending_since: datetime | None, *, consumers: int, pending_for: str = ""
) -> ScalingWindow:
    """The window of one writer.

    Args:
        spec: that it runs.
        report: what the driver said last; None: nothing yet.
        pending_since: creation of the oldest executor pod that waits for a node; None: none waits.
        consumers: writers that ask for the stream's records; 0: they are pushed to this one.
        pending_for: what that pod says it waits for.
    """
    limits = BatchLimits(
        interval=spec.trigger.interval.total_seconds(),
        max_records=spec.trigger.max_records_per_batch,
        max_bytes=spec.trigger.max_bytes_per_batch,
        cores=spec.resources.executor.cores,
    )
    if report is None:
        return ScalingWindow(limits, consumers=consumers)
    return ScalingWindow(
        limits,
        batches=report.batches,
        fetched=report.fetched,
        executors=report.executors,
        reported_at=report.updated_at,
        caught_up_at=report.caught_up_at,
        consumers=consumers,
        fullest_shard=report.fullest_shard,
        pending_since=pending_since,
        pending_for=pending_for,
    )
