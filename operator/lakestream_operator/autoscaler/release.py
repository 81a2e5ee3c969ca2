"""When executors are given back: what was called for lately is remembered for a while.

For `scaleDownAfter`, as a rule. Where the load itself has fallen, and not only a backlog is gone or noise is low, for
as long as it was high, within bounds. What was called for is counted in fractions of executors: whole ones fall by a
third where the load does by a percent. While it rises, as much more is kept as it will rise by in that time again.
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from datetime import datetime, timedelta

from lakestream_api import Scaling
from lakestream_operator.autoscaler.demand import Demand, clamp, in_whole
from lakestream_operator.autoscaler.estimate import Load
from lakestream_operator.autoscaler.inputs import ScalingWindow
from lakestream_operator.autoscaler.samples import with_fetched
from lakestream_operator.autoscaler.state import LimitReason, Recommendation, ScalingState

LEAST_FEWER, FEWER_NOISE = 0.07, 2.0
"""Fewer executors only if they are fewer by this share, and by so many standard deviations: a change is not worth
less…"""
SPARE = 1.04
"""…and these times as many as will do: who has just enough is behind with the next noise, and called for again."""
SHORTEST_HOLD = timedelta(seconds=150)
"""For so long at least a need is remembered, and for half of `scaleDownAfter` at most…"""
FALLEN, FALLEN_NOISE = 0.25, 5.0
"""…if the load has fallen: it calls for so much less than before, and so many standard deviations. Less is noise, and
worth waiting for."""
SETTLED = 0.65
"""The newest recommendation is at least this share of the largest when a falling load has settled."""
_BOUNDS = (LimitReason.SHARD_LIMITED, LimitReason.FILE_GROUP_LIMITED)
_BUCKET = timedelta(seconds=30)
"""Of recommendations that are remembered as one; more where they are remembered for long."""
_BUCKETS = 240
"""Some 15 KB. They are in an annotation, and Kubernetes allows an object 256 KiB of all annotations together."""


def _bucket(spec: Scaling) -> timedelta:
    return max(_BUCKET, spec.scale_down_after / _BUCKETS)


def remember(spec: Scaling, state: ScalingState, steady: float, now: datetime) -> ScalingState:
    """The largest recommendation of each half minute, or of more time, so that they are not too many.

    Args:
        spec: for how long, and how many executors at most.
        state: with those before.
        steady: executors that are called for, in fractions.
        now: the time.
    """
    bucket = _bucket(spec)
    kept = [known for known in state.recommendations if now - known.at <= spec.scale_down_after + bucket]
    steady = round(min(steady, spec.max_executors), 2)
    if kept and now - kept[-1].at < bucket:
        kept[-1] = replace(kept[-1], executors=max(kept[-1].executors, steady))
    else:
        kept.append(Recommendation(now, steady))
    return replace(state, recommendations=tuple(kept))


def fewer(spec: Scaling, state: ScalingState, load: Load, now: datetime) -> int:
    """Fewer, if they would have done for as long as a need is remembered."""
    assert state.target is not None
    enough = (1 - max(LEAST_FEWER, FEWER_NOISE * load.rate.noise)) * state.target
    if state.raised_at is not None or not state.recommendations:
        return state.target
    hold = _hold(spec, state, load, enough, now)
    if now - state.recommendations[0].at < hold - _bucket(spec) or not state.unchanged_for(hold, now):
        return state.target
    held = [known for known in state.recommendations if now - known.at <= hold] or [state.recommendations[-1]]
    most = max(known.executors for known in held)
    # One step when the load has settled, not one with each evaluation while it falls.
    if state.recommendations[-1].executors < SETTLED * most:
        return state.target
    kept = SPARE * most + _rise(held)
    target = clamp(spec, in_whole(kept))
    # A stream that has gone idle has no fewer than the least, and gives back all others however noisy it was.
    worth = kept if target == spec.min_executors else target
    return target if worth <= enough else state.target


def without_load(spec: Scaling, window: ScalingWindow, state: ScalingState, now: datetime) -> int:
    """The least, if the driver has looked, and nothing has ever come for what was added."""
    assert state.target is not None
    is_empty = window.caught_up_at is not None and not with_fetched(state.samples, window)
    is_idle = is_empty and state.changed_at is not None and state.unchanged_for(spec.scale_down_after, now)
    return spec.min_executors if is_idle else state.target


def helping(need: Demand, current: int, wanted: int) -> int:
    """How many may help a writer that is behind: all that there are, if neither shards nor the table are a bound."""
    is_bound = need.limit is not None and need.limit.reason in _BOUNDS
    return wanted if is_bound else current


def _rise(held: list[Recommendation]) -> float:
    """By how much more is called for in as much time again, if the load goes on rising as it did."""
    middle = held[0].at + (held[-1].at - held[0].at) / 2
    early, late = ([one.executors for one in held if (one.at > middle) == later] for later in (False, True))
    return max(0.0, 2 * (statistics.fmean(late) - statistics.fmean(early))) if late else 0.0


def _hold(spec: Scaling, state: ScalingState, load: Load, enough: float, now: datetime) -> timedelta:
    """For how long a need is remembered: where the load has fallen, for as long as it was high, within bounds."""
    hold, longest = spec.scale_down_after, spec.scale_down_after / 2
    peak = max(known.executors for known in state.recommendations)
    lately = max((one.executors for one in state.recommendations if now - one.at <= SHORTEST_HOLD), default=peak)
    least = 1 - max(FALLEN, FALLEN_NOISE * load.rate.noise)
    if lately > least * peak or (state.raised_rate is not None and load.rate.now > least * state.raised_rate):
        return hold
    if state.grown_at is None:
        return longest
    high = max((known.at for known in state.recommendations if known.executors > enough), default=state.grown_at)
    return min(max(high - state.grown_at, SHORTEST_HOLD), longest)
