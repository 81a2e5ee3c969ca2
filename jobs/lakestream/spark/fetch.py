"""Step 2 of a batch: its records, read once, parsed, and kept by the executors until they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from lakestream.engine import Fetched
from lakestream.kinesis import KinesisSettings, read_ranges
from lakestream.model import BatchPlan, ShardStats
from lakestream.spark.findings import FindingReader, Findings
from lakestream.spark.pipeline import Pipeline
from lakestream.spark.read import read_batch

_QUANTILES = [step / 20 for step in range(21)]
"""Arrival times per shard that stand for all of them: the first, every 5 %, the last."""


class SparkFetcher:
    """Reads plans with Spark; the engine's `Fetcher[DataFrame]`."""

    def __init__(
        self,
        spark: SparkSession,
        settings: KinesisSettings,
        pipeline: Pipeline,
        reader: FindingReader = read_ranges,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._pipeline = pipeline
        self._reader = reader
        self._findings = Findings(spark)

    def fetch(self, plan: BatchPlan) -> Fetched[DataFrame]:
        """Read and parse the plan's ranges, in one job that also fills the executors' memory, and divide them."""
        settings = replace(self._settings, retention=plan.trim.retention) if plan.trim else self._settings
        reader = self._findings.kept(plan.batch, self._reader)
        raw = read_batch(self._spark, settings, plan, self._pipeline.schema, reader)
        # Spilled to disk rather than read from Kinesis a second time, whose read limits others share.
        parsed = self._pipeline.parse(raw).persist(StorageLevel.MEMORY_AND_DISK_DESER)
        found = sorted(_shard_rows(parsed), key=lambda row: row["shard_id"])
        divided = self._pipeline.divide(parsed)
        rejected = sum(row["rejected"] for row in found) + divided.refused
        return Fetched(
            rows=divided.rows,
            rejected=divided.rejected,
            # Of records that a transform takes together, rows are refused: there may be more of them.
            rejected_count=min(rejected, sum(row["records"] for row in found)),
            shards=tuple(_stats(row) for row in found),
            arrivals=merge_quantiles([(row["records"], row["arrivals"]) for row in found]),
            findings=lambda: self._findings.of(plan.batch),
            release=lambda: _unpersist(parsed),
        )


def _shard_rows(parsed: DataFrame) -> list[Row]:
    micros = sf.unix_micros("arrival")
    return (
        parsed.groupBy("shard_id")
        .agg(
            sf.count("*").alias("records"),
            # User records of an aggregate are numbered from 0 on.
            sf.count_if(sf.col("sub_sequence") == 0).alias("kinesis_records"),
            sf.sum(sf.length("data")).alias("bytes"),
            sf.count("_reason").alias("rejected"),
            sf.min(micros).alias("first"),
            sf.max(micros).alias("last"),
            sf.percentile_approx(micros, _QUANTILES, 1000).alias("arrivals"),
        )
        .collect()
    )


def _stats(row: Row) -> ShardStats:
    return ShardStats(
        shard_id=row["shard_id"],
        records=row["records"],
        bytes=row["bytes"],
        first_arrival=_time(row["first"]),
        last_arrival=_time(row["last"]),
        kinesis_records=None if row["kinesis_records"] == row["records"] else row["kinesis_records"],
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
        while len(merged) < len(_QUANTILES) and below >= _QUANTILES[len(merged)] * total - 1e-6:
            merged.append(_time(value))
    return tuple(merged)


def _time(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def _unpersist(parsed: DataFrame) -> None:
    parsed.unpersist()
