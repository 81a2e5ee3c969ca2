"""The decision of one cycle: from what is wanted and seen of a LakeStream to what is done. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from lakestream_api import ConditionStatus, ConditionType, InvalidDocumentError, LakeStreamStatus, WriterNames
from lakestream_operator.autoscaler import ScalingState
from lakestream_operator.changes import WriterDecision, changes_for, removal_of
from lakestream_operator.conditions import Findings
from lakestream_operator.executors import Scale, scale
from lakestream_operator.model import Action, Emit, Finalize, Kind, Observed, Refusal, WriterSeen
from lakestream_operator.quarantine import Quarantined, quarantine_of, tell_of
from lakestream_operator.quotas import in_the_way, is_short, quotas_of
from lakestream_operator.render import Plan, Wanted, executor_needs, plan_of, wanted_of
from lakestream_operator.resharding import Reshard, reshard
from lakestream_operator.settings import JobSettings
from lakestream_operator.status import status_of
from lakestream_operator.upkeep import Failing, failing
from lakestream_operator.writers import Goal, Outcome, Situation, Stop, Timings, decide_writer

_WAITS_FOR_US = (Situation.STARTING, Situation.STALLED, Situation.DRAINING, Situation.STOPPING, Situation.STOPPED)
"""Situations that last as long as what is to be done is refused."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do in one cycle."""

    actions: Mapping[str, tuple[Action, ...]]
    """By writer, in this order: what is refused of one is nothing to the others. Those on the LakeStream itself are
    under an empty name."""
    status: LakeStreamStatus | None
    """To be written; none when the LakeStream is as good as gone."""
    wake_at: datetime
    """When to decide again though nothing has happened."""
    scaling: Mapping[str, ScalingState]
    """What the autoscaler remembers of each writer."""
    shards: str | None = None
    """What it remembers of the stream's shards."""


def decide(
    observed: Observed,
    job: JobSettings,
    now: datetime,
    *,
    scaling: Mapping[str, ScalingState] | None = None,
    shards: str | None = None,
    timings: Timings | None = None,
) -> Decision:
    """The next step for one LakeStream.

    Args:
        observed: what is seen of it.
        job: how drivers are made.
        now: the time of this cycle, read once.
        scaling: what the autoscaler remembered after the last decision of this process, by writer.
        shards: the same of the stream's shards.
        timings: limits of patience.
    """
    timings = timings or Timings()
    observed = _recalled(observed)
    if observed.stream.deleting:
        return _delete(observed, job, now, timings)
    if not observed.stream.finalizing:
        return _begin(observed, now, timings)
    wanted, problems = _read(observed)
    goals = _goals(observed, wanted)
    outcomes = _outcomes(observed, goals, now, timings)
    scales = _starved(observed, goals, _scales(observed, wanted, goals, scaling or {}, now))
    resharding = _resharding(observed, wanted, goals, shards, now)
    findings = Findings(
        outcomes=_shown(observed, outcomes, goals),
        scales=scales,
        shards=" ".join(one.explanation for one in resharding.values()),
        problems=problems,
        suspended=_suspended(observed),
        rolled_back=_rolled_back(goals, outcomes),
        failing=_failing(observed, outcomes),
        quarantine=_quarantine(observed, wanted, outcomes),
        outdated=_outdated(observed, goals, job),
        refusal=_refusal(observed),
    )
    actions = _actions(observed, job, goals, outcomes, scales, resharding) | {"": _events(observed, findings)}
    return Decision(
        actions=_allowed(observed, actions, now),
        status=status_of(observed, findings, now, timings),
        wake_at=_wake_at(observed, outcomes, now, now + timings.idle_resync),
        scaling={name: one.state for name, one in scales.items()},
        shards=next((one.state for one in resharding.values()), None),
    )


