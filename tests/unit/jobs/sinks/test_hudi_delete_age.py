"""Which deletes are still needed: none is forgotten of which an older version may come, and none kept for long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lakestream.sinks.contract import Arrived, BatchRef
from lakestream.sinks.hudi.delete_age import DeleteAge, come_by

RETAIN = 60.0
START = datetime(2026, 1, 31, tzinfo=UTC)
seconds = st.floats(0, 200)


def at(time: float) -> datetime:
    return START + timedelta(seconds=time)


@given(st.lists(st.tuples(seconds, seconds, st.floats(0, 20)), min_size=1), seconds)
def test_no_delete_is_forgotten_that_an_older_version_may_come_behind(
    batches: list[tuple[float, float, float]], behind: float
) -> None:
    """Each batch: how much further the stream is, how much of it is read, and how long that takes; by a clock that is
    right, or behind."""
    age = DeleteAge(RETAIN)
    low = horizon = 0.0
    now = START.timestamp()
    written: list[tuple[float, float]] = []
    for further, span, took in batches:
        low = min(low + further, horizon)
        horizon = max(horizon, low + span)
        now = max(now + took, START.timestamp() + horizon)
        arrived = Arrived(at(low), at(horizon))
        by = come_by(BatchRef(7, "a", arrived), now - behind)
        age.tell(arrived, by)
        # Of the deletes of earlier batches those that came less than `RETAIN` before what is read now.
        needed = [when for came, when in written if came > low - RETAIN]
        assert age.oldest <= min(needed, default=by)
        written += [(came, by) for came in (low, horizon - 0.001)]


def test_deletes_of_a_clock_that_is_behind_are_remembered_for_as_long() -> None:
    arrived = Arrived(at(0), at(1))
    by = come_by(BatchRef(7, "a", arrived), START.timestamp() - 12.0)
    successor = DeleteAge(RETAIN)
    successor.tell(Arrived(at(60), at(61)), START.timestamp() + 61)
    assert successor.oldest <= by


def test_those_of_a_span_too() -> None:
    """Which ends now, and of whose deletes older versions may come yet."""
    span = BatchRef(7, "a", asked_until=at(1))
    assert come_by(span, START.timestamp() - 12.0) == at(1).timestamp()
    assert come_by(span, at(2).timestamp()) == at(2).timestamp()
    assert come_by(BatchRef(7, "a"), 7.0) == 7.0, "of a replay, or files, nobody knows"


def test_while_something_older_may_come_none_is_forgotten() -> None:
    age = DeleteAge(RETAIN)
    for second in range(0, 500, 100):
        age.tell(Arrived(None, at(second)), START.timestamp() + second)
    assert age.oldest == float("-inf")


def test_of_a_backlog_of_days_only_an_hour_is_remembered() -> None:
    age = DeleteAge(RETAIN)
    now = START.timestamp() + 10_000.0
    for batch in range(100):
        age.tell(Arrived(at(batch * 30), at(batch * 30 + 30)), now + batch)
    assert age.oldest >= now + 99 - 4, "they were written a second apart, with half a minute of the stream in each"


def test_a_stream_that_is_at_its_tip_goes_by_the_clock() -> None:
    age = DeleteAge(RETAIN)
    for second in range(500):
        age.tell(Arrived(at(second), at(second + 1)), START.timestamp() + second + 1)
    assert START.timestamp() + 499 - RETAIN - 1 <= age.oldest <= START.timestamp() + 499 - RETAIN + 1
