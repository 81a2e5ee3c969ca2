"""From a driver's report to the window that a decision is based on."""

from __future__ import annotations

from datetime import datetime

from lakestream_api import BatchSummary, DriverReport, Spec
from lakestream_operator.autoscaler.observations import (
    BatchLimits,
    BatchObservation,
    ExecutorsObservation,
    ScalingWindow,
)


def window_of(spec: Spec, report: DriverReport | None, pending_since: datetime | None) -> ScalingWindow:
    """The window of one writer.

    Args:
        spec: of the LakeStream.
        report: what the driver said last; None: nothing yet.
        pending_since: creation of the oldest executor pod that waits for a node; None: none waits.
    """
    limits = BatchLimits(
        interval=spec.trigger.interval.total_seconds(),
        max_records=spec.trigger.max_records_per_batch,
        max_bytes=spec.trigger.max_bytes_per_batch,
        cores=spec.resources.executor.cores,
    )
    if report is None:
        return ScalingWindow(limits, consumers=len(spec.writers))
    return ScalingWindow(
        limits,
        batches=tuple(_batch(batch) for batch in report.batches),
        executors=ExecutorsObservation(report.executors.target, report.executors.registered, pending_since),
        reported_at=report.updated_at,
        caught_up_at=report.caught_up_at,
        consumers=len(spec.writers),
    )


def _batch(batch: BatchSummary) -> BatchObservation:
    seconds = batch.seconds
    return BatchObservation(
        batch=batch.batch,
        finished_at=batch.finished_at,
        records=batch.records,
        bytes=batch.bytes,
        prepare_seconds=seconds.plan + seconds.fetch,
        finish_seconds=seconds.write + seconds.commit + seconds.table_services,
        executors=batch.executors,
        lag_seconds=batch.lag_seconds,
        open_shards=batch.open_shards,
        arrival_rate=batch.arrival_rate,
        backlog_records=batch.backlog_records or 0.0,
        fetch_seconds=seconds.fetch,
        largest_shard_bytes=batch.largest_shard_bytes,
    )
