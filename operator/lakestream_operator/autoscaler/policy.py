"""When the number of executors is changed, and by how much. Pure; the simulator runs this very function."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakestream_api import Scaling
from lakestream_operator.autoscaler import explain
from lakestream_operator.autoscaler.demand import Demand, clamp, demand, high_lag
from lakestream_operator.autoscaler.effect import COMPLETE, LEAST_PROMISE, judge, promise
from lakestream_operator.autoscaler.estimate import Load, fit, load_of, start_delay
from lakestream_operator.autoscaler.inputs import ScalingWindow
from lakestream_operator.autoscaler.maximum import held
from lakestream_operator.autoscaler.pressure import EASY, Pressure, pressure_of
from lakestream_operator.autoscaler.release import fewer, helping, remember, without_load
from lakestream_operator.autoscaler.samples import take_in
from lakestream_operator.autoscaler.state import (
    Block,
    LimitReason,
    ScalingCondition,
    ScalingState,
    Step,
)
from lakestream_operator.model import Emit

EVERY = timedelta(seconds=5)
"""Between two evaluations."""
MAX_GROWTH = 2.0
"""A step up at most multiplies by so much while the model is not sure of itself."""
MUCH_MORE = 1.1
"""Times what arrived at the last step: then the next one does not wait until it is known of what use that was."""
LARGE = 1.3
"""A step by such a factor waits for nothing; smaller ones until the last step works."""
LEAST_STEP = 1.15
"""A step for a backlog is one by such a factor at least: smaller ones are followed by others."""
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
UNEXPLAINED, MOST_UNEXPLAINED = 0.1, 0.5
"""What is added to the need each time that there is a backlog which the model does not explain, and at most."""
EXPLAINS = 6
"""Samples of which one with compaction explains a backlog."""
NEARLY_LATE = 0.9
"""Of `maxLag`: what goes by itself below that is not worth executors for hours."""
NEARLY_BEHIND = 0.9
"""Of `B₀`: those whose lag is above that, though they do the work, will be behind if they have no time to spare."""
UNEXPLAINED_HALVES = timedelta(hours=2)
SCHEDULE_AHEAD = timedelta(minutes=2)
"""That scheduled executors are asked for before their time: most start in half a minute, some on a new node."""
LONGEST_LOOK = timedelta(minutes=1)
"""Between two evaluations, after which it is not known when executors came."""
_AHEAD = timedelta(minutes=1)
"""A state that is from so much later is by a clock that was put right since: all its times are wrong."""


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
    events: tuple[Emit, ...]
    """Once each; of no writer by name."""
    state: ScalingState
    """To be given to the next decision."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a rule says."""

    target: int
    explanation: str
    wanted: int | None = None
    condition: ScalingCondition | None = None
    rate: float | None = None
    """Records per second that it is for; None: it does not follow the load."""


def decide_scale(spec: Scaling, window: ScalingWindow, state: ScalingState, now: datetime) -> ScaleDecision:
    """Choose the executors of one writer.

    May be called at any time: between two evaluations it repeats the last decision.

    Args:
        spec: `spec.scaling`.
        window: what is known of the writer.
        state: that of the decision before; a new one at first.
        now: the time.
    """
    if state.evaluated_at is not None and state.evaluated_at - now > _AHEAD:
        state = ScalingState(target=state.target)
    current = _current(spec, window, state)
    if state.target is not None and state.evaluated_at is not None and now - state.evaluated_at < EVERY:
        wanted = current if state.wanted is None else state.wanted
        return ScaleDecision(current, wanted, state.explanation, state.condition, (), state)
    state = replace(_watch_start(state, window, now), target=current, evaluated_at=now)
    state = fit(take_in(state, window, now), window, now)
    outcome, state = _decide(spec, window, state, now)
    return _conclude(spec, window, state, outcome, now)


def _current(spec: Scaling, window: ScalingWindow, state: ScalingState) -> int:
    if state.target is not None:
        return state.target
    running = spec.min_executors if window.executors is None else window.executors.target
    return clamp(spec, running)


