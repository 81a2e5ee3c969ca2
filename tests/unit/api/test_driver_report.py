"""The report of a driver: rates and backlog from the lag of shards, and a size that stays within a ConfigMap."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from lakestream_api import (
    BatchSummary,
    DriverReport,
    DriverState,
    ExecutorsReport,
    Failure,
    Progress,
    ShardProgress,
    StageSeconds,
)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
WORK = StageSeconds(plan=0.25, fetch=0.5, write=1.0, commit=0.25)
REPORT = DriverReport(
    stream="orders",
    writer="hudi",
    pod="orders-hudi-driver",
    pod_uid="d2c5a1f6",
    started_at=NOON,
    updated_at=NOON,
    state=DriverState.STARTING,
    executors=ExecutorsReport(target=2, registered=0),
)


def _batch(number: int, at: float, **shards: tuple[float, int]) -> Progress:
    """A batch committed at a second after noon; each shard with its lag and its records."""
    return Progress(
        stream="orders",
        writer="hudi",
        batch=number,
        epoch=3,
        finished_at=NOON + timedelta(seconds=at),
        records=sum(records for _, records in shards.values()),
        bytes=1000,
        quarantined=0,
        rows_written=10,
        seconds=WORK,
        trigger_interval=timedelta(seconds=10),
        executors=2,
        cores=1,
        shards=tuple(
            ShardProgress(shard_id=name, tip_reached=lag == 0, lag_seconds=lag, records=records, bytes=records)
            for name, (lag, records) in shards.items()
        ),
        lag_seconds=max((lag for lag, _ in shards.values()), default=0.0),
        caught_up=all(lag == 0 for lag, _ in shards.values()),
    )


def test_at_the_tip_records_arrive_as_fast_as_they_are_read_and_none_are_left() -> None:
    found = BatchSummary.of(_batch(1, 10, a=(0, 300), b=(0, 100)), _batch(0, 0, a=(0, 0), b=(0, 0)))
    assert (found.arrival_rate, found.backlog_records) == (40.0, 0.0)
    assert (found.open_shards, found.behind_shards, found.caught_up) == (2, 0, True)
    assert found.largest_shard_bytes == 300


def test_a_backlog_is_read_faster_than_it_arrived() -> None:
    # In ten seconds the shard went from an hour behind to 55 minutes: 310 s of arrivals.
    found = BatchSummary.of(_batch(1, 10, a=(3300, 31_000)), _batch(0, 0, a=(3600, 9)))
    assert found.arrival_rate == pytest.approx(100)
    assert found.backlog_records == pytest.approx(330_000)
    assert (found.open_shards, found.behind_shards) == (1, 1)


def test_the_backlog_is_that_of_the_hot_shard_and_no_average() -> None:
    found = BatchSummary.of(
        _batch(1, 10, hot=(100, 1000), cold=(0, 10), idle=(0, 0)), _batch(0, 0, hot=(100, 0), cold=(0, 0), idle=(0, 0))
    )
    assert found.arrival_rate == pytest.approx(101)
    assert found.backlog_records == pytest.approx(100 * 100)


def test_a_child_shard_counts_with_the_slice_of_the_others() -> None:
    found = BatchSummary.of(_batch(1, 10, old=(0, 100), child=(0, 50)), _batch(0, 0, old=(0, 0), parent=(0, 0)))
    assert found.arrival_rate == pytest.approx(15)


def test_a_slice_of_no_length_has_no_endless_rate() -> None:
    found = BatchSummary.of(_batch(1, 10, a=(70, 500)), _batch(0, 0, a=(60, 0)))
    assert found.arrival_rate == 500


@pytest.mark.parametrize("previous", [None, _batch(0, 0, parent=(0, 10))])
def test_without_a_batch_before_nothing_is_said_of_rates(previous: Progress | None) -> None:
    found = BatchSummary.of(_batch(1, 10, a=(5, 10)), previous)
    assert (found.arrival_rate, found.backlog_records) == (None, None)


def test_a_driver_that_knows_the_slice_is_believed() -> None:
    batch = _batch(1, 10, a=(100, 600), b=(0, 300)).model_copy(update={"slice_seconds": 30.0})
    for previous in (None, _batch(0, 0, a=(0, 0), b=(0, 0))):
        found = BatchSummary.of(batch, previous)
        assert (found.arrival_rate, found.backlog_records) == (30, 2000)


def test_a_stream_without_shards_to_read_offers_nothing() -> None:
    found = BatchSummary.of(_batch(1, 10), _batch(0, 0, parent=(0, 10)))
    assert (found.arrival_rate, found.backlog_records, found.open_shards) == (0, 0, 0)


def test_a_committed_batch_makes_a_driver_a_running_one() -> None:
    report = REPORT.after(_batch(0, 1, a=(7, 5)))
    assert (report.state, report.epoch, report.shard_count) == (DriverState.RUNNING, 3, 1)
    assert report.updated_at == NOON + timedelta(seconds=1)
    assert [batch.batch for batch in report.batches] == [0]


def test_a_driver_that_is_stopping_stays_so() -> None:
    draining = REPORT.model_copy(update={"state": DriverState.DRAINING})
    assert draining.after(_batch(0, 1, a=(0, 5))).state is DriverState.DRAINING


@pytest.mark.parametrize("children", [{}, {"b": (0, 0)}, {"b": (0, 100)}])
def test_what_shards_gave_that_are_finished_has_arrived_too(children: dict[str, tuple[float, int]]) -> None:
    """A stream whose shards are all split would seem to rest."""
    batch = _batch(1, 10, **children).model_copy(update={"records": 400, "slice_seconds": 10.0})
    assert BatchSummary.of(batch).arrival_rate == 40


def test_a_report_survives_the_wire_and_newer_fields() -> None:
    report = REPORT.after(_batch(0, 1, a=(7, 5))).after(_batch(1, 9, a=(7, 5)), _batch(0, 1, a=(7, 5)))
    wire = report.model_dump_json()
    assert DriverReport.model_validate_json(wire) == report
    newer = wire.replace('"stream"', '"colour":"blue","stream"', 1).replace('"registered"', '"lost":1,"registered"', 1)
    assert DriverReport.model_validate_json(newer) == report


def test_a_report_is_small_whatever_there_is_to_say() -> None:
    shards = {f"shardId-{number:012d}": (float(number) / 7, 10**9) for number in range(10_000)}
    report, previous = REPORT, None
    first = _batch(0, 1000, **shards)
    for number in range(42):
        at = first.finished_at + timedelta(seconds=number / 7)
        batch = first.model_copy(update={"batch": number, "finished_at": at})
        report, previous = report.after(batch, previous), batch
    published = report.model_copy(update={"failure": Failure.of(3, "no " * 100_000)}).published()
    assert len(published.model_dump_json()) < 16 << 10
    assert [batch.batch for batch in published.batches] == list(range(30, 42))
    assert report.shard_count == 10_000
    assert [shard.shard_id for shard in report.shards] == [f"shardId-{n:012d}" for n in range(9999, 9989, -1)]
    assert report.batches[-1].behind_shards == 9_999


def test_a_report_names_the_shard_that_gave_most() -> None:
    assert REPORT.after(_batch(0, 1, cold=(0, 5), hot=(0, 700), slow=(60, 20))).fullest_shard == "hot"
    assert REPORT.after(_batch(0, 1, cold=(0, 0))).fullest_shard == ""


def test_batches_that_are_not_published_are_added_up() -> None:
    report = REPORT
    for number in range(60):
        batch = _batch(number, 10 * number, a=(0, 100))
        horizon = {"horizon": batch.finished_at, "quarantined": 1, "filtered": 2}
        report = report.after(batch.model_copy(update=horizon))
    published = report.published()
    assert published.lately == report.lately
    recent = published.recent
    assert recent is not None
    assert (recent.records, recent.filtered, recent.quarantined) == (3000, 60, 30)
    assert recent.arrived is not None
    assert recent.arrived.until - recent.arrived.since == timedelta(minutes=5)
    assert (recent.arrived.bytes, recent.arrived.kinesis_records, recent.arrived.largest_shard_bytes) == (
        30_000,
        3000,
        3000,
    )
    assert REPORT.published().recent is None


def _told(*batches: tuple[float, float]) -> DriverReport:
    """Batches of 100 records each, by the second after noon of their commit and of their horizon."""
    report = REPORT
    for number, (at, horizon) in enumerate(batches):
        told = {"horizon": NOON + timedelta(seconds=horizon), "bytes": 1000, "kinesis_bytes": 1700}
        report = report.after(_batch(number, at, a=(0, 100)).model_copy(update=told))
    return report


@pytest.mark.parametrize("ahead", [-720, -3, 0, 3, 720])
def test_what_arrives_is_told_by_the_clock_of_kinesis_alone(ahead: float) -> None:
    """The driver's own may be wrong: what arrives would be spread over time that has not come."""
    report = _told(*((ahead + 30 * number, 30 * number) for number in range(11)))
    looked_at = NOON + timedelta(seconds=310)
    found = {"caught_up_at": looked_at + timedelta(seconds=ahead), "caught_up_to": looked_at}
    recent = report.model_copy(update=found).published().recent
    assert recent is not None
    assert recent.arrived is not None
    assert (recent.arrived.since, recent.arrived.until) == (NOON, looked_at)
    assert (recent.arrived.kinesis_records, recent.arrived.bytes) == (1000, 17_000)


