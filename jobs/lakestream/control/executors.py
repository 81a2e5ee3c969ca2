"""The executors of a running driver: more of them at once, fewer between two batches, never a restart.

Down is done in two steps, in this order: the total is lowered, then the surplus is decommissioned. The other way round
Spark's pod allocator would replace what has just been decommissioned.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lakestream_api.report import ExecutorsReport

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Executor:
    """A registered executor that can be given tasks."""

    id: int
    """Spark's number; counts up, so a higher one is younger."""
    running_tasks: int
    cached_bytes: int
    """Of fetched batches, in memory and on disk: what it has to hand over before it ends."""


@dataclass(frozen=True, slots=True)
class ExecutorCounts:
    registered: int
    """Can be given tasks."""
    leaving: int
    """Being decommissioned, or lost and not yet given up by Spark."""


class ExecutorPool(Protocol):
    """What is asked of the cluster manager; `spark.executors` has the one of Spark."""

    def counts(self) -> ExecutorCounts: ...

    def executors(self) -> tuple[Executor, ...]:
        """Those that can be given tasks."""
        ...

    def finished_tasks(self) -> int:
        """A number that changes whenever a task has ended."""
        ...

    def request_total(self, executors: int) -> None:
        """Ask for so many; one that is lost is replaced up to this number."""
        ...

    def decommission(self, ids: Sequence[int]) -> None:
        """Let executors finish their tasks, hand over what they have cached, and end."""
        ...


def surplus(executors: Sequence[Executor], target: int) -> tuple[int, ...]:
    """Ids of the executors to give up: the least busy ones, of equals the one with least to hand over, then the
    youngest."""
    by_worth = sorted(executors, key=lambda e: (e.running_tasks, e.cached_bytes, -e.id))
    return tuple(executor.id for executor in by_worth[: max(0, len(executors) - target)])


class ExecutorScaler:
    """Brings a driver to its target. No error of Spark leaves it: a batch goes on with the executors that there are."""

    def __init__(self, pool: ExecutorPool, initial: int) -> None:
        """`initial` is what the session was started with."""
        self._pool = pool
        self._target = initial
        self._requested = initial
        self._counts = ExecutorCounts(0, 0)
        self._finished_tasks = 0
        self._one_at_a_time = threading.Lock()

    @property
    def target(self) -> int:
        return self._target

    def aim(self, target: int) -> None:
        """Take a target, from any thread: more executors are asked for now, fewer by `between_batches`."""
        if target != self._target:
            logger.info("executors: %d wanted in place of %d", target, self._target)
            self._target = target
        if target > self._requested:
            self._attempt(raise_only=True)

    def between_batches(self) -> None:
        """Give up the surplus; to be called by the thread that writes, while no batch is being written.

        Also of executors that have come up after the target was lowered, which Spark itself leaves running.
        """
        self._attempt(raise_only=False)

    def report(self) -> ExecutorsReport:
        """What has been asked for, and what there is; the last known if Spark cannot tell."""
        try:
            self._counts = self._pool.counts()
        except Exception:
            logger.debug("Spark cannot tell its executors", exc_info=True)
        return ExecutorsReport(
            target=self._requested, registered=self._counts.registered, decommissioning=self._counts.leaving
        )

    def has_worked(self) -> bool:
        """Whether a task has ended since this was asked before."""
        before = self._finished_tasks
        try:
            self._finished_tasks = self._pool.finished_tasks()
        except Exception:
            logger.debug("Spark cannot tell its tasks", exc_info=True)
        return self._finished_tasks != before

    def _attempt(self, *, raise_only: bool) -> None:
        with self._one_at_a_time:
            try:
                self._settle(raise_only=raise_only)
            except Exception:
                # Tried again after the next batch; if the JVM is gone, the batch itself will say so.
                logger.warning("the executors could not be brought to %d", self._target, exc_info=True)

    def _settle(self, *, raise_only: bool) -> None:
        target = self._target
        if target > self._requested or (target < self._requested and not raise_only):
            self._pool.request_total(target)
            self._requested = target
        if raise_only or self._pool.counts().registered <= target:
            return
        if leaving := surplus(self._pool.executors(), target):
            logger.info("decommissioning the executors %s", ", ".join(map(str, leaving)))
            self._pool.decommission(leaving)