def _recalled(observed: Observed) -> Observed:
    """With the number of failures that the status has kept, where the rest of the memory was deleted."""
    status, writers = observed.stream.status, dict(observed.writers)
    for one in status.writers if status else ():
        seen = writers.get(one.name)
        control = (Kind.ConfigMap, WriterNames(observed.stream.name, one.name).control)
        if one.restarts and seen and control not in seen.objects:
            writers[one.name] = replace(seen, memory=seen.memory.model_copy(update={"failures": one.restarts}))
    return replace(observed, writers=writers)


def _read(observed: Observed) -> tuple[Wanted | None, str]:
    """The spec, or else what is wrong with it."""
    if observed.contested:
        return None, observed.contested
    try:
        return wanted_of(observed.stream), ""
    except InvalidDocumentError as error:
        return None, " ".join(f"{one}." for one in error.problems)


def _suspended(observed: Observed) -> bool:
    """Whether all is to stop: said clearly enough even if the rest of the spec is invalid."""
    return (observed.stream.manifest.get("spec") or {}).get("suspend") is True


def _goals(observed: Observed, wanted: Wanted | None) -> dict[str, Goal]:
    stream = observed.stream
    goals: dict[str, Goal] = {}
    for name, plan in wanted.plans.items() if wanted else ():
        assert wanted is not None  # it has plans
        if _suspended(observed):
            goals[name] = Goal(stream.namespace, plan.names, None, Stop.SUSPENDED)
            continue
        seen = observed.writers.get(name, WriterSeen())
        good = _known(seen.good) if wanted.stream.spec.rollback else None
        rejected = good is not None and seen.memory.rejected == plan.fingerprint
        goals[name] = Goal(stream.namespace, plan.names, good if rejected else plan, rollback=good, went_back=rejected)
    for name, seen in observed.writers.items():
        names = WriterNames(stream.name, name)
        if wanted is not None:
            goals.setdefault(name, Goal(stream.namespace, names, None, Stop.REMOVED))
        elif _suspended(observed):
            goals[name] = Goal(stream.namespace, names, None, Stop.SUSPENDED)
        elif (plan_before := _known(seen.document)) is not None:
            # With a spec that says nothing sensible, what was wanted before goes on.
            goals[name] = Goal(stream.namespace, names, plan_before)
    return goals


def _known(document: str | None) -> Plan | None:
    """The plan of a document that was written earlier, if this operator can still read it."""
    try:
        return plan_of(document) if document else None
    except InvalidDocumentError:
        return None


def _scales(
    observed: Observed,
    wanted: Wanted | None,
    goals: Mapping[str, Goal],
    remembered: Mapping[str, ScalingState],
    now: datetime,
) -> dict[str, Scale]:
    if wanted is None:
        return {}
    return {
        name: scale(name, wanted.stream.spec, observed.writers.get(name, WriterSeen()), remembered.get(name), now)
        for name, goal in goals.items()
        if goal.plan is not None
    }


def _starved(observed: Observed, goals: Mapping[str, Goal], scales: Mapping[str, Scale]) -> dict[str, Scale]:
    """With what quotas say where executors are missing."""
    found, status = dict(scales), observed.stream.status
    told = any(one.reason == "ResourceStarved" for one in (status.conditions if status else ()))
    for name, one in scales.items():
        seen, plan = observed.writers.get(name, WriterSeen()), goals[name].plan
        if plan is not None and observed.quotas and is_short(seen):
            found[name] = one.starved(name, in_the_way(quotas_of(observed.quotas), executor_needs(plan)), told=told)
    return found


def _resharding(
    observed: Observed, wanted: Wanted | None, goals: Mapping[str, Goal], remembered: str | None, now: datetime
) -> dict[str, Reshard]:
    """The decision on the stream's shards, by the name of the first writer; empty if there is none."""
    if wanted is None:
        return {}
    first = wanted.stream.spec.writers[0].name
    if goals[first].plan is None:
        return {}
    decision = reshard(wanted.stream.spec, observed.writers.get(first, WriterSeen()), remembered, now)
    return {first: decision} if decision else {}


