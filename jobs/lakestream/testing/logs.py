"""For tests of the log: a store whose faults are arranged, and plans and commits without a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path

from lakestream.log import CheckpointLog, Identity, LogStore, ObstoreLogStore
from lakestream.log.manifest import BATCHES_PER_MANIFEST
from lakestream.model import BatchCommit, BatchPlan, FileEntry, Reading, SinkCommit, after
from lakestream.storage import LakePath, ObjectExistsError, S3Settings, StorageUnavailableError, StoreSettings

EPOCH_TIME = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
"""Time 0 of the tests' clocks."""

ORDERS = Identity(
    stream_arn="arn:aws:kinesis:eu-west-1:123456789012:stream/orders",
    stream_created_at=EPOCH_TIME - timedelta(days=30),
    settings={"hudi.recordKey": ("order_id",), "hudi.tableType": "MERGE_ON_READ"},
)


DOCUMENT = """
apiVersion: lakestream.dev/v1alpha1
kind: LakeStream
metadata: {{name: orders}}
spec:
  source: {{kinesis: {{stream: orders, region: eu-west-1}}}}
  schema: order_id string, version long
  writers:
    - name: json
      json: {{path: {lake}/json}}
    - name: hudi
      hudi: {{path: {lake}/hudi, recordKey: [order_id], orderingField: version}}
  checkpoint: {lake}/checkpoint
"""
"""Of a LakeStream whose `lake` is a folder."""


def log_at(folder: Path, *, keep: int = BATCHES_PER_MANIFEST) -> CheckpointLog:
    """The log of `ORDERS` in a folder; so many batches are kept, and put into a manifest."""
    place = StoreSettings(LakePath.parse(str(folder)), S3Settings("eu-west-1"))
    return CheckpointLog.open(ObstoreLogStore.at(place), ORDERS, keep=keep)


def plan_of(batch: int, epoch: int, *, position: int | None = None) -> BatchPlan:
    """A plan of one shard that moves its cursor to `position` (default: the batch's number)."""
    time = EPOCH_TIME + timedelta(seconds=batch)
    cursor = Reading("shardId-000000000000", after(batch if position is None else position), time, None)
    return BatchPlan(
        batch=batch,
        epoch=epoch,
        planned_at=time,
        base=None,
        horizon=time,
        caught_up=True,
        ranges=(),
        cursors=(cursor,),
    )


def commit_of(plan: BatchPlan, epoch: int, *, files: int = 0) -> BatchCommit:
    """The commit of a plan, by the driver of that epoch, with so many files in the table, and one in quarantine."""
    wrote = tuple(FileEntry(f"b{plan.batch}-{task}.json", 1, 10, "") for task in range(files))
    return BatchCommit.of(
        plan,
        epoch=epoch,
        committed_at=plan.planned_at,
        sink=SinkCommit(files, 10 * files, wrote) if files else None,
        rejects=(FileEntry(f"b{plan.batch}.parquet", 1, 10, ""),) if files else (),
    )


class Fault(Enum):
    """What happens to the next request that creates an object."""

    LOST_REQUEST = "it fails before it takes effect"
    LOST_ANSWER = "it takes effect, and fails"
    CONFLICT = "it is refused for another one's sake that comes to nothing (S3: 409)"


@dataclass
class FaultyLogStore:
    """A driver's way to a shared store: faults, and what others do in the middle of its requests."""

    store: LogStore
    faults: list[Fault] = field(default_factory=list)
    """Used up from the front, one for each `create`."""
    before_create: Callable[[str], None] = lambda key: None
    """Called with the key just before an object is created: another driver's chance to be first."""

    def create(self, key: str, body: bytes) -> None:
        self.before_create(key)
        fault = self.faults.pop(0) if self.faults else None
        if fault is Fault.LOST_REQUEST:
            raise StorageUnavailableError(f"create {key}: connection reset")
        if fault is Fault.CONFLICT:
            raise ObjectExistsError(f"create {key}: conflict")
        self.store.create(key, body)
        if fault is Fault.LOST_ANSWER:
            raise StorageUnavailableError(f"create {key}: no answer")

    def get(self, key: str) -> bytes:
        return self.store.get(key)

    def list(self, folder: str, after: str | None = None) -> list[str]:
        return self.store.list(folder, after)

    def delete(self, keys: Sequence[str]) -> None:
        self.store.delete(keys)


@dataclass
class ManualClock:
    """A time that moves only when it is told to."""

    time: datetime = EPOCH_TIME

    def __call__(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return (self.time - EPOCH_TIME).total_seconds()

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)
