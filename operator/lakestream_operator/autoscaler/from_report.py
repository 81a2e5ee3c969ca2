"""From a driver's report to what decisions are based on."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakestream_api import BatchSummary, DriverReport, FetchedBatch, Spec
from lakestream_operator.autoscaler.inputs import (
    BatchLimits,
    BatchObservation,
    ExecutorsObservation,
    FetchedObservation,
    ScalingWindow,
)
from lakestream_operator.autoscaler.shard_policy import SHARD_WRITE_BYTES, SHARD_WRITE_RECORDS, StreamObservation

_SHORTEST = timedelta(seconds=30)
"""Of arrival time, for rates of a stream."""
_OLD = timedelta(minutes=10)
"""What arrived longer ago says nothing of what arrives now."""


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
        fetched=None if report.fetched is None else _fetched(report.fetched),
        executors=ExecutorsObservation(report.executors.target, report.executors.registered, pending_since),
        reported_at=report.updated_at,
        caught_up_at=report.caught_up_at,
        consumers=len(spec.writers),
        fullest_shard=report.fullest_shard,
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
        file_groups=batch.file_groups or 0,
        horizon=batch.horizon,
        fetch_work=batch.core_seconds.fetch if batch.core_seconds else None,
        write_work=batch.core_seconds.write if batch.core_seconds else None,
    )


def _fetched(batch: FetchedBatch) -> FetchedObservation:
    return FetchedObservation(
        batch=batch.batch,
        at=batch.fetched_at,
        records=batch.records,
        bytes=batch.bytes,
        span=batch.slice_seconds or 0.0,
        largest_shard_bytes=batch.largest_shard_bytes,
    )


def observe_stream(report: DriverReport | None, now: datetime) -> StreamObservation | None:
    """What arrives in a stream, by the batches of a driver; None: they do not tell.

    Args:
        report: what the driver said last; None: nothing yet.
        now: the time.
    """
    recent = report.lately if report else None
    arrived = recent.arrived if recent else None
    if report is None or arrived is None or now - arrived.until > _OLD or arrived.until - arrived.since < _SHORTEST:
        return None
    open_shards = report.batches[-1].open_shards
    if open_shards == 0:
        return None
    seconds = (arrived.until - arrived.since).total_seconds()
    return StreamObservation(
        open_shards=open_shards,
        bytes_per_second=arrived.bytes / seconds,
        records_per_second=arrived.kinesis_records / seconds,
        busiest_share=max(
            arrived.largest_shard_bytes / SHARD_WRITE_BYTES / seconds,
            arrived.largest_shard_kinesis_records / SHARD_WRITE_RECORDS / seconds,
        ),
        busiest=report.fullest_shard,
    )