def test_what_a_restore_has_read_again_has_not_arrived_twice() -> None:
    looked_at = NOON + timedelta(seconds=100)
    found = {"caught_up_at": looked_at, "caught_up_to": looked_at}
    report = _told((0, 0), (50, 50), (99, 99)).model_copy(update=found)
    for number, horizon in ((3, -600), (4, -500), (5, -400)):
        told = {"horizon": NOON + timedelta(seconds=horizon)}
        report = report.after(_batch(number, 100 + 10 * number, a=(0, 100)).model_copy(update=told))
    recent = report.published().recent
    assert recent is not None
    assert recent.arrived is not None
    assert recent.arrived.until - recent.arrived.since == timedelta(seconds=200)
    assert recent.arrived.kinesis_records == 200


def test_a_horizon_that_is_a_second_back_is_no_restore() -> None:
    recent = _told((0, 0), (50, 50), (60, 49.2), (100, 100)).published().recent
    assert recent is not None
    assert recent.arrived is not None
    assert recent.arrived.since == NOON
    assert recent.arrived.kinesis_records == 300


def test_batches_of_before_a_clock_was_set_back_are_not_of_the_last_minutes() -> None:
    recent = _told((3600, 0), (3660, 60), (120, 120)).published().recent
    assert recent is not None
    assert recent.records == 100


