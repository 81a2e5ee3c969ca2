"""What a commit becomes as progress: lag, freshness, stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from lakestream.control import Job, progress_of
from lakestream.control.report import service_of
from lakestream.model import (
    BatchCommit,
    Cursor,
    Finished,
    Loss,
    Reading,
    ServiceStatus,
    ShardStats,
    SinkCommit,
    Unpinned,
    Waiting,
    after,
    at,
)
from lakestream.testing.logs import EPOCH_TIME
from lakestream_api import BatchSummary, Progress

JOB = Job("orders", "hudi", timedelta(seconds=10), cores=2)


def second(seconds: float) -> datetime:
    """Arrival times are negative, the commit is at 0."""
    return EPOCH_TIME + timedelta(seconds=seconds)


def commit(
    *cursors: Cursor,
    caught_up: bool = False,
    shards: tuple[ShardStats, ...] = (),
    seconds: Mapping[str, float] | None = None,
    sink: SinkCommit | None = None,
) -> BatchCommit:
    return BatchCommit(
        batch=7,
        epoch=3,
        planned_at=second(-2),
        committed_at=second(0),
        base=None,
        horizon=second(-3),
        caught_up=caught_up,
        records=sum(shard.records for shard in shards),
        bytes=sum(shard.bytes for shard in shards),
        quarantined=0,
        sink=sink,
        cursors=cursors,
        shards=shards,
        seconds=seconds or {},
    )


def progress(commit: BatchCommit, previous: Progress | None = None) -> Progress:
    return progress_of(commit, JOB, executors=3, previous=previous)


BEHIND = Reading("shard-0", at(50), arrival=second(-40), tip_seen=None)
FURTHER_BEHIND = Reading("shard-1", at(90), arrival=second(-95), tip_seen=None)
AT_TIP = Reading("shard-2", after(70), arrival=second(-500), tip_seen=second(-2))


@pytest.mark.parametrize("ahead", [-180, 0, 180])
def test_how_old_the_horizon_is_goes_by_kinesis_clock(ahead: int) -> None:
    late = replace(commit(AT_TIP, caught_up=True), committed_at=second(ahead))
    found = progress_of(late, JOB, executors=3, ahead=timedelta(seconds=-ahead))
    assert (found.horizon, found.horizon_age_seconds) == (second(-3), 3.0)
    assert BatchSummary.of(found).horizon_age_seconds == 3.0


def test_the_lag_is_that_of_the_slowest_shard_and_a_shard_at_its_tip_has_none() -> None:
    found = progress(commit(BEHIND, FURTHER_BEHIND, AT_TIP))
    assert [(s.shard_id, s.lag_seconds, s.tip_reached) for s in found.shards] == [
        ("shard-0", 40, False),
        ("shard-1", 95, False),
        ("shard-2", 0, True),
    ]
    assert found.lag_seconds == 95
    assert not found.caught_up


def test_a_busy_shard_of_a_caught_up_batch_has_no_lag_although_a_record_waits() -> None:
    found = progress(commit(BEHIND, caught_up=True))
    assert (found.lag_seconds, found.shards[0].tip_reached, found.caught_up) == (0, True, True)


def test_only_shards_that_are_read_count() -> None:
    found = progress(
        replace(
            commit(
                BEHIND,
                Finished("shard-3"),
                Waiting("shard-4", since=None, unread_since=second(-900)),
                Unpinned("shard-5", since=None, unread_since=second(-900)),
            ),
            base=second(-600),
        )
    )
    assert [(s.shard_id, s.lag_seconds) for s in found.shards] == [("shard-0", 40), ("shard-5", 0)]
    assert progress(commit(Finished("shard-3"))).lag_seconds == 0


def test_children_whose_parents_were_read_to_their_end_are_behind_and_no_end_of_the_backlog() -> None:
    # The batch covers [-600, -300); the parent of shard-4 ended in it, that of shard-6 is still being read.
    found = progress(
        replace(
            commit(
                Finished("shard-3"),
                Waiting("shard-4", since=None, unread_since=second(-590)),
                Waiting("shard-6", since=None, unread_since=second(-3000)),
            ),
            base=second(-600),
            horizon=second(-300),
        )
    )
    assert [(s.shard_id, s.lag_seconds, s.tip_reached) for s in found.shards] == [("shard-4", 300, False)]
    assert found.lag_seconds == 300


def test_where_nothing_that_is_read_is_behind_what_a_batch_has_left_is_in_shards_that_wait() -> None:
    """Parents may have been empty to their end, in a batch that has read records of a later time in other shards."""
    found = progress(
        replace(
            commit(AT_TIP, Finished("shard-3"), Waiting("shard-4", since=None, unread_since=second(-900))),
            base=second(-600),
            horizon=second(-300),
        )
    )
    assert [(s.shard_id, s.lag_seconds, s.tip_reached) for s in found.shards] == [
        ("shard-2", 0, True),
        ("shard-4", 300, False),
    ]


@pytest.mark.parametrize("ahead", [-30, 30])
def test_ages_are_told_by_the_clock_that_arrival_times_are_from(ahead: float) -> None:
    found = progress_of(
        commit(BEHIND, AT_TIP), JOB, executors=1, arrivals=[second(-35)], ahead=timedelta(seconds=ahead)
    )
    assert [s.lag_seconds for s in found.shards] == [40 + ahead, 0]
    assert found.freshness is not None
    assert found.freshness.p50_seconds == 35 + ahead
    assert found.finished_at == second(0)


def test_the_slice_of_a_batch_begins_where_reading_had_come_to() -> None:
    batch = replace(commit(BEHIND, caught_up=True), base=second(-13), horizon=second(-3))
    assert progress_of(batch, JOB, executors=1, read_from=second(-63)).slice_seconds == 60
    assert progress_of(batch, JOB, executors=1).slice_seconds == 10
    assert progress(commit(BEHIND)).slice_seconds is None


def test_the_slice_of_a_batch_that_leaves_records_behind_begins_with_its_first() -> None:
    """After a night of silence half a second's records fill a batch: that they cover ten seconds would be a lie."""
    batch = replace(commit(BEHIND), base=second(-3.5), horizon=second(-3))
    assert progress_of(batch, JOB, executors=1, read_from=second(-13)).slice_seconds == 0.5
    behind_others = replace(batch, base=second(-20))
    assert progress_of(behind_others, JOB, executors=1, read_from=second(-13)).slice_seconds == 10


