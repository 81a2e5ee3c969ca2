"""What Spark says of the time that tasks ran, and whose it was."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark import InheritableThread
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from lakestream.spark.tasktime import SERVICES_POOL, TaskTime


def work(spark: SparkSession, seconds: float, tasks: int = 2) -> None:
    """Tasks that run for so long each."""

    def sleep(part: object) -> list[object]:
        threading.Event().wait(seconds)
        return []

    spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(sleep).collect()


def elsewhere(run: Callable[[], None]) -> None:
    """In a thread of its own, as fetching and services have."""
    thread = InheritableThread(target=run)
    thread.start()
    thread.join()


def test_a_batch_has_the_time_of_its_own_tasks(spark: SparkSession) -> None:
    work(spark, 0)  # starts Python's workers
    times = TaskTime(spark)
    times.written(-1)

    def fetch(batch: int, seconds: float) -> None:
        def run() -> None:
            times.fetching(batch)
            work(spark, seconds)
            times.fetched(batch)

        elsewhere(run)

    def compact() -> None:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", SERVICES_POOL)
        work(spark, 2)

    fetch(7, 0.2)
    # While batch 7 is written, the next one is fetched, and the table is compacted.
    fetch(8, 2)
    elsewhere(compact)
    spark.sparkContext.setJobGroup("of Hudi", "in its own words")
    work(spark, 0.1)
    seven = times.written(7)
    work(spark, 0.2)
    eight = times.written(8)
    assert seven is not None
    assert eight is not None
    # Far below the four core-seconds of what ran beside it.
    assert 0.4 <= seven.fetch < 3
    assert 0.2 <= seven.write < 3
    assert 4 <= eight.fetch < 8
    assert 0.4 <= eight.write < 3
    assert times.written(9) is None, "it was never fetched"


def test_shuffles_count_whole(spark: SparkSession) -> None:
    times = TaskTime(spark)
    times.written(-1)
    times.fetching(1)
    times.fetched(1)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert spark.range(0, 2_000_000, 1, 4).groupBy((sf.col("id") % 7).alias("seven")).count().count() == 7
    found = times.written(1)
    assert found is not None
    assert found.fetch == 0
    assert found.write > 0