def _watch_start(state: ScalingState, window: ScalingWindow, now: datetime) -> ScalingState:
    """Measure `D` when the executors of the last step up have all come."""
    if state.raised_at is None:
        return state
    if window.executors is None or window.executors.registered < (state.target or 0):
        # Those that a quota refuses never come, and no pod tells of it: what they were for may be over by then.
        return replace(state, raised_at=None) if now - state.raised_at > SETTLE_AT_MOST else state
    delay = (now - state.raised_at).total_seconds()
    state = replace(state, raised_at=None, starved=0)
    if state.evaluated_at is None or now - state.evaluated_at > LONGEST_LOOK:
        return state  # they came while nobody looked, as where the operator was away
    return replace(state, start_delays=(*state.start_delays, delay)[-5:])


def _decide(spec: Scaling, window: ScalingWindow, state: ScalingState, now: datetime) -> tuple[_Outcome, ScalingState]:
    """The rules, the first that applies."""
    no_room = _no_room(window, state, now)
    if (outcome := _whatever_comes(spec, window, state, now)) is not None:
        return replace(outcome, condition=no_room), state
    if no_room is not None:
        return _starved(spec, window, state, no_room, now)
    load = load_of(state, window, now)
    if load is None or state.model is None:
        current = _current(spec, window, state)
        target = max(without_load(spec, window, state, now), min(_scheduled(spec, now), current))
        if target < current:
            return _Outcome(target, explain.step(current, target, "nothing has come yet")), state
        return _Outcome(current, f"stays at {explain.count(current)} until a batch tells how much arrives"), state
    return _follow(spec, window, state, load, now)


def _whatever_comes(spec: Scaling, window: ScalingWindow, state: ScalingState, now: datetime) -> _Outcome | None:
    """The rules that the load is nothing to."""
    current = _current(spec, window, state)
    if spec.executors is not None:
        target = clamp(spec, spec.executors)
        return _Outcome(target, f"{explain.count(target)}, as spec.scaling.executors says")
    if (bounded := clamp(spec, current)) != current:
        return _Outcome(bounded, explain.bounds(spec, current, bounded))
    if until := next((end for w in spec.excluded_windows if (end := w.until(now))), None):
        return _Outcome(current, f"stays at {explain.count(current)} until {until:%F %R} UTC: excludedWindows")
    if (scheduled := _bounded(_scheduled(spec, now), state, now)) > current:
        return _Outcome(scheduled, explain.step(current, scheduled, "scaling.schedule has so many from now on"))
    if reason := _silence(window, state, now):
        return _Outcome(current, f"stays at {explain.count(current)}: {reason}")
    return None


def _silence(window: ScalingWindow, state: ScalingState, now: datetime) -> str | None:
    # A silent driver says nothing about load; to shrink on silence would deepen an outage.
    if window.reported_at is None or window.executors is None:
        return "the driver has not reported yet"
    batch = next((one.stages / one.batches for one in reversed(state.samples) if not one.is_rest), 0.0)
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
    if executors is None or window.pending_since is None or state.target is None:
        return None
    # Pods of this step only: those of an earlier one may still be seen for a moment.
    since = max(window.pending_since, state.changed_at or window.pending_since)
    if now - since <= STARVED_AFTER or executors.registered >= state.target:
        return None
    return ScalingCondition(
        LimitReason.RESOURCE_STARVED,
        f"{state.target - executors.registered} of {state.target} executors have not started for"
        f" {explain.ago(now - since)}: {window.pending_for or 'the events of their pods say why'}",
    )


def _starved(
    spec: Scaling, window: ScalingWindow, state: ScalingState, condition: ScalingCondition, now: datetime
) -> tuple[_Outcome, ScalingState]:
    """Make do with what there is room for."""
    assert window.executors is not None
    assert state.target is not None
    runs = clamp(spec, max(1, window.executors.registered))
    if runs == state.target:
        # The least are asked for all the time, and nothing is known of room for more once they are there.
        said = f"stays at {explain.count(runs)}: {condition.message}"
        return _Outcome(runs, said, condition=condition), replace(state, raised_at=None)
    pause = STARVED_PAUSE * 2 ** min(state.starved, STARVED_PAUSES)
    condition = replace(condition, message=f"{condition.message}; asked for again in {explain.ago(pause)}")
    load = load_of(state, window, now)
    block = Block(now + pause, condition, runs, None if load is None else load.rate.now)
    outcome = _Outcome(runs, explain.step(state.target, runs, condition.message), state.target, condition)
    return outcome, replace(state, block=block, raised_at=None, starved=state.starved + 1)


