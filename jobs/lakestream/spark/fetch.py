"""Step 2 of a batch: its records, read once, parsed, and kept by the executors until they are written."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from lakestream.kinesis import KinesisSettings, read_ranges
from lakestream.kinesis.batches import REASON
from lakestream.model import BatchPlan, ShardStats
from lakestream.ports import Fetched
from lakestream.spark.findings import FindingReader, Findings
from lakestream.spark.pipeline import FAILS, Pipeline, Screened, count_few
from lakestream.spark.read import read_backfill, read_batch, read_readmitted
from lakestream.spark.tallies import QUANTILES, Tallies, Tally
from lakestream.storage import StoreSettings

logger = logging.getLogger(__name__)


class SparkFetcher:
    """Reads plans with Spark; the engine's `Fetcher[DataFrame]`."""

    def __init__(
        self,
        spark: SparkSession,
        settings: KinesisSettings,
        pipeline: Pipeline,
        quarantine: StoreSettings,
        reader: FindingReader = read_ranges,
    ) -> None:
        """Make a fetcher.

        Args:
            spark: the session.
            settings: how executors reach Kinesis.
            pipeline: what becomes of the records.
            quarantine: where those are that were rejected.
            reader: of the stream.
        """
        self._spark = spark
        self._settings = settings
        self._pipeline = pipeline
        self._quarantine = quarantine
        self._reader = reader
        self._findings = Findings(spark)
        self._tallies = Tallies(spark)
        self._has_failed = False

    def fetch(self, plan: BatchPlan, *, replay: bool = False) -> Fetched[DataFrame]:
        """Read what the plan names, in one job that also fills the executors' memory, and divide it.

        A replay may be there because the document's SQL failed at a record, so it is tried before anything is written;
        once it did fail at one, before each batch.
        """
        typed, pipeline = self._read(plan)
        # Spilled to disk rather than read from Kinesis a second time, whose read limits others share.
        read = typed = typed.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        screened = self._screened(typed, pipeline) if replay or self._has_failed else None
        if screened is not None:
            logger.warning(
                "batch %d: %d records go to quarantine, with the reason %r: %s",
                *(plan.batch, screened.records, FAILS, screened.failure),
            )
            self._has_failed = True
            typed = screened.typed
        divided = pipeline.divide(typed)
        if len(self._tallies.of(plan.batch)) < len(plan.parts or plan.tasks):
            _look_at_all(typed)  # a transform need not
        tallies = [tally for task in self._tallies.of(plan.batch).values() for tally in task]
        shards = _shard_stats(tallies)
        rejected = sum(tally.rejected for tally in tallies) + divided.refused + (screened.records if screened else 0)
        return Fetched(
            rows=divided.rows,
            rejected=divided.rejected,
            # Of records that a transform takes together, rows are refused: there may be more of them.
            rejected_count=min(rejected, sum(stats.taken for stats in shards)),
            shards=shards,
            # How fresh records are that somebody has asked for tells nothing of the stream.
            arrivals=() if plan.parts else merge_quantiles([(one.records, one.arrivals) for one in tallies]),
            findings=lambda: self._findings.of(plan.batch),
            release=lambda: _release(read, screened),
        )

    def _screened(self, typed: DataFrame, pipeline: Pipeline) -> Screened | None:
        try:
            # Before: a task that fails tells no tally, and what it has read is kept all the same.
            _look_at_all(typed)
            return pipeline.without_failing(typed)
        except BaseException:
            typed.unpersist()
            raise

    def _read(self, plan: BatchPlan) -> tuple[DataFrame, Pipeline]:
        """The plan's records, and what becomes of them."""
        pipeline = self._pipeline
        if plan.readmits:
            return read_readmitted(self._spark, self._quarantine, plan, pipeline, self._tallies), pipeline
        if plan.backfills:
            of_table = plan.backfills[0][0].is_table
            pipeline = pipeline.of_table if of_table else pipeline
            s3 = self._quarantine.s3
            frame = read_backfill(self._spark, s3, plan, pipeline, self._tallies, of_table=of_table)
            return frame, pipeline
        settings, trim = self._settings, plan.trim
        if plan.spans:
            # What a span lacks by now must not stop the stream: it is told, and the request may end with it.
            settings = replace(settings, skip_losses=True)
            trim = plan.taken.span.trim if plan.taken and plan.taken.span else trim
        settings = replace(settings, retention=trim.retention) if trim else settings
        reader = self._findings.kept(plan.batch, self._reader)
        tasks = plan.spans or plan.tasks
        return read_batch(self._spark, settings, plan, tasks, pipeline, reader, self._tallies), pipeline


def _look_at_all(typed: DataFrame) -> None:
    count_few(typed.where(f"{REASON} IS NOT NULL"))


def _release(read: DataFrame, screened: Screened | None) -> None:
    if screened is not None:
        screened.release()
    read.unpersist()


def _shard_stats(tallies: Iterable[Tally]) -> tuple[ShardStats, ...]:
    """Of each shard, sorted; several tasks may have read of one."""
    by_shard: defaultdict[str, list[Tally]] = defaultdict(list)
    for tally in tallies:
        by_shard[tally.shard_id].append(tally)
    return tuple(_stats(shard, by_shard[shard]) for shard in sorted(by_shard))


def _stats(shard_id: str, tallies: Sequence[Tally]) -> ShardStats:
    records = sum(tally.records for tally in tallies)
    kinesis_records = sum(tally.kinesis_records for tally in tallies)
    return ShardStats(
        shard_id=shard_id,
        records=records,
        bytes=sum(tally.bytes for tally in tallies),
        first_arrival=_time(min(tally.arrivals[0] for tally in tallies)),
        last_arrival=_time(max(tally.arrivals[-1] for tally in tallies)),
        kinesis_records=None if kinesis_records == records else kinesis_records,
        kinesis_bytes=sum(tally.kinesis_bytes for tally in tallies),
        filtered=sum(tally.filtered for tally in tallies),
    )


def merge_quantiles(samples: Sequence[tuple[int, Sequence[int]]]) -> tuple[datetime, ...]:
    """Quantiles of all records from those of each shard, each weighing as much as its shard has records.

    Args:
        samples: per shard, its number of records and evenly spaced quantiles in microseconds since the epoch.
    """
    weighted = sorted(
        (value, records / len(quantiles)) for records, quantiles in samples for value in quantiles if records
    )
    total = sum(weight for _, weight in weighted)
    merged: list[datetime] = []
    below = 0.0
    for value, weight in weighted:
        below += weight
        while len(merged) < len(QUANTILES) and below >= QUANTILES[len(merged)] * total - 1e-6:
            merged.append(_time(value))
    return tuple(merged)


def _time(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