def test_a_clock_behind_that_of_kinesis_gives_no_negative_lag() -> None:
    assert progress(commit(Reading("shard-0", at(50), arrival=second(3), tip_seen=None))).lag_seconds == 0


def test_the_last_arrival_is_of_a_committed_record() -> None:
    stats = ShardStats("shard-0", 10, 1000, second(-60), second(-41))
    first = progress(commit(BEHIND, FURTHER_BEHIND, AT_TIP, shards=(stats,)))
    # shard-1 stands before a record that is not committed, and gave none so far.
    assert [s.last_arrival for s in first.shards] == [second(-41), None, second(-500)]
    assert [(s.records, s.bytes) for s in first.shards] == [(10, 1000), (0, 0), (0, 0)]
    following = progress(commit(BEHIND, FURTHER_BEHIND, AT_TIP), previous=first)
    assert following.shards[0].last_arrival == second(-41)


def test_aggregates_count_as_kinesis_counts_them() -> None:
    aggregated = ShardStats("shard-0", 500, 1000, second(-60), second(-41), 5, 1800)
    plain = ShardStats("shard-1", 10, 1000, second(-60), second(-41))
    found = progress(commit(BEHIND, FURTHER_BEHIND, shards=(aggregated, plain)))
    assert (found.records, found.kinesis_records) == (510, 15)
    assert [shard.kinesis_records for shard in found.shards] == [5, None]
    summary = BatchSummary.of(found)
    assert (summary.kinesis_records, summary.largest_shard_kinesis_records) == (15, 10)
    assert (summary.bytes, summary.kinesis_bytes, summary.largest_shard_bytes) == (2000, 2800, 1800)
    assert summary.horizon == second(-3)