def _begin(observed: Observed, now: datetime, timings: Timings) -> Decision:
    """Put the finalizer on, before anything is made: a LakeStream that is deleted in between would leave a driver
    undrained."""
    refusal = _refusal(observed)
    findings = Findings({}, {}, "", suspended=False, rolled_back=frozenset(), refusal=refusal)
    return Decision(
        actions=_allowed(observed, {"": (Finalize(present=True),)}, now),
        status=status_of(observed, findings, now, timings) if refusal else None,
        wake_at=_wake_at(observed, {}, now, now + timings.resync),
        scaling={},
    )


def _allowed(
    observed: Observed, actions: Mapping[str, tuple[Action, ...]], now: datetime
) -> dict[str, tuple[Action, ...]]:
    """Without what was refused a moment ago."""
    asked = observed.stream.asked
    held = {name for name, one in observed.refusals.items() if one.holds(asked, now)}
    return {name: some for name, some in actions.items() if some and name not in held}


def _wake_at(observed: Observed, outcomes: Mapping[str, Outcome], now: datetime, otherwise: datetime) -> datetime:
    times = [one.wake_at for one in outcomes.values() if one.wake_at]
    times += [one.retry_at for one in observed.refusals.values() if one.retry_at > now]
    return min(times, default=otherwise)


def _outcomes(observed: Observed, goals: Mapping[str, Goal], now: datetime, timings: Timings) -> dict[str, Outcome]:
    return {
        name: decide_writer(goal, observed.writers.get(name, WriterSeen()), now, timings)
        for name, goal in goals.items()
    }


def _refusal(observed: Observed) -> Refusal | None:
    """What is to be told of the LakeStream itself."""
    refusal = observed.refusals.get("")
    return refusal if refusal and refusal.told else None


def _shown(observed: Observed, outcomes: Mapping[str, Outcome], goals: Mapping[str, Goal]) -> dict[str, Outcome]:
    """Outcomes as they can be, for what has to be done may have been refused; without writers that are gone."""
    shown = dict(outcomes)
    for name, refusal in observed.refusals.items():
        if refusal.told and name in shown and shown[name].situation in _WAITS_FOR_US:
            shown[name] = replace(
                shown[name], situation=Situation.STALLED, reason=refusal.reason, message=refusal.message
            )
    return {name: one for name, one in shown.items() if not _is_gone(goals[name], one)}


def _is_gone(goal: Goal, outcome: Outcome) -> bool:
    """Whether a writer that the spec has no more is no longer worth a line."""
    return goal.stop is Stop.REMOVED and outcome.situation is Situation.STOPPED


def _rolled_back(goals: Mapping[str, Goal], outcomes: Mapping[str, Outcome]) -> frozenset[str]:
    """Writers that run an older document than the one asked for."""
    return frozenset(
        name for name, goal in goals.items() if goal.went_back or outcomes[name].reason == Stop.ROLLED_BACK.value
    )


def _failing(observed: Observed, outcomes: Mapping[str, Outcome]) -> dict[str, tuple[Failing, ...]]:
    """By writer: what drivers that run tell of their tables, for others' reports are of the past; and what was refused
    though nothing waits for it."""
    found: dict[str, tuple[Failing, ...]] = {}
    for name, outcome in outcomes.items():
        report, refusal = observed.writers.get(name, WriterSeen()).report, observed.refusals.get(name)
        services = failing(report) if report and outcome.situation is Situation.RUNNING else ()
        refused = refusal is not None and refusal.told and outcome.situation not in _WAITS_FOR_US
        found[name] = (*services, *((Failing(refusal.reason, refusal.message),) if refusal and refused else ()))
    return found


def _actions(
    observed: Observed,
    job: JobSettings,
    goals: Mapping[str, Goal],
    outcomes: Mapping[str, Outcome],
    scales: Mapping[str, Scale],
    resharding: Mapping[str, Reshard],
) -> dict[str, tuple[Action, ...]]:
    actions: dict[str, tuple[Action, ...]] = {}
    for name, outcome in outcomes.items():
        seen = observed.writers.get(name, WriterSeen())
        if goals[name].stop is Stop.REMOVED and outcome.situation is Situation.STOPPED:
            actions[name] = tuple(removal_of(goals[name], seen))
        else:
            decision = WriterDecision(
                observed.stream, goals[name], outcome, seen, scales.get(name), resharding.get(name)
            )
            actions[name] = tuple(changes_for(decision, job))
    return actions


