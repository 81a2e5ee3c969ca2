"""Shards within Kinesis's rules."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream_api import BatchSummary, DriverReport, Shards
from lakestream_operator.autoscaler import ShardState, StreamObservation, decide_shards, observe_stream
from lakestream_operator.testing import report_of
from lakestream_operator.testing.documents import batch_of

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
LIMITS = Shards(min=2, max=64)
MINUTE = timedelta(minutes=1)


def _stream(shards: int, records: float) -> StreamObservation:
    return StreamObservation(shards, records * 250, records)


def _target(shards: int, records: float, *, minutes: int, limits: Shards = LIMITS) -> int | None:
    """What is decided after so many minutes of a steady load."""
    state = ShardState()
    for minute in range(minutes):
        decision = decide_shards(limits, _stream(shards, records), state, NOW + minute * MINUTE)
        assert decision.target is None, f"in minute {minute}"
        state = decision.state
    return decide_shards(limits, _stream(shards, records), state, NOW + minutes * MINUTE).target


def test_a_full_stream_grows_after_three_minutes_at_most_to_twice_its_shards() -> None:
    assert _target(4, 3_600, minutes=3) == 6
    assert _target(4, 20_000, minutes=3) == 8


def test_an_empty_stream_shrinks_after_an_hour_at_most_to_half() -> None:
    assert _target(16, 500, minutes=60) == 8


def test_a_burst_changes_nothing() -> None:
    state = ShardState()
    for minute, records in enumerate([3_600, 3_600, 3_600, 2_000, 3_600, 3_600]):
        decision = decide_shards(LIMITS, _stream(4, records), state, NOW + minute * MINUTE)
        assert decision.target is None
        state = decision.state


def test_a_busy_moment_begins_the_hour_anew() -> None:
    state = ShardState()
    for minute in range(100):
        records = 10_000 if minute == 50 else 500
        decision = decide_shards(LIMITS, _stream(16, records), state, NOW + minute * MINUTE)
        assert decision.target is None
        state = decision.state


@pytest.mark.parametrize("unseen", [timedelta(minutes=50), None], ids=["no decisions", "no rates"])
def test_what_was_not_seen_is_no_hour_with_too_many_shards(unseen: timedelta | None) -> None:
    state = decide_shards(LIMITS, _stream(16, 500), ShardState(), NOW).state
    if unseen is None:
        state = decide_shards(LIMITS, None, state, NOW + MINUTE).state
        unseen = timedelta(minutes=14)
    assert decide_shards(LIMITS, _stream(16, 500), state, NOW + unseen + timedelta(minutes=50)).target is None


def test_what_lies_beyond_the_bounds_does_not_wait() -> None:
    assert decide_shards(LIMITS, _stream(1, 0), ShardState(), NOW).target == 2
    assert decide_shards(LIMITS, _stream(100, 0), ShardState(), NOW).target == 50
    assert _target(64, 64_000, minutes=10) is None
    assert _target(2, 0, minutes=120) is None


def test_a_hot_shard_is_named_and_not_paid_for_by_all() -> None:
    hot = StreamObservation(8, 800_000, 3_200, busiest_share=0.97)
    decision = decide_shards(LIMITS, hot, ShardState(), NOW)
    assert decision.target is None
    assert "one of them is 97% full" in decision.state.explanation
    named = decide_shards(LIMITS, replace(hot, busiest="shardId-000000000007"), ShardState(), NOW)
    assert "shardId-000000000007 is 97% full" in named.state.explanation


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(1, 4_000)), min_size=1, max_size=80))
def test_never_more_than_ten_calls_in_a_day_nor_beyond_twice_or_half(history: list[tuple[float, int]]) -> None:
    shards, state, now = 16, ShardState(), NOW
    calls: list[datetime] = []
    for records, minutes in history:
        # A load lasts some minutes, so that it is seen often enough to count.
        for minute in [1] * min(minutes, 5) + [max(0, minutes - 5)]:
            now += minute * MINUTE
            decision = decide_shards(LIMITS, _stream(shards, records), state, now)
            state = ShardState.from_json(decision.state.to_json())
            assert state == decision.state
            if decision.target is not None:
                assert shards / 2 <= decision.target <= 2 * shards
                assert LIMITS.min <= decision.target <= LIMITS.max
                calls.append(now)
                shards = decision.target
            assert sum(now - call < timedelta(hours=24) for call in calls) <= 10


def _report(*batches: BatchSummary, caught_up_at: datetime | None = None) -> DriverReport:
    return report_of(NOW).model_copy(update={"batches": batches, "caught_up_at": caught_up_at})


def _steady(count: int, until: datetime = NOW) -> list[BatchSummary]:
    """Batches of 1,000 records and 200,000 bytes in ten seconds each."""
    return [batch_of(number, until - timedelta(seconds=10 * (count - 1 - number))) for number in range(count)]


def test_rates_are_those_of_five_minutes() -> None:
    old = [one.model_copy(update={"records": 10**6, "kinesis_records": 10**6}) for one in _steady(9, NOW - 5 * MINUTE)]
    assert observe_stream(_report(*old, *_steady(30)), NOW) == StreamObservation(4, 20_000, 100)


def test_records_are_counted_before_aggregates_are_unpacked() -> None:
    batches = [one.model_copy(update={"kinesis_records": 10}) for one in _steady(20)]
    observed = observe_stream(_report(*batches), NOW)
    assert observed is not None
    assert observed.records_per_second == pytest.approx(1)


def test_a_backlog_is_counted_over_the_time_in_which_it_arrived() -> None:
    # Each batch took ten seconds and covers a minute.
    batches = [
        one.model_copy(update={"horizon": NOW - (20 - number) * MINUTE}) for number, one in enumerate(_steady(20))
    ]
    observed = observe_stream(_report(*batches), NOW)
    assert observed is not None
    assert observed.records_per_second == pytest.approx(1000 / 60)


def test_nothing_arrived_until_the_driver_had_looked_in_vain() -> None:
    idle = _report(*_steady(40, NOW - timedelta(hours=3)), caught_up_at=NOW)
    assert observe_stream(idle, NOW) == StreamObservation(4, 0, 0)
    half = observe_stream(_report(*_steady(16, NOW - 150 * timedelta(seconds=1)), caught_up_at=NOW), NOW)
    assert half is not None
    assert half.records_per_second == pytest.approx(50)


def test_the_fullest_shard_is_measured_by_bytes_or_by_records() -> None:
    def share(**largest: int) -> float:
        observed = observe_stream(_report(*[one.model_copy(update=largest) for one in _steady(20)]), NOW)
        assert observed is not None
        return observed.busiest_share

    assert share(largest_shard_bytes=5 * 1024 * 1024) == pytest.approx(0.5)
    assert share(largest_shard_kinesis_records=9_000) == pytest.approx(0.9)


@pytest.mark.parametrize(
    "report",
    [
        None,
        _report(),
        _report(*_steady(3)),
        _report(*_steady(20, NOW - 11 * MINUTE)),
        _report(*[one.model_copy(update={"horizon": None}) for one in _steady(20)]),
        _report(*[one.model_copy(update={"open_shards": 0}) for one in _steady(20)]),
    ],
    ids=["no report", "no batch", "too short", "too old", "older driver", "no shards"],
)
def test_a_report_that_tells_nothing_of_now(report: DriverReport | None) -> None:
    assert observe_stream(report, NOW) is None
