"""No commit is made with a time before that of the table's newest one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from lakestream.sinks.hudi.clock import ClockBehindError, CommitClock, newest_time

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Machine:
    """A clock, and sleep that moves it."""

    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def clock(machine: Machine) -> CommitClock:
    return CommitClock("/lake/orders", machine.now, machine.sleep)


@pytest.mark.parametrize("newest", [None, NOON - timedelta(milliseconds=1), NOON - timedelta(days=300)])
def test_a_table_of_the_past_is_written_at_once(machine: Machine, newest: datetime | None) -> None:
    clock(machine).require_after(newest)
    assert machine.time == NOON


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(milliseconds=1), timedelta(seconds=10)])
def test_a_commit_a_little_ahead_is_waited_for(machine: Machine, ahead: timedelta) -> None:
    clock(machine).require_after(NOON + ahead)
    assert NOON + ahead < machine.time < NOON + ahead + timedelta(seconds=1)


def test_a_clock_far_behind_writes_nothing(machine: Machine) -> None:
    message = r"/lake/orders is of 2026-01-31T12:12:00Z, and the clock of this machine is 720 s behind that"
    with pytest.raises(ClockBehindError, match=message):
        clock(machine).require_after(NOON + timedelta(minutes=12))
    assert machine.time == NOON


@pytest.mark.parametrize(
    ("instants", "newest"),
    [
        ("[]", None),
        ("[[20260131115900123__deltacommit__COMPLETED__20260131115959999]]", NOON - timedelta(milliseconds=1)),
        ("[[==>20260131120000000__compaction__REQUESTED], [20260131115900123__clean__COMPLETED]]", NOON),
        # As releases of Hudi before 0.11 have it.
        ("[[20260131120000__commit__COMPLETED]]", NOON),
        # What a bootstrap begins with.
        ("[[00000000000002__commit__COMPLETED]]", None),
    ],
)
def test_the_newest_time_of_a_timeline(instants: str, newest: datetime | None) -> None:
    assert newest_time(instants, UTC) == newest


def test_times_are_of_the_tables_zone() -> None:
    cet = timezone(timedelta(hours=1))
    assert newest_time("[[20260131130000000__commit__COMPLETED]]", cet) == NOON
