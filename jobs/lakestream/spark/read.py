"""Read the ranges of a plan with Spark: each task of the plan is a partition, without a shuffle."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakestream.faults import reach
from lakestream.kinesis import KinesisSettings
from lakestream.model import BatchPlan, ShardRange
from lakestream.spark.events import events_schema, typed
from lakestream.spark.tallies import Tallies
from lakestream.spark.worker import settle_worker

if TYPE_CHECKING:
    import pyarrow as pa

Reader = Callable[[KinesisSettings, Sequence[ShardRange]], "Iterator[pa.RecordBatch]"]


def read_batch(
    spark: SparkSession,
    settings: KinesisSettings,
    plan: BatchPlan,
    schema: StructType,
    reader: Reader,
    tallies: Tallies,
) -> DataFrame:
    """The records of a plan, with the columns of `events_schema`.

    The same rows in the same partitions and order however often a task runs, since a plan says what each task reads.

    Args:
        spark: the session.
        settings: how executors reach Kinesis; pickled.
        plan: has at least one range.
        schema: of the events; pickled.
        reader: yields the records of ranges, with the columns of `lakestream.kinesis.SCHEMA`; pickled.
        tallies: are told what each task has read; pickled.
    """
    tasks, number = plan.tasks, plan.batch

    def read(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        settle_worker()
        for batch in batches:
            for task in batch.column(0).to_pylist():
                events = typed(past_half(reader(settings, tasks[task]), tasks[task]), schema)
                yield from tallies.kept(number, task, events)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, events_schema(schema))


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
