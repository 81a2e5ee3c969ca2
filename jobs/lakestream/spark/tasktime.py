"""How long the tasks of a batch ran, as Spark measures it: what a batch costs, on whatever executors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakestream.spark.failures import SPARK_ERRORS
from lakestream_api import CoreSeconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SERVICES_POOL = "table-services"
"""Pool of Spark's fair scheduler (`fairscheduler.xml`) for compaction, cleaning and archiving: while batches have tasks
too they get a quarter of the slots; no batch waits for all of their tasks, and none pays for them."""
_SHORT = 0.05
"""Seconds of tasks that are not worth asking whose they were."""


class TaskTime:
    """Reads the run times of stages from Spark's status store.

    A batch is fetched by jobs of a group of its own, while the one before is written. All other stages since the last
    look are of the batch that was written, but for those in the pool of the table's services, which may run for many
    batches. Hudi sets groups of its own, a pool it leaves alone.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._store: Any = self._context._jsc.sc().statusStore()
        gateway: Any = self._context._gateway
        self._quantiles = gateway.new_array(gateway.jvm.double, 0)
        status = gateway.jvm.org.apache.spark.status.api.v1.StageStatus
        self._pending, self._active = (
            gateway.jvm.java.util.Collections.singletonList(name) for name in (status.PENDING, status.ACTIVE)
        )
        self._next = 0
        self._waiting: set[int] = set()
        """Stages that had not begun at the last look: whose they are, Spark tells when they begin. And those of writing
        of whose end it had not told."""
        self._fetches: dict[int, float] = {}
        self._known: set[int] = set()
        self._services: dict[int, float] = {}
        """Stages of services that ran at the last look, and what they had taken by then."""
        self._look(None)

    def fetching(self, batch: int) -> None:
        """The jobs that this thread begins from now on fetch that batch."""
        self._context.setJobGroup(_group(batch), f"batch {batch}: fetch")

    def fetched(self, batch: int) -> None:
        """That batch is fetched: take down its core-seconds, in the time of the thread that fetches."""
        try:
            stages = self._stages_of(batch)
        except SPARK_ERRORS:
            return
        self._known.update(stages)
        self._fetches[batch] = sum(seconds for stage in stages if (seconds := self._seconds(stage)) is not None)

    def written(self, batch: int) -> CoreSeconds | None:
        """What that batch took; None if Spark does not tell, or the batch was not fetched in this run."""
        try:
            write, services = self._look(batch + 1)
        except SPARK_ERRORS:
            return None
        # In place: the thread that fetches adds to it at any time.
        self._known -= {stage for stage in self._known.copy() if stage < self._next}
        fetch = self._fetches.pop(batch, None)
        return None if fetch is None else CoreSeconds(fetch=fetch, write=write, services=services)

    def _look(self, ahead: int | None) -> tuple[float, float]:
        """Seconds of writing and of services since the last look, while the batch `ahead` may be fetched."""
        stages = self._waiting | self._new()
        # Behind that: a fetch that begins in between has none of these stages.
        if ahead is not None:
            self._known.update(self._stages_of(ahead))
        stages -= self._known
        # In the order in which a stage passes them, so that none begins unseen in between.
        waiting, active = self._those(self._pending), self._those(self._active)
        self._waiting = stages & waiting
        return self._written(stages - waiting, active), self._served(active)

    def _new(self) -> set[int]:
        """Stages that were not there at the last look."""
        # Spark tells the newest first, and forgets the oldest of many.
        told = self._list(None)
        if told.isEmpty():
            return set()
        stages = range(max(self._next, int(told.last().stageId())), int(told.head().stageId()) + 1)
        self._next = max(self._next, stages.stop)
        return set(stages)

    def _written(self, stages: set[int], active: set[int]) -> float:
        """Of these stages, but for those of services, which are put aside."""
        found = 0.0
        for stage in stages:
            seconds = self._seconds(stage) or 0.0
            # Each question is a way to the JVM and back, between two batches.
            if (seconds > _SHORT or stage in active) and self._is_service(stage):
                self._services[stage] = 0.0
            elif stage in active:  # it is over, but Spark has not told yet
                self._waiting.add(stage)
            else:
                found += seconds
        return found

    def _served(self, active: set[int]) -> float:
        """Of the stages of services, since the last call."""
        found = 0.0
        for stage, before in tuple(self._services.items()):
            seconds = self._seconds(stage)
            found += max(0.0, (before if seconds is None else seconds) - before)
            if stage in active and seconds is not None:
                self._services[stage] = seconds
            else:
                del self._services[stage]
        return found

    def _those(self, status: Any) -> set[int]:
        stages = self._list(status)
        return {int(stages.apply(at).stageId()) for at in range(stages.size())}

    def _list(self, status: Any) -> Any:
        """Stages of that status, or all."""
        return self._store.stageList(status, False, False, self._quantiles, None)

    def _stages_of(self, batch: int) -> set[int]:
        tracker = self._context.statusTracker()
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(_group(batch)))
        return {stage for job in jobs if job is not None for stage in job.stageIds}

    def _is_service(self, stage: int) -> bool:
        return bool(self._store.lastStageAttempt(stage).schedulingPool() == SERVICES_POOL)

    def _seconds(self, stage: int) -> float | None:
        """Run time of a stage's tasks; None: there is no such stage."""
        try:
            data = self._store.lastStageAttempt(stage)
        except SPARK_ERRORS:
            return None
        return float(data.executorRunTime()) / 1000


def _group(batch: int) -> str:
    return f"lakestream-fetch-{batch}"