def _follow(
    spec: Scaling, window: ScalingWindow, state: ScalingState, load: Load, now: datetime
) -> tuple[_Outcome, ScalingState]:
    """Follow the load."""
    assert state.target is not None
    assert state.model is not None
    current, limits, model = state.target, window.limits, state.model
    state = replace(state, block=state.block if state.block is not None and now < state.block.until else None)
    delay = start_delay(state) + 2 * limits.interval
    rising = state.grown_at is not None and not state.unchanged_for(SETTLE_AT_MOST, now)
    pressure = pressure_of(spec, limits, model, load, executors=current, delay=delay, rising=rising)
    state = _explain_backlog(spec, window, state, pressure, load, now)
    extra = _extra(state, now)
    overloaded = pressure.behind or pressure.busy * (1 + extra) > pressure.high
    reading = pressure.reading if overloaded else 0.0
    need = demand(spec, limits, model, load, rate=load.rate.now, reading=reading, extra=extra)
    state = remember(spec, state, _steady(spec, window, state, need, load, now), now)
    state, verdict = judge(state, load, now)
    scheduled = _scheduled(spec, now)
    wanted = max(clamp(spec, need.wanted), scheduled)
    seen = explain.seen(load, behind=pressure.behind, executors=current, rate=load.rate.now, busy=pressure.busy)
    if verdict is not None:
        back = max(clamp(spec, verdict.executors), min(scheduled, current))
        return _Outcome(back, explain.step(current, back, verdict.condition.message), wanted, verdict.condition), state
    short = _bounded(scheduled, state, now) < scheduled
    limit = _limit(spec, state, need, load, current=current, short=short, overloaded=overloaded)
    target = current
    if overloaded and wanted > current:
        wanted = max(wanted, clamp(spec, round(LEAST_STEP * current))) if pressure.behind else wanted
        target = _up(state, wanted, load)
        # Executors that do more than what comes work a backlog off, which takes its time.
        catches_up = pressure.behind and pressure.lately < pressure.usual and not state.unchanged_for(spec.max_lag, now)
        # If nothing more arrives, it is to be known first whether the last step was of use.
        watched = state.step is not None and load.rate.now < MUCH_MORE * state.step.rate
        # Who is late for so long does not wait for that.
        patience = spec.max_lag if load.lag > spec.max_lag.total_seconds() else SETTLE_AT_MOST
        watched = watched and not state.unchanged_for(patience, now)
        settled = _settled(state, window, timedelta(seconds=delay), now)
        if catches_up or watched or (not settled and target < LARGE * current):
            return _Outcome(current, f"{seen}; waits for the last step to take effect", wanted, limit), state
    else:
        helpful = helping(need, current, wanted) if pressure.behind else scheduled
        target = max(fewer(spec, state, load, now), min(helpful, current))
    said = explain.decision(seen, spec, current, target, wanted, limit)
    return _Outcome(target, said, wanted, limit, load.rate.now), state


def _scheduled(spec: Scaling, now: datetime) -> int:
    """Executors that the schedule asks for now, or soon."""
    times = (now, now + SCHEDULE_AHEAD)
    return max((one.executors for one in spec.schedule if any(map(one.until, times))), default=0)


def _bounded(scheduled: int, state: ScalingState, now: datetime) -> int:
    """Of scheduled executors, as many as the cluster has had room for, until more are asked for again. Whether they are
    of use is not asked: a schedule is for load that has not come yet."""
    block = state.block
    if block is None or now >= block.until or block.condition.reason is not LimitReason.RESOURCE_STARVED:
        return scheduled
    return min(scheduled, block.executors)