def test_waiting_for_table_services_is_told_apart_from_writing() -> None:
    sink = SinkCommit(
        rows=5, bytes=100, file_groups=4, seconds={"wait": 1.5, "pause": 30.0, "write": 2.0, "commit": 0.5}
    )
    seconds = {"plan": 0.25, "fetch": 1.5, "write": 34.0}
    found = progress_of(commit(BEHIND, seconds=seconds, sink=sink), JOB, executors=3, commit_seconds=0.125)
    stages = found.seconds
    assert (stages.plan, stages.fetch, stages.write, stages.commit, stages.table_services) == (
        0.25,
        1.5,
        2.5,
        0.125,
        1.5,
    )
    assert stages.pause == 30
    assert stages.total == 5.875, "a pause is no work"
    assert (found.rows_written, found.file_groups, BatchSummary.of(found).file_groups) == (5, 4, 4)


def test_what_becomes_of_table_services_is_told() -> None:
    failed = ServiceStatus("compaction", failed=3, failing=2, failing_since=second(-60), error="x" * 5000, behind=21)
    compaction, cleaning = service_of(failed), service_of(ServiceStatus("cleaning", seconds=1.5))
    assert (compaction.failing, compaction.failing_since, compaction.behind_commits) == (2, second(-60), 21)
    assert len(compaction.error) == 1000
    assert (cleaning.name, cleaning.failing, cleaning.seconds) == ("cleaning", 0, 1.5)


def test_a_heartbeat_has_no_freshness_and_wrote_nothing() -> None:
    found = progress(commit(AT_TIP, caught_up=True))
    assert (found.freshness, found.records, found.rows_written) == (None, 0, 0)


@pytest.mark.parametrize(
    ("ages", "p50", "p99"),
    [
        ([8.0], 8.0, 8.0),
        ([9.0, 5.0, 1.0], 5.0, 8.92),  # the first record to arrive is the oldest
        ([100.0, *[2.0] * 100], 2.0, 2.0),  # one in a hundred may be older
        ([-1.0], 0.0, 0.0),  # clocks differ
    ],
)
def test_freshness_is_read_off_the_quantiles(ages: list[float], p50: float, p99: float) -> None:
    arrivals = [second(-age) for age in ages]
    found = progress_of(commit(BEHIND), JOB, executors=3, arrivals=arrivals).freshness
    assert found is not None
    assert found.p50_seconds == pytest.approx(p50)
    assert found.p99_seconds == pytest.approx(p99)


def test_the_job_is_named() -> None:
    found = progress(commit(BEHIND))
    assert (found.stream, found.writer, found.batch, found.epoch, found.executors, found.cores) == (
        "orders",
        "hudi",
        7,
        3,
        3,
        2,
    )
    assert (found.trigger_interval, found.finished_at) == (timedelta(seconds=10), second(0))


def test_what_was_skipped_is_told_by_shard_and_time() -> None:
    losses = (
        Loss("shard-0", at(1), at(5), second(-90), second(-80)),
        Loss("shard-1", None, None, second(-95), second(-80)),
    )
    found = progress(replace(commit(BEHIND), losses=losses, misplaced=5))
    assert [(loss.shard_id, loss.since, loss.until) for loss in found.losses] == [
        ("shard-0", second(-90), second(-80)),
        ("shard-1", second(-95), second(-80)),
    ]
    assert (BatchSummary.of(found).losses, BatchSummary.of(found).misplaced, found.misplaced) == (2, 5, 5)
    assert Progress.model_validate_json(found.model_dump_json()) == found
