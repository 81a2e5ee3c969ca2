"""When the number of executors is changed, and by how much. Pure; the simulator runs this very function."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakestream_api import Scaling
from lakestream_operator.autoscaler import explain
from lakestream_operator.autoscaler.demand import Demand, demand, utilization
from lakestream_operator.autoscaler.effect import judge
from lakestream_operator.autoscaler.estimate import FEW, Load, fit, load_of, start_delay, take_in
from lakestream_operator.autoscaler.observations import ScalingWindow
from lakestream_operator.autoscaler.state import (
    Block,
    LimitReason,
    Recommendation,
    ScalingCondition,
    ScalingState,
    Step,
)

EVERY = timedelta(seconds=15)
"""Between two evaluations."""
VOTES = (2, 3)
"""More executors only if two of the last three evaluations call for them."""
MAX_GROWTH = 2.0
"""A step up at most doubles: what the model says of sizes never seen is checked before the next one."""
MAX_SHRINK = 0.5
"""A step down leaves at least half."""
DOWN_MARGIN = 0.85
"""…and only to this share of what there is, or less: a change is not worth less."""
SETTLED = 0.8
"""The newest recommendation is at least this share of the largest when a falling load has settled."""
STALE_BATCHES = 3
"""Progress older than so many batches says nothing about the present."""
LEAST_STALE = timedelta(seconds=60)
STARVED_AFTER = timedelta(seconds=120)
STARVED_PAUSE = timedelta(minutes=5)
"""Before room is asked for again; a cluster autoscaler has brought a node by then. Doubles with each vain attempt."""
STARVED_PAUSES = 1
"""So often."""
SETTLE_AT_MOST = timedelta(minutes=5)
"""A step that is not complete after this time is not waited for any longer."""
HIGH = 0.97
"""Utilization from which on there have to be more executors. So far above the target that noise stays below it."""
LEAP = 1.3
"""Utilization by the rate of the last samples that calls for executors before the mean of the window does."""
BEHIND = 3.0
BEHIND_SHARE = 2 / 3
"""Records older than so many trigger intervals, and than this share of `maxLag`, are a backlog; younger ones are on the
way."""


@dataclass(frozen=True, slots=True)
class ScalingEvent:
    """For the LakeStream's events, once each."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class ScaleDecision:
    """What to do now."""

    target: int
    """Executors to ask the driver for; unchanged in a dry run."""
    wanted: int
    """Executors that the load calls for, within `minExecutors` and `maxExecutors`."""
    explanation: str
    """What was seen, what is wanted and what limits it, in a line."""
    condition: ScalingCondition | None
    """`ScalingLimited`, if it is so."""
    events: tuple[ScalingEvent, ...]
    state: ScalingState
    """To be given to the next decision."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a rule says."""

    target: int
    explanation: str
    wanted: int | None = None
    condition: ScalingCondition | None = None


def decide_scale(spec: Scaling, window: ScalingWindow, state: ScalingState, now: datetime) -> ScaleDecision:
    """Choose the executors of one writer.

    May be called at any time: between two evaluations it repeats the last decision.

    Args:
        spec: `spec.scaling`.
        window: what is known of the writer.
        state: that of the decision before; a new one at first.
        now: the time.
    """
    current = _current(spec, window, state)
    if state.target is not None and state.evaluated_at is not None and now - state.evaluated_at < EVERY:
        wanted = current if state.wanted is None else state.wanted
        return ScaleDecision(current, wanted, state.explanation, state.condition, (), state)
    state = replace(_watch_start(state, window, now), target=current, evaluated_at=now)
    state = fit(take_in(state, window, now), now)
    outcome, state = _decide(spec, window, state, now)
    return _conclude(spec, window, state, outcome, now)


def _current(spec: Scaling, window: ScalingWindow, state: ScalingState) -> int:
    if state.target is not None:
        return state.target
    running = spec.min_executors if window.executors is None else window.executors.target
    return _clamp(spec, running)


def _clamp(spec: Scaling, executors: int) -> int:
    return min(max(executors, spec.min_executors), spec.max_executors)


def _watch_start(state: ScalingState, window: ScalingWindow, now: datetime) -> ScalingState:
    """Measure `D` when the executors of the last step up have all come."""
    if state.raised_at is None or window.executors is None or window.executors.registered < (state.target or 0):
        return state
    delay = (now - state.raised_at).total_seconds()
    return replace(state, raised_at=None, start_delays=(*state.start_delays, delay)[-5:], starved=0)


