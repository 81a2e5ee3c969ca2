"""What Spark says of the time that tasks ran, and whose it was."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark import InheritableThread
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from lakestream.spark.tasktime import SERVICES_POOL, TaskTime
from lakestream_api import CoreSeconds


def work(spark: SparkSession, seconds: float, tasks: int = 2) -> float:
    """Run tasks for so long each, or longer on a busy machine; returns how long by the newest job of all."""

    def sleep(part: object) -> list[object]:
        threading.Event().wait(seconds)
        return []

    spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(sleep).collect()
    took = newest_took(spark)
    assert took >= seconds * tasks
    return took


def newest_took(spark: SparkSession) -> float:
    """Seconds of the tasks of the newest job of all."""
    store = told(spark).statusStore()
    jobs = store.jobsList(None)
    stages = max((jobs.apply(at) for at in range(jobs.size())), key=lambda job: int(job.jobId())).stageIds()
    ran = [store.lastStageAttempt(stages.apply(at)).executorRunTime() for at in range(stages.size())]
    return float(sum(ran)) / 1000


def told(spark: SparkSession) -> Any:
    """Spark's context, once it has told all that it did: that comes a moment later."""
    context: Any = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    return context


def elsewhere(run: Callable[[], float]) -> float:
    """In a thread of its own, as fetching and services have."""
    took: list[float] = []
    thread = InheritableThread(target=lambda: took.append(run()))
    thread.start()
    thread.join()
    return took[0]


@contextmanager
def running(
    spark: SparkSession, gate: Path, run: Callable[[], object], pool: str | None = SERVICES_POOL
) -> Iterator[Callable[[], None]]:
    """Services, in a thread of their own, once they have a stage that runs: its tasks wait for the gate, however late
    they are looked at. Gives what opens it and waits for the end."""

    def compact() -> None:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        run()

    thread = InheritableThread(target=compact)

    def end() -> None:
        gate.touch()
        thread.join()
        told(spark)

    thread.start()
    try:
        store = spark.sparkContext._jsc.sc().statusStore()
        while store.activeStages().isEmpty():
            assert thread.is_alive()
        yield end
    finally:
        end()


def opened(gate: Path) -> None:
    """In a task: wait until it is."""
    while not gate.exists():
        threading.Event().wait(0.01)


def held(gate: Path, seconds: float) -> Callable[[Iterable[int]], Iterable[int]]:
    """What a task does with its rows: wait for the gate, and then for so long."""

    def hold(rows: Iterable[int]) -> Iterable[int]:
        opened(gate)
        threading.Event().wait(seconds)
        return rows

    return hold


def written(times: TaskTime, batch: int) -> CoreSeconds:
    found = times.written(batch)
    assert found is not None
    return found


def test_a_batch_has_the_time_of_its_own_tasks(spark: SparkSession) -> None:
    work(spark, 0)  # starts Python's workers
    times = TaskTime(spark)
    times.written(-1)

    def fetch(batch: int, seconds: float) -> float:
        def run() -> float:
            times.fetching(batch)
            took = work(spark, seconds)
            times.fetched(batch)
            return took

        return elsewhere(run)

    def compact() -> float:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", SERVICES_POOL)
        return work(spark, 0.5)

    fetched = [fetch(7, 0.2)]
    # While batch 7 is written, the next one is fetched, and the table is compacted.
    fetched.append(fetch(8, 0.3))
    elsewhere(compact)
    spark.sparkContext.setJobGroup("of Hudi", "in its own words")
    wrote = [work(spark, 0.1)]
    seven = times.written(7)
    wrote.append(work(spark, 0.2))
    eight = times.written(8)
    assert seven is not None
    assert eight is not None
    assert [seven.fetch, eight.fetch] == pytest.approx(fetched)
    assert [seven.write, eight.write] == pytest.approx(wrote)
    assert seven.services >= 2 * 0.5
    assert eight.services == 0
    assert times.written(9) is None, "it was never fetched"


