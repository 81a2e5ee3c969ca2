"""Read the ranges of a plan with Spark: each task of the plan is a partition, without a shuffle."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lakestream.model import BatchPlan, ShardRange
from lakestream.spark.screen import screen

if TYPE_CHECKING:
    import pyarrow as pa

ClientSettings = TypeVar("ClientSettings")

RAW_SCHEMA = StructType(
    [
        StructField("data", BinaryType()),
        StructField("partition_key", StringType()),
        StructField("sequence_number", StringType()),
        StructField("sub_sequence", LongType()),
        StructField("shard_id", StringType()),
        StructField("arrival", TimestampType()),
        StructField("_rescued", StringType()),
        StructField("_reason", StringType()),
    ]
)
"""One row per user record: the reader's columns, and those of `screen`."""

Reader = Callable[[ClientSettings, Sequence[ShardRange]], "Iterator[pa.RecordBatch]"]


def read_batch(
    spark: SparkSession,
    client_settings: ClientSettings,
    plan: BatchPlan,
    fields: frozenset[str],
    reader: Reader[ClientSettings],
) -> DataFrame:
    """The records of a plan, with the columns of `RAW_SCHEMA`.

    The same rows in the same partitions and order however often a task runs, since a plan says what each task reads.

    Args:
        spark: the session.
        client_settings: how executors reach Kinesis; pickled.
        plan: has at least one range.
        fields: top-level names of the schema; what else a record has is rescued.
        reader: `lakestream.kinesis.reader.read_ranges`; pickled.
    """
    tasks = ranges_by_task(plan.ranges)

    def read(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            for task in batch.column(0).to_pylist():
                yield from screen(reader(client_settings, tasks[task]), fields)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, RAW_SCHEMA)


def ranges_by_task(ranges: Sequence[ShardRange]) -> list[list[ShardRange]]:
    """The ranges of each task, by its number; a plan numbers its tasks from 0 without gaps."""
    by_task: defaultdict[int, list[ShardRange]] = defaultdict(list)
    for piece in ranges:
        by_task[piece.task].append(piece)
    return [by_task[task] for task in sorted(by_task)]