def _decide(spec: Scaling, window: ScalingWindow, state: ScalingState, now: datetime) -> tuple[_Outcome, ScalingState]:
    """The rules, the first that applies."""
    current = _current(spec, window, state)
    if spec.executors is not None:
        target = _clamp(spec, spec.executors)
        said = f"{explain.count(target)}, as spec.scaling.executors says"
        return _Outcome(target, said, condition=_no_room(window, state, now)), state
    if (bounded := _clamp(spec, current)) != current:
        return _Outcome(bounded, explain.bounds(spec, current, bounded)), state
    if until := next((end for w in spec.excluded_windows if (end := w.until(now))), None):
        return _Outcome(current, f"stays at {explain.count(current)} until {until:%F %R} UTC: excludedWindows"), state
    if reason := _silence(window, state, now):
        return _Outcome(current, f"stays at {explain.count(current)}: {reason}"), state
    if (starved := _starved(spec, window, state, now)) is not None:
        return starved
    load = load_of(spec, state, window, now)
    if load is None or state.model is None:
        return _Outcome(current, f"stays at {explain.count(current)} until a batch tells how much arrives"), state
    return _follow(spec, window, state, load, now)


def _silence(window: ScalingWindow, state: ScalingState, now: datetime) -> str | None:
    # A silent driver says nothing about load; to shrink on silence would deepen an outage.
    if window.reported_at is None or window.executors is None:
        return "the driver has not reported yet"
    batch = next((sample.busy for sample in reversed(state.samples) if not sample.is_rest), 0.0)
    patience = max(timedelta(seconds=STALE_BATCHES * max(window.limits.interval, batch)), LEAST_STALE)
    if now - window.reported_at > patience:
        return f"the driver's last report is {explain.ago(now - window.reported_at)} old"
    seen = [at for at in (state.last_finished_at, window.caught_up_at) if at is not None]
    if not seen:
        return "no batch is finished yet"
    if now - max(seen) > patience:
        return f"the last batch was finished {explain.ago(now - max(seen))} ago"
    return None


def _no_room(window: ScalingWindow, state: ScalingState, now: datetime) -> ScalingCondition | None:
    """Said when executors of the last step have waited for a node for too long."""
    executors = window.executors
    if executors is None or executors.pending_since is None or state.target is None:
        return None
    # Pods of this step only: those of an earlier one may still be seen for a moment.
    since = max(executors.pending_since, state.changed_at or executors.pending_since)
    if now - since <= STARVED_AFTER or executors.registered >= state.target:
        return None
    return ScalingCondition(
        LimitReason.RESOURCE_STARVED,
        f"the cluster has had no room for {state.target - executors.registered} of {state.target} executors for "
        f"{explain.ago(now - since)}",
    )


def _starved(
    spec: Scaling, window: ScalingWindow, state: ScalingState, now: datetime
) -> tuple[_Outcome, ScalingState] | None:
    condition = _no_room(window, state, now)
    if condition is None:
        return None
    assert window.executors is not None
    assert state.target is not None
    runs = _clamp(spec, max(1, window.executors.registered))
    pause = STARVED_PAUSE * 2 ** min(state.starved, STARVED_PAUSES)
    condition = replace(condition, message=f"{condition.message}; asked for again in {explain.ago(pause)}")
    load = load_of(spec, state, window, now)
    block = Block(now + pause, condition, runs, None if load is None else max(load.rate, load.recent_rate))
    outcome = _Outcome(runs, explain.step(state.target, runs, condition.message), state.target, condition)
    return outcome, replace(state, block=block, raised_at=None, starved=state.starved + 1)


def _follow(
    spec: Scaling, window: ScalingWindow, state: ScalingState, load: Load, now: datetime
) -> tuple[_Outcome, ScalingState]:
    """Follow the load."""
    assert state.target is not None
    assert state.model is not None
    current, limits = state.target, window.limits
    model = state.model
    behind = load.lag > max(BEHIND * limits.interval, BEHIND_SHARE * spec.max_lag.total_seconds())
    busy = utilization(spec, limits, model, load, rate=load.rate, executors=current)
    now_busy = utilization(spec, limits, model, load, rate=load.recent_rate, executors=current)
    leap = now_busy > LEAP
    # A minute that is busier than others is what the lag goal leaves room for; a leap, or a backlog, is not.
    rate = max(load.rate, load.recent_rate) if leap else load.rate
    need = demand(spec, limits, model, load, rate=rate, delay=start_delay(state), behind=behind)
    steady = demand(spec, limits, model, load, rate=load.rate, delay=0.0, behind=False)
    state = _remember(spec, state, steady, now)
    # Without a batch that ran alone the model is a bound; only a backlog proves that it is not too high.
    calls = need.wanted > current and (behind or (not model.is_bound and load.samples >= FEW and (leap or busy > HIGH)))
    state = replace(state, votes=(*state.votes, calls)[-VOTES[1] :])
    state, verdict = judge(state, window, load, now)
    most, most_rate = max((busy, load.rate), (now_busy, load.recent_rate))
    seen = explain.seen(load, behind=behind, executors=current, rate=most_rate, busy=most)
    wanted = _clamp(spec, need.wanted)
    if verdict is not None:
        back = _clamp(spec, verdict.executors)
        return _Outcome(back, explain.step(current, back, verdict.condition.message), wanted, verdict.condition), state
    limit = _limit(spec, state, need, load, current=current, overloaded=calls, now=now)
    if not _settled(state, window, now):
        return _Outcome(current, f"{seen}; waits for the last step to take effect", wanted, limit), state
    target = _up(state, wanted, load, now) if sum(state.votes) >= VOTES[0] and calls else current
    if target == current and not behind:
        target = _down(spec, state, now)
    return _Outcome(target, explain.decision(seen, spec, current, target, wanted, limit), wanted, limit), state


