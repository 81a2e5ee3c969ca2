"""The engine's output: a sink and a quarantine, told which batch it is in their own terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from pyspark.sql import DataFrame

from lakestream.model import BatchPlan, FileEntry, Finished, ShardRange, SinkCommit
from lakestream.sinks.contract import Arrived, BatchRef, Sink
from lakestream.sinks.owner import TableClaim
from lakestream.sinks.quarantine import Quarantine


@dataclass(frozen=True, slots=True)
class SparkOutput:
    """The `Output[DataFrame]` of one writer."""

    sink: Sink
    rejects: Quarantine
    claim: TableClaim
    makes_the_same: bool = True
    """Whether each attempt at a batch makes the same objects in the table: no, if rows go from task to task."""
    is_asked: Callable[[], bool] = lambda: False
    """Whether somebody has asked for something that is not all taken yet. It may wait long for its driver."""

    def check(self) -> None:
        self.claim.check()

    def quarantine(self, plan: BatchPlan, rejected: DataFrame, *, replay: bool) -> tuple[FileEntry, ...]:
        return self.rejects.write(self._ref(plan), rejected, replay=replay)

    def quarantined(self, plan: BatchPlan) -> tuple[FileEntry, ...]:
        return self.rejects.find(self._ref(plan))

    def find(self, plan: BatchPlan) -> SinkCommit | None:
        return self.sink.find(self._ref(plan))

    def write(self, plan: BatchPlan, rows: DataFrame, *, replay: bool) -> SinkCommit:
        ref = self._ref(plan)
        # A task of an attempt that was given up may still run, and must not replace a file of this one.
        return self.sink.write(
            ref if self.makes_the_same else replace(ref, attempt=uuid4().hex[:8]), rows, replay=replay
        )

    def _ref(self, plan: BatchPlan) -> BatchRef:
        arrived = _arrived(plan, is_asked=self.is_asked())
        return BatchRef(plan.batch, str(self.claim.owner.checkpoint), arrived, _asked_until(plan))


def _arrived(plan: BatchPlan, *, is_asked: bool) -> Arrived | None:
    if plan.is_requested:
        return None
    if is_asked or (plan.taken is not None and not plan.taken.is_done):
        return Arrived(None, plan.horizon)
    unread = [cursor.unread_since for cursor in plan.cursors if not isinstance(cursor, Finished)]
    if plan.base is not None:
        unread.append(plan.base)
    return Arrived(min(unread), plan.horizon) if unread else None


def _asked_until(plan: BatchPlan) -> datetime | None:
    pieces = [part for task in plan.parts for part in task if isinstance(part, ShardRange)]
    return max((piece.end_arrival for piece in pieces), default=None)
