"""Tells those who follow a run how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lakestream.anew import batches_go_on
from lakestream.by_hand import ByHand
from lakestream.catalogs import CatalogKeeper
from lakestream.control import DriverControl, ProgressReporter
from lakestream.model import BatchCommit, BatchPlan, ShardStats, Upkeep
from lakestream.spark.tasktime import TaskTime


@dataclass(frozen=True, slots=True)
class RunObserver:
    """The engine's observer."""

    reporter: ProgressReporter
    control: DriverControl
    keeper: CatalogKeeper | None
    by_hand: ByHand | None
    times: TaskTime
    table: Upkeep

    def committed(self, commit: BatchCommit, arrivals: tuple[datetime, ...]) -> None:
        if self.keeper is not None and commit.sink is not None:
            self.keeper.committed(entry.partition for entry in commit.sink.files)
        self.reporter.committed(commit, arrivals)
        batches_go_on()

    def fetching(self, batch: int) -> None:
        self.times.fetching(batch)

    def fetched(self, plan: BatchPlan, shards: Sequence[ShardStats]) -> None:
        self.times.fetched(plan.batch)
        if not plan.parts:
            self.control.fetched(self.reporter.fetched(plan, shards))

    def between_batches(self) -> None:
        self.control.between_batches()
        self.table.tend()
        if self.by_hand is not None:
            self.by_hand.between_batches()

    def idle(self, looked_at: datetime, caught_up_to: datetime) -> None:
        self.reporter.idle(caught_up_to)
        self.control.idle(looked_at, caught_up_to)
        batches_go_on()
