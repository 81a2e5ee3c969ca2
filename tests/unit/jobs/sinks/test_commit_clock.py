"""No commit is made with a time before that of the table's newest one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from lakestream.errors import SinkError
from lakestream.sinks.hudi.clock import ClockAheadError, ClockBehindError, CommitClock, newest_time, require_seen

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


class Store:
    """Its clock is another one, and it may tell whole seconds only."""

    def __init__(self, machine: Machine, behind: timedelta, *, whole_seconds: bool = False) -> None:
        self._machine = machine
        self._behind = behind
        self._whole_seconds = whole_seconds
        self.asked = 0

    def __call__(self) -> datetime:
        self.asked += 1
        time = self._machine.time - self._behind
        return time.replace(microsecond=0) if self._whole_seconds else time


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(hours=1)])
def test_a_store_with_the_right_time_is_not_waited_for(machine: Machine, ahead: timedelta) -> None:
    clock(machine).require_stored_after(NOON, store := Store(machine, -ahead))
    assert (machine.time, store.asked) == (NOON, 1)


@pytest.mark.parametrize("behind", [timedelta(milliseconds=1), timedelta(seconds=2), timedelta(seconds=9)])
@pytest.mark.parametrize("whole_seconds", [True, False])
def test_a_store_a_little_behind_is_waited_for(machine: Machine, behind: timedelta, whole_seconds: bool) -> None:
    planned = machine.time = NOON + timedelta(milliseconds=700)
    store = Store(machine, behind, whole_seconds=whole_seconds)
    clock(machine).require_stored_after(planned, store)
    assert planned <= store() < planned + timedelta(seconds=1.1)
    assert machine.time < planned + behind + timedelta(seconds=1.1)
    assert store.asked <= 5


def test_a_compaction_that_was_planned_far_ahead_of_its_store_is_not_completed(machine: Machine) -> None:
    message = r"of the table at /lake/orders was planned at 2026-01-31T12:12:00Z, and .* it is 720 s before that"
    with pytest.raises(ClockAheadError, match=message):
        clock(machine).require_stored_after(NOON + timedelta(minutes=12), Store(machine, timedelta(0)))
    assert machine.time == NOON


def test_a_store_that_stands_still_is_not_waited_for_for_ever(machine: Machine) -> None:
    with pytest.raises(ClockAheadError):
        clock(machine).require_stored_after(NOON, lambda: NOON - timedelta(seconds=3))


def test_compactions_that_hide_what_came_after_them_are_named() -> None:
    require_seen("/lake/orders", [])
    with pytest.raises(SinkError, match=r"of the table at /lake/orders .*: \.hoodie/20260131120000000\.commit\. "):
        require_seen("/lake/orders", ["20260131120000000"])