def _quarantine(observed: Observed, wanted: Wanted | None, outcomes: Mapping[str, Outcome]) -> Quarantined:
    limit = wanted.stream.spec.quarantine.warn_fraction if wanted else 1.0
    reports = {name: observed.writers.get(name, WriterSeen()).report for name in outcomes}
    return Quarantined({name: quarantine_of(report) for name, report in reports.items()}, limit)


def _outdated(observed: Observed, goals: Mapping[str, Goal], job: JobSettings) -> dict[str, tuple[str, str]]:
    """What runs, and what would."""
    pairs = {}
    for name, goal in goals.items():
        app = observed.writers.get(name, WriterSeen()).application
        if app is not None and app.image and goal.plan is not None:
            pairs[name] = (app.image, goal.plan.stream.spec.kubernetes.image or job.image)
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _events(observed: Observed, findings: Findings) -> tuple[Emit, ...]:
    """What is said of the LakeStream as a whole."""
    return (*_spec_events(observed, findings.problems), *_quarantine_events(observed, findings.quarantine))


def _spec_events(observed: Observed, problems: str) -> tuple[Emit, ...]:
    """Say once of a spec that it is invalid."""
    status = observed.stream.status
    known = bool(
        status
        and status.observed_generation == observed.stream.generation
        and any(one.reason == "Invalid" for one in status.conditions)
    )
    return (Emit("SpecInvalid", problems, warning=True),) if problems and not known else ()


def _quarantine_events(observed: Observed, quarantine: Quarantined) -> tuple[Emit, ...]:
    """Say once of a writer that it keeps much in quarantine."""
    status, bad = observed.stream.status, quarantine.too_much
    kinds = [one.type for one in status.conditions if one.status is ConditionStatus.TRUE] if status else []
    if ConditionType.QUARANTINING in kinds:
        return ()
    return tuple(Emit("Quarantining", tell_of(name, one), warning=True) for name, one in bad.items())


def _delete(observed: Observed, job: JobSettings, now: datetime, timings: Timings) -> Decision:
    """Drain all drivers, and let the LakeStream go when they are gone; Kubernetes deletes the rest, by owner."""
    stream = observed.stream
    goals = {
        name: Goal(stream.namespace, WriterNames(stream.name, name), None, Stop.DELETED) for name in observed.writers
    }
    outcomes = _outcomes(observed, goals, now, timings)
    stopped = all(one.situation is Situation.STOPPED for one in outcomes.values())
    refusal = _refusal(observed)
    if stopped:
        actions: dict[str, tuple[Action, ...]] = {"": _last(observed)} if stream.finalizing else {}
    else:
        actions = _actions(observed, job, goals, outcomes, {}, {})
    findings = Findings(
        _shown(observed, outcomes, goals), {}, "", suspended=False, rolled_back=frozenset(), refusal=refusal
    )
    return Decision(
        actions=_allowed(observed, actions, now),
        status=status_of(observed, findings, now, timings) if refusal or not stopped else None,
        wake_at=_wake_at(observed, outcomes, now, now + timings.resync),
        scaling={},
    )


def _last(observed: Observed) -> tuple[Action, ...]:
    """What is done when nothing runs any more. It is said first: then there is nothing left to say it of."""
    kept = () if "" in observed.refusals else (_kept(observed),)
    return (*kept, Finalize(present=False))


def _kept(observed: Observed) -> Emit:
    wanted, _ = _read(observed)
    if wanted is None:
        return Emit("DataKept", "All drivers have ended. Tables and checkpoints stay where they are.")
    paths = ", ".join(writer.output.path for writer in wanted.stream.spec.writers)
    return Emit(
        "DataKept",
        f"All drivers have ended. The data stays: {paths}; so does the checkpoint, {wanted.stream.spec.checkpoint},"
        " from which a LakeStream of the same name goes on.",
    )
