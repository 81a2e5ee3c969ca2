"""The planner's decisions and its thrift, on a stream in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from unittest.mock import call, patch

import pytest

from lakestream.errors import (
    DataLossError,
    ExpiredIteratorError,
    KinesisUnavailableError,
    SettingsError,
    StreamRecreatedError,
)
from lakestream.kinesis import Planner, PlannerSettings
from lakestream.model import (
    BatchCommit,
    BatchPlan,
    Cursor,
    Finished,
    Reading,
    ShardStats,
    Trim,
    Unpinned,
    Waiting,
    after,
    at,
)
from lakestream.testing.fake_kinesis import START, FakeKinesis

SETTLE = PlannerSettings("TRIM_HORIZON").settle
S0, S1, S2 = (f"shardId-{i:012d}" for i in range(3))


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def planner_of(stream: FakeKinesis, **settings: object) -> Planner:
    chosen = PlannerSettings(**{"starting_position": "TRIM_HORIZON", "threads": 2, **settings})  # type: ignore[arg-type]
    return Planner(stream, chosen, slots=lambda: 4, sleep=stream.sleep)


def plan_of(planner: Planner, cursors: Sequence[Cursor] = (), batch: int = 0, trim: Trim | None = None) -> BatchPlan:
    plan = planner.plan(batch=batch, epoch=7, cursors=cursors, trim=trim)
    assert plan is not None
    return plan


def test_a_backlog_is_cut_before_the_first_record_at_the_horizon() -> None:
    stream = FakeKinesis()
    records = []
    for _ in range(10):
        records.append(stream.put(S0, b"x"))
        stream.advance(seconds(1))
    # 3,000 records are 3 s of a shard at its write limit.
    plan = plan_of(planner_of(stream, max_records=3000))
    (piece,) = plan.ranges
    assert (piece.start, piece.first, piece.end) == (
        at(records[0].sequence),
        records[0].sequence,
        at(records[3].sequence),
    )
    assert (plan.base, plan.horizon) == (records[0].arrival, records[0].arrival + seconds(3))
    assert plan.cursors == (Reading(S0, at(records[3].sequence), records[3].arrival, None),)
    assert (plan.batch, plan.epoch, plan.caught_up, plan.planned_at) == (0, 7, False, stream.time)


def test_at_the_tip_the_cut_is_behind_the_last_record() -> None:
    stream = FakeKinesis()
    last = [stream.put(S0, b"x") for _ in range(3)][-1]
    stream.advance(seconds(1))
    planner = planner_of(stream)
    plan = plan_of(planner)
    assert plan.ranges[0].end == after(last.sequence)
    assert plan.cursors == (Reading(S0, after(last.sequence), last.arrival, tip_seen=stream.time),)
    assert plan.caught_up
    assert planner.caught_up_to == plan.horizon == stream.time - SETTLE


def test_records_younger_than_the_settle_time_are_left() -> None:
    stream = FakeKinesis()
    stream.advance(seconds(1))
    young = stream.put(S0, b"x")
    stream.advance(SETTLE)
    planner = planner_of(stream)
    pinned = plan_of(planner)
    assert pinned.is_heartbeat
    assert pinned.cursors == (Reading(S0, at(young.sequence), young.arrival, None),)
    assert planner.plan(batch=1, epoch=7, cursors=pinned.cursors) is None
    stream.advance(seconds(0.001))
    assert plan_of(planner, pinned.cursors, 1).ranges[0].first == young.sequence


def test_nothing_new_is_no_plan_and_costs_one_call() -> None:
    stream = FakeKinesis()
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    planner = planner_of(stream)
    cursors = plan_of(planner).cursors
    for _ in range(5):
        stream.advance(seconds(10))
        stream.calls.clear()
        assert planner.plan(batch=1, epoch=7, cursors=cursors) is None
        assert stream.calls == {"GetRecords": 1}
        assert planner.caught_up_to == stream.time - SETTLE


def test_a_busy_shard_costs_one_iterator_and_one_record() -> None:
    stream = FakeKinesis()
    planner = planner_of(stream)
    cursors: Sequence[Cursor] = ()
    for batch in range(5):
        for _ in range(40):
            stream.put(S0, b"x")
            stream.advance(seconds(0.1))
        stream.calls.clear()
        cursors = plan_of(planner, cursors, batch).cursors
    assert stream.calls == {"GetShardIterator": 1, "GetRecords": 1}


def observed(planner: Planner, plan: BatchPlan) -> BatchPlan:
    """A plan whose batch was read: of each range, as many records as it was put."""
    shards = tuple(ShardStats(r.shard_id, 1, 1, r.first_arrival, r.end_arrival) for r in plan.ranges)
    planner.observe(BatchCommit.of(plan, epoch=7, committed_at=plan.planned_at, shards=shards))
    return plan


def test_a_quiet_shard_costs_one_look() -> None:
    """Which finds what is new up to the tip: a shard answers five calls a second, to all its readers together."""
    stream = FakeKinesis()
    planner = planner_of(stream)
    cursors: Sequence[Cursor] = ()
    for batch in range(3):
        last = stream.put(S0, b"x")
        stream.advance(seconds(10))
        stream.calls.clear()
        plan = observed(planner, plan_of(planner, cursors, batch))
        cursors = plan.cursors
        assert plan.ranges[0].end == after(last.sequence)
    assert stream.calls == {"GetRecords": 1}


def known_as_quiet(planner: Planner, stream: FakeKinesis) -> Sequence[Cursor]:
    """Cursors behind two batches of one record each."""
    cursors: Sequence[Cursor] = ()
    for batch in range(2):
        stream.put(S0, b"x")
        stream.advance(seconds(10))
        cursors = observed(planner, plan_of(planner, cursors, batch)).cursors
    return cursors


def test_a_look_finds_the_cut_at_the_horizon_too() -> None:
    stream = FakeKinesis()
    planner = planner_of(stream)
    cursors = known_as_quiet(planner, stream)
    old = stream.put(S0, b"x")
    stream.advance(seconds(10))
    young = stream.put(S0, b"x")
    stream.calls.clear()
    plan = plan_of(planner, cursors, 2)
    assert (plan.ranges[0].first, plan.ranges[0].end) == (old.sequence, at(young.sequence))
    assert plan.cursors == (Reading(S0, at(young.sequence), young.arrival, None),)
    assert stream.calls == {"GetRecords": 1}


def test_a_shard_that_is_no_longer_quiet_is_read_up_to_its_tip() -> None:
    stream = FakeKinesis()
    planner = planner_of(stream)
    cursors = known_as_quiet(planner, stream)
    first, *_, last = [stream.put(S0, b"x") for _ in range(1_000)]
    stream.advance(seconds(10))
    plan = plan_of(planner, cursors, 2)
    assert (plan.ranges[0].first, plan.ranges[0].end) == (first.sequence, after(last.sequence))
    assert plan.caught_up


def test_a_look_finds_the_end_of_a_closed_shard() -> None:
    stream = FakeKinesis()
    planner = planner_of(stream)
    cursors = known_as_quiet(planner, stream)
    stream.put(S0, b"x")
    children = stream.split(S0)
    stream.advance(seconds(10))
    plan = plan_of(planner, cursors, 2)
    assert plan.ranges[0].closes_shard
    assert plan.cursors[0] == Finished(S0)
    assert [cursor.shard_id for cursor in plan.cursors[1:]] == list(children)


def test_an_expired_iterator_of_an_idle_shard_is_replaced() -> None:
    stream = FakeKinesis()
    planner = planner_of(stream)
    plan = plan_of(planner)
    stream.failures.append(ExpiredIteratorError("old"))
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    assert plan_of(planner, plan.cursors, 1).ranges


def test_idling_is_written_down_so_that_it_is_not_taken_for_loss() -> None:
    stream = FakeKinesis()
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    planner = planner_of(stream)
    cursors, beats = plan_of(planner).cursors, 0
    for _ in range(26 * 6):
        stream.advance(timedelta(minutes=10, seconds=1))
        plan = planner.plan(batch=1, epoch=7, cursors=cursors)
        if plan is not None:
            assert plan.is_heartbeat
            cursors, beats = plan.cursors, beats + 1
    assert beats >= 26 * 6 - 1
    assert planner_of(stream).plan(batch=2, epoch=8, cursors=cursors) is None


def test_latest_is_fixed_at_the_first_plan() -> None:
    stream = FakeKinesis(shards=2)
    stream.put(S0, b"before")
    stream.advance(seconds(5))
    first = plan_of(planner_of(stream, starting_position="LATEST"))
    assert first.cursors == tuple(Unpinned(s, START + seconds(5), START + seconds(5)) for s in (S0, S1))
    stream.advance(seconds(5))
    record = stream.put(S1, b"after")
    stream.advance(seconds(5))
    second = plan_of(planner_of(stream, starting_position="LATEST"), first.cursors, 1)
    assert [(r.shard_id, r.first) for r in second.ranges] == [(S1, record.sequence)]


def test_a_timestamp_in_the_future_is_refused() -> None:
    stream = FakeKinesis()
    with pytest.raises(SettingsError, match=r"timestamp 2026-01-31T12:00:01\+00:00 is in the future"):
        planner_of(stream, starting_position=START + seconds(1)).plan(batch=0, epoch=7, cursors=())


def test_a_timestamp_older_than_the_retention_is_loss() -> None:
    stream = FakeKinesis()
    stream.advance(timedelta(days=3))
    with pytest.raises(DataLossError, match=S0):
        planner_of(stream, starting_position=START + seconds(1)).plan(batch=0, epoch=7, cursors=())


def test_a_timestamp_older_than_the_retention_is_named_with_the_first_that_will_do() -> None:
    """To skip losses is no answer: that would hold for ever, for a mistake of once."""
    stream = FakeKinesis()
    stream.advance(timedelta(days=3, seconds=10))
    with pytest.raises(
        DataLossError, match=r"kinesis\.timestamp is .*before 2026-02-02T12:00:11\+00:00 .* 24 h"
    ) as told:
        planner_of(stream, starting_position=START + seconds(1)).plan(batch=0, epoch=7, cursors=())
    assert "onDataLoss" not in str(told.value)
    assert "set it to 2026-02-02T12:16Z or later" in str(told.value)
    plan_of(planner_of(stream, starting_position=datetime(2026, 2, 2, 12, 16, tzinfo=UTC)))


def test_a_timestamp_older_than_the_stream_is_its_beginning() -> None:
    stream = FakeKinesis()
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    assert plan_of(planner_of(stream, starting_position=START - timedelta(days=9))).ranges


def test_trim_horizon_keeps_clear_of_what_is_being_trimmed() -> None:
    stream = FakeKinesis()
    for _ in range(26 * 60):
        stream.put(S0, b"x")
        stream.advance(timedelta(minutes=1))
    plan = plan_of(planner_of(stream, max_records=1))
    assert plan.ranges[0].first_arrival == stream.time - timedelta(hours=24) + timedelta(minutes=15)


def test_children_wait_for_all_parents() -> None:
    stream = FakeKinesis(shards=2)
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    planner = planner_of(stream)
    cursors = plan_of(planner).cursors
    stream.put(S1, b"y")
    stream.merge(S0, S1)
    stream.put(S2, b"z")
    stream.advance(seconds(1))
    closing = plan_of(planner, cursors, 1)
    assert [(r.shard_id, r.closes_shard) for r in closing.ranges] == [(S1, True)]
    assert closing.ranges[0].end == after(stream.shards[S1].ending_sequence or 0)
    assert closing.cursors[:2] == (Finished(S0), Finished(S1))
    assert isinstance(closing.cursors[2], Waiting)
    assert not closing.caught_up
    child = plan_of(planner, closing.cursors, 2)
    assert [r.shard_id for r in child.ranges] == [S2]
    assert child.cursors[:2] == (Finished(S0), Finished(S1))


def test_an_unread_parent_holds_its_child_back() -> None:
    stream = FakeKinesis()
    for _ in range(5):
        stream.put(S0, b"x")
        stream.advance(seconds(1))
    stream.split(S0)
    # Older than what is unread in its parent, by the approximate arrival times alone.
    stream.put(S1, b"y", late=seconds(9))
    stream.advance(seconds(1))
    assert shards_read(stream, batches=6) == [S0] * 5 + [S1]


def test_a_parent_that_is_finished_does_not_let_the_child_overtake_the_other() -> None:
    stream = FakeKinesis(shards=2)
    for _ in range(5):
        stream.put(S1, b"x")
        stream.advance(seconds(1))
    stream.merge(S0, S1)
    stream.put(S2, b"y", late=seconds(9))
    stream.advance(seconds(1))
    assert shards_read(stream, batches=6) == [S1] * 5 + [S2]


def shards_read(stream: FakeKinesis, batches: int) -> list[str]:
    """By so many small batches, one after the other."""
    planner = planner_of(stream, max_records=1000)
    cursors: Sequence[Cursor] = ()
    read: list[str] = []
    for batch in range(batches):
        plan = plan_of(planner, cursors, batch)
        cursors = plan.cursors
        read += [r.shard_id for r in plan.ranges]
    return read


def test_a_closed_shard_is_not_finished_before_its_children_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = FakeKinesis()
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    planner = planner_of(stream)
    cursors = plan_of(planner).cursors
    stream.split(S0)
    stream.put(S1, b"y")
    stream.advance(seconds(1))
    full = FakeKinesis.list_shards
    monkeypatch.setattr(FakeKinesis, "list_shards", lambda self: full(self)[:1])
    assert planner.plan(batch=1, epoch=7, cursors=cursors) is None
    assert planner.caught_up_to is None, "a child is missing, so nothing can be said of the tip"
    monkeypatch.undo()
    assert isinstance(plan_of(planner, cursors, 1).cursors[0], Finished)


def test_finished_shards_are_kept_while_listed() -> None:
    stream = FakeKinesis()
    stream.split(S0)
    stream.advance(seconds(1))
    planner = planner_of(stream)
    cursors = plan_of(planner).cursors
    assert isinstance(cursors[0], Finished)
    stream.shards[S0].is_listed = False
    stream.advance(seconds(61))
    assert [c.shard_id for c in plan_of(planner, cursors, 1).cursors] == [S1, S2]


@pytest.mark.parametrize("skip", [False, True])
def test_a_listing_that_lacks_a_shard_which_is_there_is_no_loss(skip: bool) -> None:
    """ListShards may be behind what it said before: then one that is asked later tells more."""
    stream = FakeKinesis()
    stream.put(S0, b"x")
    before = stream.listed()
    low, _ = stream.split(S0)
    stream.put(low, b"y")
    stream.advance(seconds(1))
    planner = planner_of(stream, skip_losses=skip)
    first = plan_of(planner)
    stream.advance(seconds(61))
    stream.stale_listings.append(before)
    with pytest.raises(KinesisUnavailableError, match=f"{low}"):
        plan_of(planner, first.cursors, batch=1, trim=first.trim)
    second = plan_of(planner_of(stream), first.cursors, batch=1, trim=first.trim)
    assert second.losses == ()
    assert [piece.shard_id for piece in second.ranges] == [low]


@pytest.mark.parametrize("is_old", [False, True])
def test_a_shard_that_was_read_to_its_end_is_not_read_again_when_it_is_listed_again(is_old: bool) -> None:
    """Gone and there again, as a closed shard may be for a moment when it expires."""
    stream = FakeKinesis()
    stream.put(S0, b"x")
    low, _ = stream.split(S0)
    planner = planner_of(stream)
    stream.advance(seconds(1))
    plan = plan_of(planner)
    for _ in range(25 if is_old else 1):
        stream.stale_listings.append(stream.listed(but=S0))
        stream.advance(timedelta(hours=1))
        stream.put(low, b"y")
        plan = plan_of(planner, plan.cursors, batch=1, trim=plan.trim)
    assert S0 not in {cursor.shard_id for cursor in plan.cursors}
    stream.shards[S0].is_listed, stream.shards[S0].closed_at = True, stream.time
    stream.advance(seconds(61))
    again = plan_of(planner, plan.cursors, batch=2, trim=plan.trim)
    assert ({piece.shard_id for piece in again.ranges}, again.losses) == ({low}, ())


def test_a_child_is_not_begun_while_the_listing_lacks_its_unread_parent() -> None:
    stream = FakeKinesis()
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    planner = planner_of(stream)
    first = plan_of(planner)
    low, _ = stream.split(S0)
    stream.put(low, b"y")
    child, _ = stream.split(low)
    stream.put(child, b"z")
    stream.advance(seconds(61))
    stream.stale_listings.append(stream.listed(but=low))
    with pytest.raises(KinesisUnavailableError, match=f"{low}"):
        plan_of(planner, first.cursors, batch=1, trim=first.trim)
    second = plan_of(planner_of(stream), first.cursors, batch=1, trim=first.trim)
    assert [piece.shard_id for piece in second.ranges] == [low]
    assert {cursor.shard_id for cursor in second.cursors} == stream.shards.keys()


def test_children_of_what_has_nothing_left_wait_for_no_batch() -> None:
    """Or what they hold would be unknown until then, and so how far behind the writer is."""
    stream = FakeKinesis()
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    first = plan_of(planner_of(stream))
    low, high = stream.split(S0)
    lower, _ = stream.split(low)
    stream.put(lower, b"y")
    stream.put(high, b"z")
    stream.advance(timedelta(hours=5))
    second = plan_of(planner_of(stream), first.cursors, batch=1, trim=first.trim)
    assert [piece.shard_id for piece in second.ranges] == sorted([lower, high])
    assert [c.shard_id for c in second.cursors if isinstance(c, Finished)] == [S0, low]


def test_latest_of_a_listing_that_is_behind_a_split_begins_no_child_before_it() -> None:
    stream = FakeKinesis()
    stream.advance(timedelta(minutes=3))
    before = stream.listed()
    low, _ = stream.split(S0)
    stream.put(low, b"before the start")
    stream.advance(seconds(8))
    stream.stale_listings.append(before)
    planner = planner_of(stream, starting_position="LATEST")
    first = plan_of(planner)
    inside = stream.put(low, b"behind it")
    stream.advance(seconds(3))
    plan = plan_of(planner, first.cursors, 1, first.trim)
    assert [piece.first for piece in plan.ranges] == [inside.sequence]


def test_losses_of_children_of_a_shard_that_vanished_begin_where_it_was_read_to() -> None:
    stream = FakeKinesis()
    stream.advance(timedelta(days=30))
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    first = plan_of(planner_of(stream))
    read_to = stream.time
    stream.advance(timedelta(minutes=5))
    stream.put(stream.split(S0)[0], b"lost")
    stream.advance(timedelta(hours=25))
    plan = plan_of(planner_of(stream, skip_losses=True), first.cursors, 1, first.trim)
    assert [loss.since for loss in plan.losses] == 3 * [read_to]


@pytest.mark.parametrize("has_record", [True, False])
def test_a_long_silence_that_was_seen_is_not_looked_through_again(has_record: bool) -> None:
    stream = FakeKinesis(retention=timedelta(days=30))
    if has_record:
        stream.put(S0, b"x")
    stream.advance(seconds(1))
    planner = planner_of(stream)
    cursors = plan_of(planner).cursors
    stream.advance(timedelta(days=7))
    quiet = plan_of(planner, cursors, 1)
    late = stream.put(S0, b"y")
    stream.advance(seconds(1))
    with patch.object(stream, "get_shard_iterator", wraps=stream.get_shard_iterator) as asked:
        plan = plan_of(planner_of(stream), quiet.cursors, 2, quiet.trim)
    assert asked.call_args_list[0] == call(S0, quiet.planned_at - timedelta(minutes=15))
    assert [piece.first for piece in plan.ranges] == [late.sequence]


def test_a_parent_that_was_gone_before_the_first_start_counts_as_finished() -> None:
    stream = FakeKinesis()
    stream.split(S0)
    stream.shards[S0].is_listed = False
    stream.put(S1, b"x")
    stream.advance(seconds(1))
    assert [r.shard_id for r in plan_of(planner_of(stream)).ranges] == [S1]


def test_the_shard_list_is_asked_for_once_a_minute() -> None:
    stream = FakeKinesis()
    planner = planner_of(stream)
    cursors = plan_of(planner).cursors
    for _ in range(12):
        stream.advance(seconds(10))
        planner.plan(batch=1, epoch=7, cursors=cursors)
    assert stream.calls["ListShards"] == 3


def test_a_stream_created_again_is_refused() -> None:
    stream = FakeKinesis()
    planner = planner_of(stream)
    cursors = plan_of(planner).cursors
    stream.created_at += seconds(30)
    stream.advance(seconds(61))
    with pytest.raises(StreamRecreatedError, match="the present one at 2026-01-31T12:00:30"):
        planner.plan(batch=1, epoch=7, cursors=cursors)


def losing(stream: FakeKinesis) -> tuple[tuple[Cursor, ...], int, datetime]:
    """Two records; the first is read, the second is trimmed before it is."""
    first = stream.put(S0, b"read")
    stream.advance(seconds(10))
    lost = stream.put(S0, b"lost")
    stream.advance(seconds(10))
    cursors = plan_of(planner_of(stream, max_records=1000)).cursors
    assert cursors == (Reading(S0, at(lost.sequence), lost.arrival, None),)
    stream.advance(timedelta(hours=25))
    return cursors, first.sequence, lost.arrival


def test_an_unread_record_that_was_trimmed_is_loss() -> None:
    stream = FakeKinesis()
    cursors, _, since = losing(stream)
    stream.put(S0, b"new")
    stream.advance(seconds(1))
    with pytest.raises(
        DataLossError, match=f"{S0}: .*arrived {since.isoformat()} to .*onDataLoss: skip".replace("+", r"\+")
    ):
        planner_of(stream).plan(batch=1, epoch=7, cursors=cursors)


def test_a_retention_that_was_raised_meanwhile_hides_no_loss() -> None:
    stream = FakeKinesis()
    stream.put(S0, b"read")
    stream.advance(seconds(1))
    before = plan_of(planner_of(stream))
    stream.put(S0, b"lost")
    stream.advance(timedelta(hours=40))
    stream.retention = timedelta(hours=168)
    stream.put(S0, b"left")
    stream.advance(seconds(1))
    with pytest.raises(DataLossError, match=S0):
        planner_of(stream).plan(batch=1, epoch=7, cursors=before.cursors, trim=before.trim)
    plan = plan_of(planner_of(stream, skip_losses=True), before.cursors, 1, before.trim)
    assert len(plan.losses) == 1
    # Of what is read from now on the longer retention counts.
    stream.put(S0, b"new")
    stream.advance(timedelta(hours=100))
    assert plan_of(planner_of(stream), plan.cursors, 2, plan.trim).losses == ()


def test_a_retention_that_was_lowered_a_moment_ago_hides_no_loss() -> None:
    """What is older is gone at once, and the shards need not be listed anew for that."""
    for skip in (False, True):
        stream = FakeKinesis(retention=timedelta(days=7))
        stream.put(S0, b"read")
        stream.advance(seconds(5))
        children = stream.split(S0)
        lost = [stream.put(child, b"lost") for child in children]
        stream.advance(timedelta(days=3))
        for child in children:
            stream.put(child, b"left")
        stream.advance(seconds(1))
        planner = planner_of(stream, skip_losses=skip)
        before = plan_of(planner)
        assert [piece.closes_shard for piece in before.ranges] == [True]
        stream.retention = timedelta(days=1)
        stream.advance(seconds(2))
        if not skip:
            with pytest.raises(DataLossError, match="shardId-"):
                planner.plan(batch=1, epoch=7, cursors=before.cursors, trim=before.trim)
            continue
        told = plan_of(planner, before.cursors, 1, before.trim).losses
        assert {loss.shard_id for loss in told} == set(children)
        assert all(loss.since <= record.arrival < loss.until for loss, record in zip(told, lost, strict=True))


def test_losses_can_be_skipped_and_are_written_down() -> None:
    stream = FakeKinesis()
    cursors, _, since = losing(stream)
    new = stream.put(S0, b"new")
    stream.advance(seconds(1))
    plan = plan_of(planner_of(stream, skip_losses=True), cursors, 1)
    (loss,) = plan.losses
    assert (loss.shard_id, loss.end, loss.since) == (S0, at(new.sequence), since)
    assert plan.ranges[0].first == new.sequence
    assert isinstance(cursors[0], Reading)
    assert plan.ranges[0].start == cursors[0].position, "the ranges no longer tile"


def test_a_loss_is_told_once_also_where_the_shard_gives_nothing_to_the_batch() -> None:
    """As the oldest record that is left of it comes behind the backlog of another shard."""
    stream = FakeKinesis(2)
    for shard in (S0, S1):
        stream.put(shard, b"lost")
        stream.advance(seconds(10))
    cursors = plan_of(planner_of(stream, max_records=1000)).cursors
    stream.advance(timedelta(hours=25))
    for _ in range(5):
        stream.put(S1, b"backlog")
        stream.advance(timedelta(minutes=10))
    left = stream.put(S0, b"left")
    stream.advance(seconds(1))
    planner = planner_of(stream, skip_losses=True, max_records=1000)
    first = plan_of(planner, cursors, 1)
    assert {loss.shard_id for loss in first.losses} == {S0, S1}
    assert [piece.shard_id for piece in first.ranges] == [S1]
    assert first.cursors[0] == Reading(S0, at(left.sequence), left.arrival, None)
    assert plan_of(planner, first.cursors, 2, first.trim).losses == ()


def test_a_record_at_the_edge_of_the_retention_is_no_loss_while_it_is_there() -> None:
    stream = FakeKinesis()
    stream.put(S0, b"read")
    stream.advance(seconds(10))
    unread = stream.put(S0, b"unread")
    stream.advance(seconds(10))
    cursors = plan_of(planner_of(stream, max_records=1000)).cursors
    stream.advance(timedelta(hours=24) - seconds(10))
    assert stream.shards[S0].trimmed == 1
    assert plan_of(planner_of(stream), cursors, 1).ranges[0].first == unread.sequence


def test_what_is_trimmed_while_a_cut_is_looked_for_is_loss() -> None:
    stream = FakeKinesis()
    first = stream.put(S0, b"0")
    stream.advance(seconds(10))
    stream.put(S0, b"1")
    stream.advance(stream.retention - seconds(40))
    stream.latency = seconds(60)
    plan = plan_of(planner_of(stream), (Reading(S0, at(first.sequence), first.arrival, None),))
    # That nothing is behind the first record says nothing, once that one is gone as well.
    assert [piece.end for piece in plan.ranges] == [after(first.sequence)]
    stream.latency = seconds(0)
    with pytest.raises(DataLossError, match=f"from {after(first.sequence)}"):
        plan_of(planner_of(stream), plan.cursors, 1, plan.trim)


def test_a_child_that_waited_until_it_was_trimmed_is_loss() -> None:
    stream = FakeKinesis()
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    planner = planner_of(stream)
    cursors = plan_of(planner).cursors
    stream.put(S0, b"read")
    stream.split(S0)
    stream.put(S1, b"never read")
    stream.advance(seconds(1))
    cursors = plan_of(planner, cursors, 1).cursors
    assert isinstance(cursors[1], Waiting)
    stream.advance(timedelta(hours=25))
    with pytest.raises(DataLossError, match=f"{S1}: .*from its beginning"):
        planner_of(stream).plan(batch=2, epoch=8, cursors=cursors)


def test_a_shard_that_vanished_unread_is_loss() -> None:
    stream = FakeKinesis()
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    cursors = plan_of(planner_of(stream)).cursors
    stream.split(S0)
    stream.advance(timedelta(hours=25))
    with pytest.raises(DataLossError, match=f"{S0}: .*to its end"):
        planner_of(stream).plan(batch=1, epoch=7, cursors=cursors)
    plan = plan_of(planner_of(stream, skip_losses=True), cursors, 1)
    assert S0 in {loss.shard_id for loss in plan.losses}
    assert S0 not in {c.shard_id for c in plan.cursors}


def lowered_and_raised(stream: FakeKinesis) -> None:
    """While nobody looked, for longer than a day."""
    stream.retention = timedelta(hours=24)
    stream.advance(timedelta(hours=25))
    stream.retention = timedelta(days=7)
    stream.advance(seconds(1))


@pytest.mark.parametrize("left", [False, True])
def test_a_retention_that_was_lowered_and_raised_again_hides_no_loss(left: bool) -> None:
    """By the one that is known, the last record that was read has to be there: it is not."""
    stream = FakeKinesis(retention=timedelta(days=7))
    stream.put(S0, b"read")
    stream.advance(seconds(1))
    before = plan_of(planner_of(stream))
    lost = stream.put(S0, b"lost")
    lowered_and_raised(stream)
    if left:
        stream.put(S0, b"left")
        stream.advance(seconds(1))
    with pytest.raises(DataLossError, match=S0):
        planner_of(stream).plan(batch=1, epoch=7, cursors=before.cursors, trim=before.trim)
    planner = planner_of(stream, skip_losses=True)
    for _ in range(2):  # a plan that came to nothing hides it neither
        plan = plan_of(planner, before.cursors, 1, before.trim)
        (told,) = plan.losses
        assert told.since <= lost.arrival < told.until
        assert len(plan.ranges) == left


def test_what_should_be_there_and_is_shows_that_nothing_is_lost() -> None:
    stream = FakeKinesis(retention=timedelta(days=7))
    stream.put(S0, b"read")
    stream.advance(seconds(1))
    before = plan_of(planner_of(stream))
    kept = stream.put(S0, b"kept")
    stream.advance(timedelta(hours=50))
    planner = planner_of(stream)
    asked = stream.calls["GetRecords"]
    assert [piece.first for piece in plan_of(planner, before.cursors, 1, before.trim).ranges] == [kept.sequence]
    once = stream.calls["GetRecords"] - asked
    plan_of(planner, before.cursors, 1, before.trim)
    assert stream.calls["GetRecords"] - asked < 2 * once, "it is asked for at each plan"


def test_a_shard_that_vanished_by_a_shorter_retention_than_is_known_is_told_of_by_time_too() -> None:
    stream = FakeKinesis(retention=timedelta(days=7))
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    before = plan_of(planner_of(stream))
    lost = [stream.put(S0, b"y"), stream.put(S0, b"z")]
    stream.split(S0)
    lowered_and_raised(stream)
    plan = plan_of(planner_of(stream, skip_losses=True), before.cursors, 1, before.trim)
    (told,) = (loss for loss in plan.losses if loss.shard_id == S0)
    assert all(told.since <= record.arrival < told.until for record in lost)


def test_a_long_tail_is_halved_by_time_not_read() -> None:
    """A producer stopped ten minutes before the horizon, half an hour into its backlog."""
    stream = FakeKinesis()
    stream.page_size = 10
    for _ in range(1800):
        stream.put(S0, b"x")
        stream.advance(seconds(1))
    last = stream.put(S0, b"x")
    stream.advance(timedelta(minutes=10))
    plan = plan_of(planner_of(stream, max_records=50_000_000, max_bytes=10**12))
    assert plan.ranges[0].end == after(last.sequence)
    assert stream.calls["GetRecords"] < 25, "the tail was read page by page (180 pages)"


def test_a_late_record_behind_younger_ones_does_not_hold_the_planner_up() -> None:
    """Arrival times are approximate: here AT_TIMESTAMP leads back to a record that was read long ago."""
    stream = FakeKinesis()
    stream.put(S0, b"x")
    stream.advance(seconds(10))
    planner = planner_of(stream, max_records=1000)
    cursors = plan_of(planner).cursors
    late = stream.put(S0, b"late", late=seconds(20))
    young = stream.put(S0, b"young", late=seconds(18.5))
    stream.advance(seconds(10))
    plan = plan_of(planner, cursors, 1)
    assert plan.horizon == late.arrival + seconds(1)
    assert (plan.ranges[0].first, plan.ranges[0].end) == (late.sequence, at(young.sequence))


def test_empty_pages_are_followed() -> None:
    stream = FakeKinesis()
    stream.empty_pages = 3
    stream.put(S0, b"x")
    stream.advance(seconds(1))
    assert plan_of(planner_of(stream)).ranges


def test_a_plan_that_was_lost_changes_nothing() -> None:
    stream = FakeKinesis(shards=2)
    for _ in range(20):
        stream.put(S0, b"x")
        stream.put(S1, b"x")
        stream.advance(seconds(0.5))
    planner = planner_of(stream, max_records=4000)
    lost = plan_of(planner)
    again = plan_of(planner)
    assert lost == again
    assert plan_of(planner_of(stream, max_records=4000)) == again