def test_the_message_of_a_failure_is_one_paragraph() -> None:
    assert Failure.of(2, "no such\n  column\n") == Failure(exit=2, message="no such column")


CANNOT_BE: dict[str, object] = {
    "records": 10**400,
    "bytes": 10**30,
    "openShards": 10**30,
    "lagSeconds": 1e12,
    "arrivalRate": 1e300,
    "backlogRecords": 1e300,
    "seconds": {"plan": 0.0, "fetch": 1e15, "write": 0.0, "commit": 0.0},
    "coreSeconds": {"fetch": 1e300, "write": 0.0},
    "triggerInterval": "999999999h",
    "horizon": "0001-01-01T00:00:00Z",
    "finishedAt": "9999-12-31T23:59:59Z",
}


@pytest.mark.parametrize("field", CANNOT_BE)
def test_what_cannot_be_is_no_report(field: str) -> None:
    report = REPORT.after(_batch(1, 10, a=(5, 300))).published().model_dump(mode="json")
    assert DriverReport.model_validate(report).batches
    report["batches"][-1][field] = CANNOT_BE[field]
    with pytest.raises(ValidationError, match=field):
        DriverReport.model_validate(report)


def test_a_node_whose_clock_has_just_begun_may_tell() -> None:
    batch = _batch(1, 10, a=(1.8e9, 300))
    long_ago = batch.model_copy(update={"finished_at": datetime(1970, 1, 1, tzinfo=UTC)})
    report = REPORT.after(long_ago).published()
    assert DriverReport.model_validate_json(report.model_dump_json()) == report
