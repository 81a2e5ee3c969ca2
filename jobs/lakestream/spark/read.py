"""Read what a plan names with Spark: each task of the plan is a partition, without a shuffle."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import DataFrame, SparkSession

from lakestream.avro import in_json, texts_of
from lakestream.faults import reach
from lakestream.kinesis import KinesisSettings
from lakestream.kinesis.objects import parted
from lakestream.kinesis.texts import expanded
from lakestream.model import BatchPlan, FileEntry, FilePart, RecordFormat, ShardRange
from lakestream.spark.arrow import map_in_arrow
from lakestream.spark.events import events_schema, typed
from lakestream.spark.filters import taken
from lakestream.spark.parts import literals_of, read_parts
from lakestream.spark.pipeline import Pipeline
from lakestream.spark.rejects import read_rejects
from lakestream.spark.tallies import Tallies
from lakestream.spark.worker import settle_worker
from lakestream.storage import S3Settings, StoreSettings

if TYPE_CHECKING:
    import pyarrow as pa

Reader = Callable[[KinesisSettings, Sequence[ShardRange]], "Iterator[pa.RecordBatch]"]
Task = TypeVar("Task")


def read_batch(
    spark: SparkSession,
    settings: KinesisSettings,
    plan: BatchPlan,
    tasks: Sequence[Sequence[ShardRange]],
    pipeline: Pipeline,
    reader: Reader,
    tallies: Tallies,
) -> DataFrame:
    """The records of a plan's ranges, with the columns of `events_schema`.

    The same rows in the same partitions and order however often a task runs, since a plan says what each task reads.

    Args:
        spark: the session.
        settings: how executors reach Kinesis; pickled.
        plan: names the ranges.
        tasks: these, by task: of the stream, or of a span; one at least.
        pipeline: what becomes of the records.
        reader: yields the records of ranges, with the columns of `lakestream.kinesis.SCHEMA`; pickled.
        tallies: are told what each task has read; pickled.
    """

    def read(ranges: Sequence[ShardRange]) -> "Iterator[pa.RecordBatch]":
        return past_half(reader(settings, ranges), sum(piece.expected_records for piece in ranges))

    return _events(spark, plan.batch, tasks, read, pipeline, tallies)


def read_readmitted(
    spark: SparkSession, place: StoreSettings, plan: BatchPlan, pipeline: Pipeline, tallies: Tallies
) -> DataFrame:
    """The records of a plan's files of the quarantine, as `read_batch` gives those of the stream.

    Args:
        spark: the session.
        place: the writer's quarantine; pickled.
        plan: has at least one such file.
        pipeline: what becomes of the records.
        tallies: are told what each task has read; pickled.
    """

    registry = pipeline.registry

    def read(files: Sequence[FileEntry]) -> "Iterator[pa.RecordBatch]":
        if registry is not None:
            texts_of(registry).ask_again()
        return past_half(read_rejects(place, files), sum(entry.rows for entry in files))

    return _events(spark, plan.batch, plan.readmits, read, pipeline, tallies)


def read_backfill(
    spark: SparkSession, s3: S3Settings, plan: BatchPlan, pipeline: Pipeline, tallies: Tallies, *, of_table: bool
) -> DataFrame:
    """The records of a plan's parts of files, as `read_batch` gives those of the stream.

    Args:
        spark: the session.
        s3: how to reach files on S3; pickled.
        plan: has at least one such part.
        pipeline: what becomes of the records; of rows of a table, that of these.
        tallies: are told what each task has read; pickled.
        of_table: the records are rows of a table.
    """
    literals = literals_of(pipeline.schema) if pipeline.record_format is not RecordFormat.TEXT else {}
    several = pipeline.record_format is RecordFormat.JSONL and not of_table

    def read(parts: Sequence[FilePart]) -> "Iterator[pa.RecordBatch]":
        return past_half(read_parts(s3, parts, literals, several=several), sum(part.rows for part in parts))

    return _events(spark, plan.batch, plan.backfills, read, pipeline, tallies, of_table=of_table)


def _events(
    spark: SparkSession,
    number: int,
    tasks: Sequence[Task],
    records: "Callable[[Task], Iterator[pa.RecordBatch]]",
    pipeline: Pipeline,
    tallies: Tallies,
    *,
    of_table: bool = False,
) -> DataFrame:
    # And not the JVM's columns: they are pickled.
    schema, record_format = pipeline.schema, pipeline.record_format
    filters, rescues, registry = pipeline.filters, pipeline.rescues, pipeline.registry
    # Each task unpickles what all of them are given: of what is the others' it shall only copy bytes.
    pickled = [pickle.dumps(task) for task in tasks]

    def part(raw: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        return parted(raw) if record_format is RecordFormat.JSONL else raw

    def become(raw: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        with_texts = expanded(raw) if registry is None else in_json(raw, texts_of(registry))
        return typed(taken(with_texts, filters), schema, record_format, of_table=of_table, rescues=rescues)

    def read(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        settle_worker()
        for batch in batches:
            for task in batch.column(0).to_pylist():
                own: Task = pickle.loads(pickled[task])
                yield from tallies.kept(number, task, records(own), part, become)

    return map_in_arrow(spark.range(0, len(tasks), 1, len(tasks)), read, events_schema(schema, of_table=of_table))


def past_half(batches: "Iterable[pa.RecordBatch]", expected: int) -> "Iterator[pa.RecordBatch]":
    """The batches as they are; on the way the crash point, once half of the expected records have been handed on.

    At the end at the latest, for the plan only estimates.
    """
    handed_on, is_past = 0, False
    for batch in batches:
        yield batch
        handed_on += batch.num_rows
        if not is_past and 2 * handed_on >= expected:
            is_past = True
            reach("half_read")
    if not is_past:
        reach("half_read")
