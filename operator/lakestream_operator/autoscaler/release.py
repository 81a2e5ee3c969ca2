"""When executors are given back: what was called for lately is remembered for a while.

For `scaleDownAfter`, as a rule. Where the load itself has fallen, and not only a backlog is gone or noise is low, for
as long as it was high, within bounds.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from lakestream_api import Scaling
from lakestream_operator.autoscaler.demand import Demand, clamp
from lakestream_operator.autoscaler.estimate import Load
from lakestream_operator.autoscaler.state import Recommendation, ScalingState

DOWN_MARGIN = 0.9
"""Fewer executors only if at most this share of them would do: a change is not worth less."""
SHORTEST_HOLD = timedelta(seconds=150)
"""For so long at least a need is remembered, and for half of `scaleDownAfter` at most…"""
FALLEN, FALLEN_NOISE = 0.25, 5.0
"""…if the load has fallen: it calls for so much less than before, and so many standard deviations. Less is noise, and
worth waiting for."""
SETTLED = 0.65
"""The newest recommendation is at least this share of the largest when a falling load has settled."""
_BUCKET = timedelta(seconds=30)
"""Of recommendations that are remembered as one."""


def remember(spec: Scaling, state: ScalingState, need: Demand, now: datetime) -> ScalingState:
    """The largest recommendation of each half minute."""
    kept = [known for known in state.recommendations if now - known.at <= spec.scale_down_after + _BUCKET]
    steady = clamp(spec, need.steady)
    if kept and now - kept[-1].at < _BUCKET:
        kept[-1] = replace(kept[-1], executors=max(kept[-1].executors, steady))
    else:
        kept.append(Recommendation(now, steady))
    return replace(state, recommendations=tuple(kept))


def fewer(spec: Scaling, state: ScalingState, load: Load, now: datetime) -> int:
    """Fewer, if they would have done for as long as a need is remembered."""
    assert state.target is not None
    enough = DOWN_MARGIN * state.target
    if state.raised_at is not None or not state.recommendations:
        return state.target
    hold = _hold(spec, state, load, enough, now)
    if now - state.recommendations[0].at < hold - _BUCKET or not state.unchanged_for(hold, now):
        return state.target
    most = max(known.executors for known in state.recommendations if now - known.at <= hold)
    # One step when the load has settled, not one with each evaluation while it falls.
    if most > enough or state.recommendations[-1].executors < SETTLED * most:
        return state.target
    return clamp(spec, most)


def _hold(spec: Scaling, state: ScalingState, load: Load, enough: float, now: datetime) -> timedelta:
    """For how long a need is remembered: where the load has fallen, for as long as it was high, within bounds."""
    hold, longest = spec.scale_down_after, spec.scale_down_after / 2
    peak = max(known.executors for known in state.recommendations)
    lately = max((one.executors for one in state.recommendations if now - one.at <= SHORTEST_HOLD), default=peak)
    if lately > (1 - max(FALLEN, FALLEN_NOISE * load.rate.noise)) * peak:
        return hold
    if state.grown_at is None:
        return longest
    high = max((known.at for known in state.recommendations if known.executors > enough), default=state.grown_at)
    return min(max(high - state.grown_at, SHORTEST_HOLD), longest)
