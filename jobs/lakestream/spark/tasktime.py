"""How long the tasks of a batch ran, as Spark measures it: what a batch costs, on whatever executors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakestream.spark.failures import SPARK_ERRORS
from lakestream_api import CoreSeconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SERVICES_POOL = "table-services"
"""Pool of Spark's fair scheduler for compaction, cleaning and archiving: they get as many slots as a batch, not all of
them; no batch waits for their tasks, and none pays for them."""
_SHORT = 0.05
"""Seconds of tasks that are not worth asking whose they were."""


class TaskTime:
    """Reads the run times of stages from Spark's status store.

    A batch is fetched by jobs of a group of its own, while the one before is written. All other stages since the last
    look are of the batch that was written, but for those in the pool of the table's services. Hudi sets groups of its
    own, a pool it leaves alone.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._store: Any = self._context._jsc.sc().statusStore()
        gateway: Any = self._context._gateway
        self._quantiles = gateway.new_array(gateway.jvm.double, 0)
        self._next = 0
        self._fetches: dict[int, float] = {}
        self._known: set[int] = set()
        self._written(set())

    def fetching(self, batch: int) -> None:
        """The jobs that this thread begins from now on fetch that batch."""
        self._context.setJobGroup(_group(batch), f"batch {batch}: fetch")

    def fetched(self, batch: int) -> None:
        """That batch is fetched: take down its core-seconds, in the time of the thread that fetches."""
        try:
            stages = self._stages_of(batch)
        except SPARK_ERRORS:
            return
        self._known |= stages
        self._fetches[batch] = sum(seconds for stage in stages if (seconds := self._seconds(stage)) is not None)

    def written(self, batch: int) -> CoreSeconds | None:
        """What that batch took; None if Spark does not tell, or the batch was not fetched in this run."""
        try:
            ahead = self._stages_of(batch + 1)
            write = sum(self._written(self._known | ahead))
        except SPARK_ERRORS:
            return None
        self._known = {stage for stage in self._known | ahead if stage >= self._next}
        fetch = self._fetches.pop(batch, None)
        return None if fetch is None else CoreSeconds(fetch=fetch, write=write)

    def _written(self, fetching: set[int]) -> list[float]:
        """Of each stage that is neither for fetching nor in the pool of services, since the last call."""
        # Spark tells the newest first, and forgets the oldest of many.
        told = self._store.stageList(None, False, False, self._quantiles, None)
        if told.isEmpty():
            return []
        stages = range(max(self._next, int(told.last().stageId())), int(told.head().stageId()) + 1)
        self._next = max(self._next, stages.stop)
        return [self._seconds(stage, without=SERVICES_POOL) or 0.0 for stage in stages if stage not in fetching]

    def _stages_of(self, batch: int) -> set[int]:
        tracker = self._context.statusTracker()
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(_group(batch)))
        return {stage for job in jobs if job is not None for stage in job.stageIds}

    def _seconds(self, stage: int, without: str | None = None) -> float | None:
        """Run time of a stage's tasks, 0 in that pool; None: there is no such stage."""
        try:
            data = self._store.lastStageAttempt(stage)
        except SPARK_ERRORS:
            return None
        seconds = float(data.executorRunTime()) / 1000
        # Each question is a way to the JVM and back, between two batches.
        return 0.0 if seconds > _SHORT and without is not None and data.schedulingPool() == without else seconds


def _group(batch: int) -> str:
    return f"lakestream-fetch-{batch}"
