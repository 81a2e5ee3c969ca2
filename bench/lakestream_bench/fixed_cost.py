"""What a batch takes that no executor makes shorter, by its tasks: `a` of autoscaler and simulator.

    python -m lakestream_bench.fixed_cost [--tasks 1 8 32 128 512] [--rounds 5] [--out fixed_cost.json]

Batches of a few records a task, out of memory, go through fetcher and sink of a merge-on-read table, one at a time.
What a stage took beyond its tasks' core-seconds on the slots is `a`, as the autoscaler has it. Two slots run all tasks,
so what goes by their number is what Spark's driver takes for each and what passes between two tasks of a slot: where
there are as many slots as tasks, only the former is left. It is a bound from above.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from lakestream.kinesis import SCHEMA, KinesisSettings
from lakestream.model import BatchPlan, Reading, ShardRange, after, at
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hudi import HudiSettings, HudiSink
from lakestream.spark.fetch import SparkFetcher
from lakestream.spark.pipeline import Pipeline
from lakestream.spark.session import SessionSettings, build_session
from lakestream.spark.tasktime import TaskTime
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream_api import TableType
from lakestream_bench._figures import write_figures
from lakestream_bench._options import out_file, whole
from lakestream_bench._processes import no_process_left
from lakestream_bench._telling import Telling

TASKS = (1, 8, 32, 128, 512)
"""More hold up two cores for longer than they tell."""
WARM_UP = 6
"""Batches of each size that are not counted."""
ROWS = 20
"""Records of a task."""
SCHEMA_DDL = "id string, version bigint, dt string"
ARRIVAL = datetime(2026, 1, 31, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Figure:
    """Batches of so many tasks; medians."""

    tasks: int
    rounds: int
    fetch_fixed: float
    """Seconds beyond the core-seconds on the slots."""
    write_fixed: float
    fetch_work: float
    """Core-seconds."""
    write_work: float


@dataclass(frozen=True)
class Once:
    """One batch: seconds and core-seconds of its stages."""

    fetch: float
    write: float
    fetch_work: float
    write_work: float


class Batches:
    """A table, and batches of any number of tasks for it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        region = "eu-west-1"
        table = HudiSettings(
            path=f"file://{folder}/table",
            table="fixed",
            record_key=("id",),
            ordering_field="version",
            table_type=TableType.MERGE_ON_READ,
            partition_by=("dt",),
        )
        self._spark = spark
        self._sink = HudiSink(spark, table)
        pipeline = Pipeline.of(spark, SCHEMA_DDL, None, self._sink.refusal)
        self._sink.prepare(pipeline.output)
        quarantine = StoreSettings(LakePath.parse(f"{folder}/quarantine"), S3Settings(region))
        self._fetcher = SparkFetcher(spark, KinesisSettings("orders", region), pipeline, quarantine, records_of)
        self._times = TaskTime(spark)
        self._next = 0

    def run(self, tasks: int) -> Once:
        """One batch, from its plan to its commit."""
        batch, self._next = self._next, self._next + 1
        plan = plan_of(batch, tasks)
        self._times.fetching(batch)
        began = time.perf_counter()
        fetched = self._fetcher.fetch(plan)
        ready = time.perf_counter()
        self._settle()
        self._times.fetched(batch)
        self._spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        resumed = time.perf_counter()
        self._sink.write(BatchRef(batch, "benchmark"), fetched.rows, replay=False)
        written = time.perf_counter()
        self._settle()
        work = self._times.written(batch)
        fetched.release()
        self._sink.finish_services()
        assert work is not None
        return Once(ready - began, written - resumed, work.fetch, work.write)

    def close(self) -> None:
        self._sink.close()

    def _settle(self) -> None:
        # Spark tells what tasks took a moment later.
        context: Any = self._spark.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()


