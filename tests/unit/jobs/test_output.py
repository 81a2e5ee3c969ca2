"""What the engine says of a batch reaches sink and quarantine, in their terms."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from obstore.store import MemoryStore

from lakestream.log import CheckpointLog, Document, ObstoreLogStore, Request, put_request
from lakestream.model import (
    BatchPlan,
    FileEntry,
    Finished,
    Portion,
    Reading,
    ShardRange,
    SinkCommit,
    Span,
    SpanDue,
    SpanProgress,
    Taken,
    after,
    at,
)
from lakestream.output import SparkOutput
from lakestream.sinks.contract import Arrived, BatchRef
from lakestream.sinks.hudi.delete_age import DeleteAge
from lakestream.sinks.owner import Owner
from lakestream.testing.logs import ORDERS, ManualClock

START = datetime(2026, 1, 1, tzinfo=UTC)
RANGE = ShardRange("shard", at(1), after(1), 1, START, START, False, 1, 0)
PLAN = BatchPlan(7, 1, START, START, START, True, (RANGE,), (Reading("shard", after(1), START, None),))
OWNER = Owner(UUID(int=1), "/checkpoints/orders/json", "orders", "json")
REF = BatchRef(7, str(UUID(int=1)), Arrived(START, START))
COMMIT = SinkCommit(3, 10)


@dataclass
class Asked:
    """A sink and a quarantine that keep what they are asked."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def find(self, ref: BatchRef) -> SinkCommit:
        self.calls.append(("find", ref))
        return COMMIT

    def check(self) -> None:
        self.calls.append(("check",))

    def write(self, ref: BatchRef, rows: str, *, replay: bool) -> SinkCommit:
        self.calls.append(("write", ref, rows, replay))
        return COMMIT


def test_how_far_the_stream_is_goes_by_the_shard_that_is_furthest_behind() -> None:
    """Also where the batch has nothing of it, or nothing of the stream at all."""
    late = Reading("late", after(1), START - timedelta(hours=2), None)
    idle = Reading("idle", after(1), START - timedelta(days=2), START)
    sink = Asked()
    output: Any = SparkOutput(sink, Asked(), SimpleNamespace(owner=OWNER))  # type: ignore[arg-type]
    for cursors, oldest in (
        ((Finished("done"), idle, late), late.arrival),
        ((Finished("done"), idle), START),
        ((Finished("done"),), None),
    ):
        output.find(replace(PLAN, base=None, ranges=(), cursors=cursors))
        _, ref = sink.calls[-1]
        assert ref.arrived == (oldest and Arrived(oldest, PLAN.horizon))


OLD = Reading("shard", after(1), START - timedelta(hours=5), None)
LATE = replace(RANGE, first_arrival=START - timedelta(hours=5), end_arrival=START - timedelta(hours=5))


@pytest.mark.parametrize(
    ("parts", "taken", "arrived"),
    [
        pytest.param(((LATE,),), Taken(1, 0, 1, SpanProgress((OLD,))), None, id="of a span"),
        pytest.param(((LATE,),), Taken(1, 1, 1, SpanProgress()), None, id="the last of a span"),
        pytest.param((), Taken(1, 0, 1, SpanProgress((OLD,))), Arrived(None, START), id="of the stream, within a span"),
        pytest.param(((FileEntry("rejected", 1, 1, ""),),), Taken(1, 1, 1), None, id="a replay"),
        pytest.param((), Taken(1, 1, 2), Arrived(None, START), id="of the stream, within a replay or files"),
    ],
)
def test_while_older_records_are_taken_nobody_says_that_none_come(
    parts: Any, taken: Taken, arrived: Arrived | None
) -> None:
    """By that the sink forgets deletes, and what is older than such a one would be a row again."""
    sink = Asked()
    output: Any = SparkOutput(sink, Asked(), SimpleNamespace(owner=OWNER))  # type: ignore[arg-type]
    fields: dict[str, Any] = {"base": None, "ranges": (), "parts": parts} if parts else {}
    output.find(replace(PLAN, taken=taken, **fields))
    output.find(replace(PLAN, taken=Taken(1, 1, 1)))
    assert [ref.arrived for _, ref in sink.calls] == [arrived, REF.arrived]


def test_of_a_span_the_sink_is_told_by_when_all_of_a_batch_had_come() -> None:
    sink = Asked()
    output: Any = SparkOutput(sink, Asked(), SimpleNamespace(owner=OWNER))  # type: ignore[arg-type]
    for parts in (((LATE, RANGE), (LATE,)), ((FileEntry("rejected", 1, 1, ""),),)):
        output.find(replace(PLAN, base=None, ranges=(), parts=parts, taken=Taken(1, 1, 1)))
    output.find(PLAN)
    assert [ref.asked_until for _, ref in sink.calls] == [RANGE.end_arrival, None, None]


class Tip:
    """A driver that reads a stream at its tip into a table that remembers deletes for an hour."""

    def __init__(self, store: ObstoreLogStore, clock: ManualClock) -> None:
        self.log = CheckpointLog.open(store, ORDERS, now=clock, monotonic=clock.monotonic)
        self.clock, self.sink, self.age = clock, Asked(), DeleteAge(3600.0)
        owner: Any = SimpleNamespace(owner=OWNER)
        self.output: Any = SparkOutput(self.sink, Asked(), owner, is_asked=lambda: self.log.is_asked)  # type: ignore[arg-type]

    def batch(self) -> None:
        now = self.clock.time
        self.output.find(
            replace(PLAN, base=None, ranges=(), horizon=now, cursors=(Reading("shard", after(1), now, None),))
        )
        _, ref = self.sink.calls[-1]
        if ref.arrived is not None:
            self.age.tell(ref.arrived, now.timestamp())

    def looks(self, taken: Taken | None = None) -> Portion | SpanDue | None:
        return self.log.requested(taken, "old", 10)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_what_was_deleted_is_remembered_while_a_span_waits_for_its_driver(is_replaced: bool) -> None:
    """Which comes hours later; until then a driver with the document from before the edit runs, or none."""
    store, clock = ObstoreLogStore(MemoryStore()), ManualClock()
    driver, deleted = Tip(store, clock), clock.time
    driver.batch()
    clock.advance(1800)
    span = Span(clock.time - timedelta(hours=1), clock.time)
    assert put_request(store, Request(1, clock.time, Document("new", driver.log.epoch, "old"), (), span))
    if is_replaced:
        clock.advance(7200)
        driver = Tip(store, clock)
        driver.batch()  # of a stream that was silent meanwhile
        assert driver.looks() is None
        driver.batch()
    for _ in range(12):
        clock.advance(600)
        assert driver.looks() is None
        driver.batch()
    assert driver.age.oldest < deleted.timestamp()
    driver.looks(Taken(1, 1, 1))  # it is done
    driver.batch()
    assert driver.age.oldest > deleted.timestamp()


@pytest.mark.parametrize("replay", [True, False])
def test_sink_and_quarantine_are_told_the_batch_and_whether_it_was_tried_before(replay: bool) -> None:
    sink, rejects = Asked(), Asked()
    output: Any = SparkOutput(sink, rejects, SimpleNamespace(owner=OWNER, check=sink.check))  # type: ignore[arg-type]
    output.check()
    output.quarantine(PLAN, "rejected", replay=replay)
    assert output.find(PLAN) == output.write(PLAN, "rows", replay=replay) == COMMIT
    assert output.quarantined(PLAN) == COMMIT
    assert rejects.calls == [("write", REF, "rejected", replay), ("find", REF)]
    assert sink.calls == [("check",), ("find", REF), ("write", REF, "rows", replay)]
