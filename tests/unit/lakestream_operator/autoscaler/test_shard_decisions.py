"""UpdateShardCount within Kinesis's rules."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lakestream_api import Shards
from lakestream_operator.autoscaler import ShardState, StreamObservation, decide_shards

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
LIMITS = Shards(min=2, max=64)


def _stream(shards: int, records: float, *, active: bool = True) -> StreamObservation:
    return StreamObservation(shards, active, records * 250, records)


def test_a_full_stream_grows_at_most_to_twice_its_shards() -> None:
    assert decide_shards(LIMITS, _stream(4, 3_600), ShardState(), NOW).target == 6
    assert decide_shards(LIMITS, _stream(4, 20_000), ShardState(), NOW).target == 8


def test_an_empty_stream_shrinks_after_an_hour_at_most_to_half() -> None:
    first = decide_shards(LIMITS, _stream(16, 500), ShardState(), NOW)
    assert first.target is None
    later = decide_shards(LIMITS, _stream(16, 500), first.state, NOW + timedelta(hours=1))
    assert later.target == 8


def test_a_busy_moment_begins_the_hour_anew() -> None:
    state = decide_shards(LIMITS, _stream(16, 500), ShardState(), NOW).state
    state = decide_shards(LIMITS, _stream(16, 10_000), state, NOW + timedelta(minutes=50)).state
    assert decide_shards(LIMITS, _stream(16, 500), state, NOW + timedelta(hours=1)).target is None


def test_a_stream_being_updated_is_left_alone() -> None:
    assert decide_shards(LIMITS, _stream(4, 20_000, active=False), ShardState(), NOW).target is None


def test_the_bounds_are_kept() -> None:
    assert decide_shards(LIMITS, _stream(64, 64_000), ShardState(), NOW).target is None
    assert decide_shards(LIMITS, _stream(1, 0), ShardState(), NOW).target == 2


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(1, 4_000)), min_size=1, max_size=80))
def test_never_more_than_ten_calls_in_a_day_nor_beyond_twice_or_half(history: list[tuple[float, int]]) -> None:
    shards, state, now = 16, ShardState(), NOW
    calls: list[datetime] = []
    for records, minutes in history:
        now += timedelta(minutes=minutes)
        decision = decide_shards(LIMITS, _stream(shards, records), state, now)
        state = decision.state
        if decision.target is not None:
            assert shards / 2 <= decision.target <= 2 * shards
            assert LIMITS.min <= decision.target <= LIMITS.max
            calls.append(now)
            shards = decision.target
        assert sum(now - call < timedelta(hours=24) for call in calls) <= 10