def test_a_fetch_that_begins_during_a_look_is_not_of_the_batch_that_is_written(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(spark, 0)
    times = TaskTime(spark)
    times.written(-1)
    stages_of, fetched = times._stages_of, []

    def fetch() -> float:
        times.fetching(28)
        return work(spark, 0.1)

    def looked(batch: int) -> set[int]:
        found = stages_of(batch)
        monkeypatch.undo()
        fetched.append(elsewhere(fetch))
        return found

    times.fetched(27)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    wrote = [work(spark, 0.1)]
    monkeypatch.setattr(times, "_stages_of", looked)
    first = times.written(27)
    times.fetched(28)
    wrote.append(work(spark, 0.1))
    second = times.written(28)
    assert first is not None
    assert second is not None
    assert [first.write, second.write] == pytest.approx(wrote)
    assert [second.fetch] == pytest.approx(fetched)


def test_services_that_run_for_several_batches_count_with_each(spark: SparkSession, tmp_path: Path) -> None:
    work(spark, 0)
    times = TaskTime(spark)
    times.written(-1)
    gate = tmp_path / "gate"

    for batch in (1, 2, 3):
        times.fetching(batch)
        times.fetched(batch)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    tasks = spark.sparkContext.parallelize(range(2), 2).mapPartitions(held(gate, 0.5))
    with running(spark, gate, tasks.collect) as end:
        first = written(times, 1)
        end()
        second, third = written(times, 2), written(times, 3)
    took = newest_took(spark)
    assert took >= 2 * 0.5
    assert first.write == second.write == third.write == 0
    assert first.services + second.services == pytest.approx(took)
    assert third.services == 0


def test_what_spark_tells_late_of_a_batch_counts_with_the_next(spark: SparkSession, tmp_path: Path) -> None:
    """As of a stage that is over, while the status store still has it as one that runs."""
    work(spark, 0)
    times = TaskTime(spark)
    times.written(-1)
    gate = tmp_path / "gate"

    def write(batch: int) -> float:
        found = written(times, batch)
        assert found.services == 0
        return found.write

    for batch in (1, 2, 3):
        times.fetched(batch)
    tasks = spark.sparkContext.parallelize(range(2), 2).mapPartitions(held(gate, 0.1))
    with running(spark, gate, tasks.collect, pool=None) as end:
        first = write(1)
        end()
        second, third = write(2), write(3)
    took = newest_took(spark)
    assert took >= 2 * 0.1
    assert (first, third) == (0, 0)
    assert second == pytest.approx(took)


def test_stages_that_wait_at_a_look_count_with_the_next(spark: SparkSession, tmp_path: Path) -> None:
    """A service of two stages, of which the second begins after the look."""
    work(spark, 0)
    times = TaskTime(spark)
    times.written(-1)
    gate = tmp_path / "gate"

    def services(batch: int) -> float:
        found = written(times, batch)
        assert found.write == 0
        return found.services

    for batch in (1, 2):
        times.fetching(batch)
        times.fetched(batch)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    hold = held(gate, 0.4)
    tasks = spark.sparkContext.parallelize(range(2), 2).mapPartitions(hold).groupBy(int).mapPartitions(hold)
    with running(spark, gate, tasks.collect) as end:
        first = services(1)
        end()
        second = services(2)
    took = newest_took(spark)
    assert took >= 2 * 0.4 + 2 * 0.4
    assert first + second == pytest.approx(took)


def test_batches_come_before_services(spark: SparkSession) -> None:
    def weight(pool: str) -> int:
        return int(spark.sparkContext._jsc.sc().getPoolForName(pool).get().weight())

    assert weight("default") == 3 * weight(SERVICES_POOL)


def test_shuffles_count_whole(spark: SparkSession) -> None:
    """Also after more stages than Spark remembers."""
    times = TaskTime(spark)
    for _ in range(int(spark.conf.get("spark.ui.retainedStages") or 0) + 5):
        spark.sparkContext._jsc.sc().range(0, 1, 1, 1).count()
    told(spark)
    times.written(-1)
    times.fetching(1)
    times.fetched(1)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert spark.range(0, 2_000_000, 1, 4).groupBy((sf.col("id") % 7).alias("seven")).count().count() == 7
    told(spark)
    found = times.written(1)
    assert found is not None
    assert found.fetch == 0
    assert found.write > 0
