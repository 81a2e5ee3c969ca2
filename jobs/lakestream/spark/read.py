"""Read the ranges of a plan with Spark: each task of the plan is a partition, without a shuffle."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lakestream.faults import reach
from lakestream.kinesis import KinesisSettings
from lakestream.model import BatchPlan, ShardRange
from lakestream.spark.screen import SCREENED, screen
from lakestream.spark.worker import settle_worker

if TYPE_CHECKING:
    import pyarrow as pa

RAW_SCHEMA = StructType(
    [
        StructField("data", BinaryType()),
        StructField("partition_key", StringType()),
        StructField("sequence_number", StringType()),
        StructField("sub_sequence", LongType()),
        StructField("shard_id", StringType()),
        StructField("arrival", TimestampType()),
        *(StructField(name, StringType()) for name in SCREENED),
    ]
)
"""One row per user record: the reader's columns, and those of `screen`."""

Reader = Callable[[KinesisSettings, Sequence[ShardRange]], "Iterator[pa.RecordBatch]"]


def read_batch(
    spark: SparkSession,
    settings: KinesisSettings,
    plan: BatchPlan,
    schema: StructType,
    reader: Reader,
) -> DataFrame:
    """The records of a plan, with the columns of `RAW_SCHEMA`.

    The same rows in the same partitions and order however often a task runs, since a plan says what each task reads.

    Args:
        spark: the session.
        settings: how executors reach Kinesis; pickled.
        plan: has at least one range.
        schema: of the events; pickled.
        reader: yields the records of ranges, with the columns of `lakestream.kinesis.SCHEMA`; pickled.
    """
    tasks = plan.tasks

    def read(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        settle_worker()
        for batch in batches:
            for task in batch.column(0).to_pylist():
                yield from screen(past_half(reader(settings, tasks[task]), tasks[task]), schema)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, RAW_SCHEMA)


def past_half(batches: "Iterable[pa.RecordBatch]", ranges: Sequence[ShardRange]) -> "Iterator[pa.RecordBatch]":
    """The batches as they are; on the way the crash point, once half of what the plan expects has been handed on.

    At the end at the latest, for the plan only estimates.
    """
    expected, handed_on, is_past = sum(piece.expected_records for piece in ranges), 0, False
    for batch in batches:
        yield batch
        handed_on += batch.num_rows
        if not is_past and 2 * handed_on >= expected:
            is_past = True
            reach("half_read")
    if not is_past:
        reach("half_read")
