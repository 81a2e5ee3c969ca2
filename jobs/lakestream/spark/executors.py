"""Spark's executors, by the calls that dynamic allocation itself uses (py4j)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakestream.control.executors import Executor, ExecutorCounts
from lakestream.errors import RetryLaterError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DRIVER = "driver"


class ExecutorsUnavailableError(RetryLaterError):
    """The scheduler backend does not take a number of executors now."""


class SparkExecutorPool:
    """The executors of one application; an `ExecutorPool`."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._context: Any = spark.sparkContext._jsc.sc()
        self._backend: Any = self._context.schedulerBackend()

    def counts(self) -> ExecutorCounts:
        known = self._known()
        active = sum(self._backend.isExecutorActive(name) for name in known)
        return ExecutorCounts(active, len(known) - active)

    def executors(self) -> tuple[Executor, ...]:
        active = {name for name in self._known() if self._backend.isExecutorActive(name)}
        return tuple(
            Executor(int(summary.id()), summary.activeTasks(), summary.memoryUsed() + summary.diskUsed())
            for summary in self._summaries()
            if summary.id() in active
        )

    def finished_tasks(self) -> int:
        return sum(summary.completedTasks() + summary.failedTasks() for summary in self._summaries())

    def _summaries(self) -> list[Any]:
        found = self._context.statusStore().executorList(False)
        return [found.apply(index) for index in range(found.size())]

    def request_total(self, executors: int) -> None:
        """Raises ExecutorsUnavailableError if Spark says no."""
        nowhere = self._jvm.PythonUtils.toScalaMap({})
        if not self._context.requestTotalExecutors(executors, 0, nowhere):
            raise ExecutorsUnavailableError(f"Spark did not take {executors} as its number of executors")

    def decommission(self, ids: Sequence[int]) -> None:
        info = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "fewer executors are wanted", self._jvm.scala.Option.empty()
        )
        for number in ids:
            # The total is not to be adjusted: it has been lowered already.
            self._backend.decommissionExecutor(str(number), info, False, False)

    def _known(self) -> list[str]:
        names = self._backend.getExecutorIds().mkString(",")
        return [name for name in names.split(",") if name and name != _DRIVER]