def _remember(spec: Scaling, state: ScalingState, need: Demand, now: datetime) -> ScalingState:
    kept = [known for known in state.recommendations if now - known.at <= spec.scale_down_after]
    steady = Recommendation(now, _clamp(spec, need.steady))
    block = state.block if state.block is not None and now < state.block.until else None
    return replace(state, recommendations=(*kept, steady), block=block)


def _settled(state: ScalingState, window: ScalingWindow, now: datetime) -> bool:
    """Whether the last step is complete, and a batch has run with it, if there was one to run."""
    if state.changed_at is None or now - state.changed_at > SETTLE_AT_MOST:
        return True
    if window.executors is None or window.executors.registered != state.target:
        return False
    if window.caught_up_at is not None and window.caught_up_at > state.changed_at:
        return True
    after = [batch for batch in window.batches if batch.finished_at > state.changed_at]
    return any(batch.executors == state.target for batch in after)


def _up(state: ScalingState, wanted: int, load: Load, now: datetime) -> int:
    assert state.target is not None
    most = math.ceil(state.target * MAX_GROWTH)
    if state.block is not None and (state.block.rate is None or load.recent_rate < 1.25 * state.block.rate):
        most = min(most, max(state.block.executors, state.target))
    return max(state.target, min(wanted, most))


def _down(spec: Scaling, state: ScalingState, now: datetime) -> int:
    assert state.target is not None
    if state.raised_at is not None or not state.recommendations:
        return state.target
    long_enough = now - state.recommendations[0].at >= spec.scale_down_after - 2 * EVERY
    most = max(known.executors for known in state.recommendations)
    if not long_enough or most >= state.target or most > DOWN_MARGIN * state.target:
        return state.target
    # One step when the load has settled, not one with each evaluation while it falls.
    if state.recommendations[-1].executors < SETTLED * most:
        return state.target
    return _clamp(spec, max(most, math.ceil(state.target * MAX_SHRINK)))


def _limit(
    spec: Scaling, state: ScalingState, need: Demand, load: Load, *, current: int, overloaded: bool, now: datetime
) -> ScalingCondition | None:
    """What stands in the way; only said while more would be asked for, or lag is over the goal."""
    if state.block is not None and need.wanted > state.block.executors:
        return state.block.condition
    if need.wanted > spec.max_executors and current == spec.max_executors:
        return ScalingCondition(
            LimitReason.AT_MAXIMUM, f"{need.wanted:,} executors are called for, maxExecutors is {spec.max_executors:,}"
        )
    late = load.lag > spec.max_lag.total_seconds()
    if need.limit is None:
        return None
    if need.limit.reason is LimitReason.TRIGGER_TOO_SHORT or overloaded or late or need.wanted <= current:
        return need.limit
    return None


def _conclude(
    spec: Scaling, window: ScalingWindow, state: ScalingState, outcome: _Outcome, now: datetime
) -> ScaleDecision:
    """The decision, and the state that goes with it."""
    assert state.target is not None
    current, target, text = state.target, outcome.target, outcome.explanation
    events: list[ScalingEvent] = []
    if target != current and not spec.dry_run:
        events.append(ScalingEvent("Scaled", text))
    if spec.dry_run and target != current:
        text, target = f"dry run, stays at {current}: {text}", current
        if outcome.target != state.advised:
            events.append(ScalingEvent("DryRun", text))
    limit = outcome.condition
    if limit is not None and (state.condition is None or limit.reason != state.condition.reason):
        events.append(ScalingEvent(limit.reason.value, limit.message, warning=True))
    wanted = target if outcome.wanted is None else outcome.wanted
    state = replace(state, explanation=text, wanted=wanted, condition=limit, advised=outcome.target)
    if target != current:
        state = _changed(state, window, target, now)
    return ScaleDecision(target, wanted, text, limit, tuple(events), state)


def _changed(state: ScalingState, window: ScalingWindow, target: int, now: datetime) -> ScalingState:
    assert state.target is not None
    before = state.target
    step = None
    if target > before and state.model is not None:
        step = Step(now, before, target, state.model)
    return replace(
        state,
        target=target,
        changed_at=now,
        raised_at=now if target > before else None,
        votes=(),
        step=step,
    )
