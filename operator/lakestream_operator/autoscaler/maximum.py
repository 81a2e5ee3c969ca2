"""That `maxExecutors` limits, told once where as many are called for, now more and now less. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from lakestream_api import Scaling
from lakestream_operator.autoscaler.state import LimitReason, ScalingCondition, ScalingState

HELD = timedelta(minutes=5)
"""For so long after more were last called for, the condition stays."""
QUIET = HELD + timedelta(minutes=10)
"""For so long after that it is told by no other event."""


def held(
    spec: Scaling, state: ScalingState, limit: ScalingCondition | None, target: int, now: datetime
) -> tuple[ScalingCondition | None, bool, ScalingState]:
    """The condition, whether it is told by an event, and the state that goes with it.

    Args:
        spec: `maxExecutors` of it.
        state: with the condition before.
        limit: what limits at this evaluation.
        target: the executors that are asked for.
        now: the time.
    """
    before, last = state.condition, state.at_maximum_at
    # One that is from a later time is by a clock that was put right since.
    since = None if last is None or last > now else now - last
    if (
        limit is None
        and before is not None
        and before.reason is LimitReason.AT_MAXIMUM
        and target == spec.max_executors
    ):
        return (before if since is not None and since < HELD else None), False, state
    if limit is None or limit.reason is not LimitReason.AT_MAXIMUM:
        return limit, limit is not None and (before is None or before.reason is not limit.reason), state
    return limit, since is None or since >= QUIET, replace(state, at_maximum_at=now)