def _explain_backlog(
    spec: Scaling, window: ScalingWindow, state: ScalingState, pressure: Pressure, load: Load, now: datetime
) -> ScalingState:
    """Take down whether the load explains a backlog; if it does not, more executors are needed for a while.

    Batches may take longer than their tasks: storage is slow, tasks stand still.
    """
    explained = pressure.lately * (1 + _extra(state, now)) > pressure.usual
    explained = explained or any(one.services > 0 for one in state.samples[-EXPLAINS:])
    if explained or window.executors is None or window.executors.registered < (state.target or 0):
        return replace(state, explained_at=now)
    if not pressure.behind or load.lag <= NEARLY_LATE * spec.max_lag.total_seconds():
        return state
    if not all(_long_since(at, spec, window, now) for at in (state.explained_at, state.unexplained_at)):
        return state
    more = min(_extra(state, now) + UNEXPLAINED, MOST_UNEXPLAINED)
    return replace(state, unexplained=more, unexplained_at=now)


def _steady(
    spec: Scaling, window: ScalingWindow, state: ScalingState, need: Demand, load: Load, now: datetime
) -> float:
    """Executors for steady times; with time to spare where those that do the work were nearly behind all the same."""
    assert state.model is not None
    near = load.lag > NEARLY_BEHIND * high_lag(spec, window.limits, state.model)
    # What piled up before the last step is explained, and takes its time.
    is_odd = near and state.unchanged_for(SETTLE_AT_MOST, now) and _long_since(state.explained_at, spec, window, now)
    return need.steady / EASY if is_odd else need.steady


def _long_since(at: datetime | None, spec: Scaling, window: ScalingWindow, now: datetime) -> bool:
    """Whether it is so long ago that executors that do the work would have worked off what there was, or never was."""
    patience = min(spec.catch_up, spec.max_lag) + timedelta(seconds=2 * window.limits.interval)
    return at is None or now - at >= patience


def _extra(state: ScalingState, now: datetime) -> float:
    if state.unexplained_at is None:
        return 0.0
    return float(state.unexplained * 0.5 ** ((now - state.unexplained_at) / UNEXPLAINED_HALVES))


def _settled(state: ScalingState, window: ScalingWindow, wait: timedelta, now: datetime) -> bool:
    """Whether the last step is complete, and a batch can have run with it."""
    if state.changed_at is None or now - state.changed_at > SETTLE_AT_MOST:
        return True
    if window.executors is None or window.executors.registered < COMPLETE * (state.target or 0):
        return False
    return now - state.changed_at > wait


def _up(state: ScalingState, wanted: int, load: Load) -> int:
    assert state.target is not None
    assert state.model is not None
    most = wanted if state.model.is_sure else math.ceil(MAX_GROWTH * state.target)
    if state.block is not None and (state.block.rate is None or load.rate.now < 1.25 * state.block.rate):
        most = min(most, max(state.block.executors, state.target))
    return max(state.target, min(wanted, most))


def _limit(
    spec: Scaling, state: ScalingState, need: Demand, load: Load, *, current: int, short: bool, overloaded: bool
) -> ScalingCondition | None:
    """What stands in the way; only said while more would be asked for, or lag is over the goal."""
    if state.block is not None and (short or need.wanted > state.block.executors):
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
    events: list[Emit] = []
    if target != current and not spec.dry_run:
        events.append(Emit("Scaled", text))
    advised = state.advising(target if spec.dry_run and target != current else None, now)
    if spec.dry_run and target != current:
        text, target = f"dry run, stays at {current}: {text}", current
        if advised.advised_at != state.advised_at:
            events.append(Emit("DryRun", text))
    limit, is_news, state = held(spec, advised, outcome.condition, target, now)
    if limit is not None and is_news:
        events.append(Emit(limit.reason.value, limit.message, warning=True))
    wanted = target if outcome.wanted is None else outcome.wanted
    state = replace(state, explanation=text, wanted=wanted, condition=limit)
    if target != current:
        state = _changed(state, target, outcome.rate, now)
    return ScaleDecision(target, wanted, text, limit, tuple(events), state)


def _changed(state: ScalingState, target: int, rate: float | None, now: datetime) -> ScalingState:
    assert state.target is not None
    before = state.target
    if target <= before:
        return replace(state, target=target, changed_at=now, raised_at=None, step=None, grown_at=None, raised_rate=None)
    step = state.step
    if rate is not None and promise(before, target) >= LEAST_PROMISE:
        step = Step(now, before, target, rate)
    grown = state.grown_at or now
    return replace(state, target=target, changed_at=now, raised_at=now, raised_rate=rate, step=step, grown_at=grown)
