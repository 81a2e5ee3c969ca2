"""How many executors are kept for what was called for lately."""

from datetime import UTC, datetime, timedelta

import pytest

from lakestream_api import Scaling
from lakestream_operator.autoscaler import ScalingState
from lakestream_operator.autoscaler.estimate import Load
from lakestream_operator.autoscaler.rates import Rate
from lakestream_operator.autoscaler.release import fewer
from lakestream_operator.autoscaler.state import Recommendation

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
SPEC = Scaling(min_executors=1, max_executors=100)
STEADY = Load(
    rate=Rate(mean=1000.0, leap=None, noise=0.0, recent=1000.0, latest=1000.0),
    record_bytes=250.0,
    lag=1.0,
    backlog=0.0,
    open_shards=1000,
    shard_load=0.1,
)


def kept(target: int, *called_for: float) -> int:
    """Of so many executors, after what was called for in each half minute of the time that a need is remembered."""
    parts = int(SPEC.scale_down_after / timedelta(seconds=30))
    assert parts % len(called_for) == 0
    steps = [executors for executors in called_for for _ in range(parts // len(called_for))]
    times = [NOW - timedelta(seconds=30) * (parts - number) for number in range(parts)]
    recommendations = tuple(map(Recommendation, times, steps))
    return fewer(SPEC, ScalingState(target=target, recommendations=recommendations), STEADY, NOW)


def test_as_many_are_kept_as_will_do_and_a_little_more() -> None:
    assert kept(20, 10.0) == 11


@pytest.mark.parametrize("called_for", [17.4, 17.8])
def test_a_single_executor_of_twenty_is_not_worth_a_change(called_for: float) -> None:
    """With what is to spare, less than nineteen; but in whole ones it is nineteen."""
    assert kept(20, called_for) == 20


def test_while_the_load_rises_as_much_more_is_kept_as_it_will_rise_by() -> None:
    assert kept(20, 10.0, 12.0) == kept(20, 12.0) + 4


def test_while_the_load_falls_no_fewer_are_kept_than_for_its_height() -> None:
    assert kept(20, 12.0, 10.0) == kept(20, 12.0)
