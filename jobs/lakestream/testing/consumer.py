"""A driver without Spark: plans, reads, remembers both, and judges them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from lakestream.kinesis import HttpKinesisClient, KinesisSettings, Planner, PlannerSettings, RangeReader
from lakestream.kinesis.port import Sleep
from lakestream.model import BatchPlan, Cursor, Finding, ShardRange, Trim
from lakestream.testing.verdicts import delivery_faults, order_faults, tiling_faults


class HeldRecord(Protocol):
    """A record as the server under test holds it."""

    @property
    def sequence_number(self) -> str: ...
    @property
    def data(self) -> bytes: ...


@dataclass
class Consumer:
    """Plans and reads one stream over HTTP."""

    client: HttpKinesisClient
    settings: KinesisSettings
    planner_settings: PlannerSettings
    sleep: Sleep
    plans: list[BatchPlan] = field(default_factory=list)
    batches: list[list[tuple[str, int]]] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart()

    @property
    def cursors(self) -> tuple[Cursor, ...]:
        return self.plans[-1].cursors if self.plans else ()

    @property
    def trim(self) -> Trim | None:
        return self.plans[-1].trim if self.plans else None

    @property
    def ranges(self) -> list[ShardRange]:
        """Of all plans, in order."""
        return [piece for plan in self.plans for piece in plan.ranges]

    def restart(self) -> None:
        """A new planner that remembers nothing."""
        self.planner = Planner(self.client, self.planner_settings, slots=lambda: 2, sleep=self.sleep)

    def plan(self) -> BatchPlan | None:
        plan = self.planner.plan(batch=len(self.plans), epoch=1, cursors=self.cursors, trim=self.trim)
        if plan is not None:
            self.plans.append(plan)
        return plan

    def read(self, piece: ShardRange, *, skip_losses: bool = False) -> list[tuple[int, bytes]]:
        reader = RangeReader(self.client, replace(self.settings, skip_losses=skip_losses), sleep=self.sleep)
        rows: list[tuple[int, bytes]] = []
        for part in reader.read(piece):
            if isinstance(part, Finding):
                self.findings.append(part)
            else:
                rows.extend((int(row["sequence_number"]), row["data"]) for row in part.to_pylist())
        return rows

    def catch_up(self, until: datetime) -> None:
        """Batches until all is read that had arrived by a (Kinesis) time, in that very millisecond too."""
        while self.planner.caught_up_to is None or self.planner.caught_up_to <= until:
            plan = self.plan()
            if plan is not None:
                rows = [(piece.shard_id, *row) for piece in plan.ranges for row in self.read(piece)]
                self.batches.append([(shard_id, sequence) for shard_id, sequence, _ in rows])
                self.data.extend(data for _, _, data in rows)

    def require_exactly(self, records: Iterable[HeldRecord]) -> None:
        """These records were read once each, in order, parents first."""
        held = list(records)
        parents = {shard.shard_id: shard.parents for shard in self.client.list_shards()}
        read = [sequence for batch in self.batches for _, sequence in batch]
        assert tiling_faults(self.plans) == []
        assert delivery_faults([int(r.sequence_number) for r in held], read) == {}
        assert order_faults(self.batches, parents) == []
        assert sorted(self.data) == sorted(r.data for r in held)


Consume = Callable[..., Consumer]
"""Makes a consumer of a stream; keyword arguments are those of PlannerSettings."""
