"""What the engine asks of its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

from lakestream.model import (
    BatchCommit,
    BatchPlan,
    Cursor,
    FileEntry,
    Finding,
    Portion,
    ShardStats,
    SinkCommit,
    SpanDue,
    Taken,
    Trim,
)

Rows = TypeVar("Rows")
RowsIn_contra = TypeVar("RowsIn_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Fetched(Generic[Rows]):
    """The records of a batch, held by the executors until `release`."""

    rows: Rows
    """What goes to the sink."""
    rejected: Rows
    """What goes to quarantine: raw bytes and the reason."""
    rejected_count: int
    """How many records `rejected` has, of those that `shards` count."""
    shards: tuple[ShardStats, ...]
    """What each shard gave, sorted; user records, before any transform."""
    arrivals: tuple[datetime, ...]
    """Arrival times at evenly spaced quantiles of the batch, from the first to the last record."""
    findings: Callable[[], tuple[Finding, ...]]
    """What reading found beside the records, sorted by shard; to be asked once the rows are written, since an executor
    that is lost has its ranges read again."""
    release: Callable[[], object]
    """Frees the executors' memory."""

    @property
    def taken(self) -> int:
        """Records that no filter left out: each is in one of the two."""
        return sum(shard.taken for shard in self.shards)


class Planner(Protocol):
    """Fixes the next batch; `observe` is called from another thread than the others."""

    @property
    def caught_up_to(self) -> datetime | None:
        """If the last plan left nothing unread that had arrived before this (Kinesis) time; else None."""
        ...

    @property
    def missing(self) -> timedelta | None:
        """What `caught_up_to` lacks to be behind all that had arrived when the first plan was made; None as that is."""
        ...

    def plan(self, *, batch: int, epoch: int, cursors: tuple[Cursor, ...], trim: Trim | None) -> BatchPlan | None:
        """The batch behind one with these cursors and this trim, or None while there is nothing to do."""
        ...

    def portion(self, due: SpanDue, trim: Trim | None, records: int) -> Portion | None:
        """What the next batch takes of a span that is asked for, behind one with this trim: about so many records;
        None: nothing for now."""
        ...

    def observe(self, commit: BatchCommit) -> None:
        """Learn from a finished batch, of any kind, how large the next ones should be."""
        ...


class Log(Protocol):
    """What the engine needs of the checkpoint log."""

    @property
    def epoch(self) -> int: ...
    def last_commit(self) -> BatchCommit | None: ...
    def pending_plans(self) -> tuple[BatchPlan, ...]: ...
    def put_plan(self, plan: BatchPlan) -> None: ...
    def put_commit(self, commit: BatchCommit) -> None: ...
    def check_fence(self) -> None: ...
    def expire(self) -> None: ...
    def requested(self, behind: Taken | None, definition: str, records: int) -> Portion | SpanDue | None:
        """What somebody has asked for, and the batch takes behind one that is as far as this, or the span that it takes
        something of; None: nothing for now."""
        ...


class Fetcher(Protocol[Rows]):
    """Reads what a plan names: the same records however often it is asked."""

    def fetch(self, plan: BatchPlan, *, replay: bool) -> Fetched[Rows]:
        """`replay`: the plan was begun by an earlier run, which may have failed at its records."""
        ...


class Output(Protocol[RowsIn_contra]):
    """Where a batch goes: the sink and the quarantine, exactly once both."""

    def check(self) -> None:
        """Raise if the table is gone, or somebody else's."""
        ...

    def quarantine(self, plan: BatchPlan, rejected: RowsIn_contra, *, replay: bool) -> tuple[FileEntry, ...]: ...
    def quarantined(self, plan: BatchPlan) -> tuple[FileEntry, ...]:
        """What `quarantine` has written for a batch."""
        ...

    def find(self, plan: BatchPlan) -> SinkCommit | None: ...
    def write(self, plan: BatchPlan, rows: RowsIn_contra, *, replay: bool) -> SinkCommit: ...


class Observer(Protocol):
    """Is told how far the run is. Its errors are the run's."""

    def committed(self, commit: BatchCommit, arrivals: tuple[datetime, ...]) -> None:
        """A batch was committed."""
        ...

    def fetching(self, batch: int) -> None:
        """That batch is fetched next, by the thread that calls this, which prepares them."""
        ...

    def fetched(self, plan: BatchPlan, shards: Sequence[ShardStats]) -> None:
        """A batch is fetched, and waits to be written; by the same thread."""
        ...

    def between_batches(self) -> None:
        """No batch is being written, though the next one may be being fetched: after each batch, and about every
        second while there is none to write; by the thread that writes."""
        ...

    def idle(self, looked_at: datetime, caught_up_to: datetime) -> None:
        """At that time there was nothing to read: all that arrived before the other (Kinesis) time is in the batches so
        far. By either thread; where a batch was being written then, once that is committed."""
        ...
