"""That `maxExecutors` limits is told once, where as many are called for, now more and now less."""

from datetime import UTC, datetime, timedelta

from lakestream_api import Scaling
from lakestream_operator.autoscaler.maximum import held
from lakestream_operator.autoscaler.state import LimitReason, ScalingCondition, ScalingState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = Scaling(max_executors=6)
MAXIMUM = ScalingCondition(LimitReason.AT_MAXIMUM, "7 executors are called for, maxExecutors is 6")
SHARDS = ScalingCondition(LimitReason.SHARD_LIMITED, "a shard is at its limit")


class _Told:
    """What is told in the course of time."""

    def __init__(self) -> None:
        self.state, self.events, self.seconds = ScalingState(target=6), 0, 0

    def after(self, seconds: int, limit: ScalingCondition | None, target: int = 6) -> LimitReason | None:
        self.seconds += seconds
        now = NOW + timedelta(seconds=self.seconds)
        condition, is_news, state = held(SPEC, self.state, limit, target, now)
        self.events += is_news
        self.state = ScalingState(condition=condition, at_maximum_at=state.at_maximum_at)
        return condition.reason if condition else None


def test_a_need_that_hovers_around_the_maximum_is_told_once() -> None:
    told = _Told()
    for _ in range(200):
        assert told.after(5, MAXIMUM) is LimitReason.AT_MAXIMUM
        assert told.after(60, None) is LimitReason.AT_MAXIMUM
    assert told.events == 1
    assert told.after(241, None) is None
    assert told.after(590, MAXIMUM) is LimitReason.AT_MAXIMUM
    assert told.events == 1, "it was clear for less than ten minutes"
    told.after(301, None)
    told.after(600, MAXIMUM)
    assert told.events == 2


def test_what_else_limits_is_told_at_once() -> None:
    told = _Told()
    assert told.after(5, MAXIMUM) is LimitReason.AT_MAXIMUM
    assert told.after(5, SHARDS) is LimitReason.SHARD_LIMITED
    assert told.events == 2
    assert told.after(5, SHARDS) is LimitReason.SHARD_LIMITED
    assert told.after(5, None) is None
    assert told.events == 2


def test_with_fewer_executors_or_a_higher_maximum_nothing_is_held() -> None:
    told = _Told()
    told.after(5, MAXIMUM)
    assert told.after(5, None, target=5) is None