def plan_of(batch: int, tasks: int) -> BatchPlan:
    """A shard for each task, and some records in each."""
    ranges = tuple(
        ShardRange(
            shard_id=f"shardId-{task:012d}",
            start=at(batch * ROWS + 1),
            end=after((batch + 1) * ROWS),
            first=batch * ROWS + 1,
            first_arrival=ARRIVAL,
            end_arrival=ARRIVAL + timedelta(seconds=ROWS),
            closes_shard=False,
            expected_records=ROWS,
            task=task,
        )
        for task in range(tasks)
    )
    horizon = ARRIVAL + timedelta(seconds=ROWS)
    return BatchPlan(
        batch=batch,
        epoch=1,
        planned_at=horizon,
        base=ARRIVAL,
        horizon=horizon,
        caught_up=True,
        ranges=ranges,
        cursors=tuple(Reading(piece.shard_id, piece.end, ARRIVAL, None) for piece in ranges),
    )


def records_of(_: KinesisSettings, pieces: Sequence[ShardRange]) -> Iterator[pa.RecordBatch]:
    """What the shards of a plan give: keys that come again with each batch, and new versions."""
    for piece in pieces:
        numbers = range(piece.first, piece.first + ROWS)
        texts = [f'{{"id":"{piece.task}-{n % ROWS}","version":{n},"dt":"2026-01-31"}}'.encode() for n in numbers]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(texts, pa.binary()),
                pa.array([f"key-{n}" for n in numbers]),
                pa.array([str(n) for n in numbers]),
                pa.array([0] * ROWS, pa.int64()),
                pa.array([piece.shard_id] * ROWS),
                pa.array([ARRIVAL + timedelta(seconds=n) for n in range(ROWS)], pa.timestamp("us", tz="UTC")),
            ],
            schema=SCHEMA,
        )


def figure_of(tasks: int, slots: int, found: Sequence[Once]) -> Figure:
    """What batches of one size come to."""
    return Figure(
        tasks,
        len(found),
        statistics.median(max(0.0, one.fetch - one.fetch_work / min(slots, tasks)) for one in found),
        statistics.median(max(0.0, one.write - one.write_work / min(slots, tasks)) for one in found),
        statistics.median(one.fetch_work for one in found),
        statistics.median(one.write_work for one in found),
    )


def measure(folder: Path, sizes: Sequence[int], rounds: int) -> list[Figure]:
    """Batches of all sizes in turn, in one driver."""
    slots = os.cpu_count() or 1
    spark = build_session(SessionSettings("fixed-cost", cores=slots, hudi=True, local_dir=folder / "spark"))
    batches = Batches(spark, folder)
    for size in (*sizes, *[sizes[0]] * WARM_UP, *sizes):
        batches.run(size)
    found: dict[int, list[Once]] = {size: [] for size in sizes}
    for _ in range(rounds):
        for size in sizes:
            found[size].append(batches.run(size))
    batches.close()
    spark.stop()
    return [figure_of(size, slots, once) for size, once in found.items()]


def main() -> None:
    """Print a table, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=whole(), nargs="+", default=list(TASKS))
    parser.add_argument("--rounds", type=whole(), default=5, help="batches of each size that are counted")
    parser.add_argument("--out", type=out_file, default=None)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="lakestream-bench-") as folder,
        Telling(1).measuring("batches of all sizes"),
    ):
        figures = measure(Path(folder), options.tasks, options.rounds)
    print(f"{os.cpu_count()} slots; medians of {options.rounds} batches of {ROWS} records a task, in seconds")
    print(f"{'tasks':>6}{'a, fetch':>10}{'a, write':>10}{'core-s, fetch':>15}{'core-s, write':>15}")
    for one in figures:
        print(
            f"{one.tasks:>6}{one.fetch_fixed:>10.3f}{one.write_fixed:>10.3f}{one.fetch_work:>15.3f}{one.write_work:>15.3f}"
        )
    if len(figures) > 1:
        for name, values in (
            ("fetch", [one.fetch_fixed for one in figures]),
            ("write", [one.write_fixed for one in figures]),
        ):
            line = statistics.linear_regression([one.tasks for one in figures], values)
            print(f"a, {name}: {line.intercept:.3f} s + {line.slope * 1e3:.2f} ms a task")
    if options.out:
        write_figures(options.out, "fixed_cost", figures)


if __name__ == "__main__":
    with no_process_left():
        main()
