"""The decision of one cycle: from what is wanted and seen of a LakeStream to what is done. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from lakestream_api import InvalidDocumentError, LakeStreamStatus, QuarantineStatus, WriterNames, format_duration
from lakestream_operator.autoscaler import ScalingState, ShardState
from lakestream_operator.changes import REPLACED, changes_for
from lakestream_operator.claims import places_of
from lakestream_operator.conditions import Findings
from lakestream_operator.executors import asking, kept_away, scale
from lakestream_operator.model import Action, Create, Emit, Finalize, Kind, Observed, Refusal, Stream, WriterSeen
from lakestream_operator.observer import kept_since
from lakestream_operator.quarantine import quarantine_of, tell_of
from lakestream_operator.quotas import in_the_way, is_short, quotas_of
from lakestream_operator.render import Plan, Wanted, executor_needs, plan_of, scaling_of, settings_hash, wanted_of
from lakestream_operator.resharding import reshard
from lakestream_operator.settings import JobSettings
from lakestream_operator.status import status_of
from lakestream_operator.upkeep import Failing, failing
from lakestream_operator.writers import Goal, Outcome, Situation, Stop, WriterDecision, decide_writer, timings

_INVALID, _POISONED = "invalid", "poisoned"
"""What there may be to say of a LakeStream as a whole."""
_WAITS_FOR_US = (Situation.STARTING, Situation.STALLED, Situation.DRAINING, Situation.STOPPING, Situation.STOPPED)
"""Situations that last as long as what is to be done is refused."""
_OVER = 0.8
"""Of `warnFraction`: a share below it is no more one that is above that one now and then."""
_QUIET = timedelta(minutes=10)
"""That something has not been so before it is said anew."""
_ENDS = (Situation.DRAINING, Situation.STOPPING, Situation.STOPPED)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a decision on a LakeStream leaves for the next one of the same process."""

    scaling: Mapping[str, ScalingState] = field(default_factory=dict)
    """What the autoscaler remembers of each writer."""
    shards: ShardState | None = None
    """What it remembers of the stream's shards."""
    bound: Mapping[str, datetime] = field(default_factory=dict)
    """When a writer was taken from another operator's role last, for a while."""
    told: Mapping[str, datetime] | None = None
    """What was said of the LakeStream as a whole, and when it was last so; none after the start: then the status
    tells."""
    poisoned: frozenset[str] | None = None
    """Writers that kept much in quarantine; none likewise."""


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
    remembered: Remembered
    """For the next decision, once all of this is done."""
    resharding: str = ""
    """The writer whose driver is told of the stream's shards; empty: none is."""

    @property
    def starts(self) -> bool:
        """Whether a driver is asked for."""
        return any(isinstance(one, Create) for some in self.actions.values() for one in some)


def decide(
    observed: Observed,
    job: JobSettings,
    now: datetime,
    remembered: Remembered = Remembered(),
) -> Decision:
    """The next step for one LakeStream.

    Args:
        observed: what is seen of it.
        job: how drivers are made.
        now: the time of this cycle, read once.
        remembered: what the last decision has left.
    """
    stream = observed.stream
    wanted, problems = (None, "") if stream.deleting else _read(observed)
    observed = _recalled(observed, wanted, now)
    # Without the finalizer nothing is made: a LakeStream that is deleted in between would leave a driver undrained.
    begun = stream.finalizing or stream.deleting
    goals = _goals(observed, wanted) if begun else {}
    writers = {name: _decide_writer(observed, wanted, goal, job, remembered, now) for name, goal in goals.items()}
    poisoned = _poisoned(observed, wanted, writers, remembered.poisoned)
    findings = _findings(observed, wanted, problems if begun else "", writers, poisoned, now)
    actions = {name: tuple(changes_for(stream, one, job)) for name, one in writers.items()}
    news = _news(stream, findings)
    told = dict.fromkeys(_said_before(observed, news), now) if remembered.told is None else remembered.told
    if ended := stream.deleting and all(one.outcome.situation is Situation.STOPPED for one in writers.values()):
        actions = {"": _last(observed)} if stream.finalizing else {}
        if not stream.finalizing:
            # Figures of writers that are gone would grow.
            findings = Findings(let_go=_let_go(stream), refusal=findings.refusal)
    else:
        actions[""] = tuple(news[one] for one in news if one not in told) if begun else (Finalize(present=True),)
    # Else there is nothing to say but that this is refused, or that others keep it.
    shown = (begun and not ended) or findings.refusal or findings.let_go
    allowed = _allowed(observed, actions, now)
    return Decision(
        actions=allowed,
        status=status_of(stream, findings, now) if shown else None,
        wake_at=_wake_at(observed, writers, now),
        remembered=Remembered(
            scaling={name: one.scale.state for name, one in writers.items() if one.scale},
            shards=next((one.shards.state for one in writers.values() if one.shards), None),
            bound=_bound(remembered.bound, allowed, now),
            told=_told(told, news, allowed.get("", ()), now),
            poisoned=frozenset(findings.poisoned),
        ),
        resharding=next((name for name, one in writers.items() if one.shards), ""),
    )


def _findings(
    observed: Observed,
    wanted: Wanted | None,
    problems: str,
    writers: Mapping[str, WriterDecision],
    poisoned: Mapping[str, QuarantineStatus],
    now: datetime,
) -> Findings:
    """What is told, from what was decided."""
    stream, refusal = observed.stream, observed.refusals.get("")
    begun = stream.finalizing or stream.deleting
    runs = [name for name, seen in observed.writers.items() if seen.application or seen.driver_pod]
    gone = [one for one in writers.values() if one.is_gone]
    return Findings(
        writers=_shown(observed, writers),
        problems=problems,
        unknown=wanted.unknown if wanted else (),
        left_alone=tuple(sorted(set(runs) - writers.keys())) if begun else (),
        kept=" ".join(filter(None, (kept_since(one.seen, now - timings.DELETION) for one in gone))),
        suspended=stream.suspended and begun and not stream.deleting,
        poisoned=poisoned,
        refusal=refusal if refusal and refusal.told else None,
    )


def _recalled(observed: Observed, wanted: Wanted | None, now: datetime) -> Observed:
    """With what is remembered of writers as it can be: by this clock, where it was deleted with the number of failures
    that the status has kept, and without a document that was given up, once another one is asked for."""
    status = observed.stream.status
    failures = {one.name: one.restarts for one in status.writers} if status else {}
    writers = {}
    for name, seen in observed.writers.items():
        memory = seen.memory.by(now, timings.PERMANENT_RETRY)
        if (Kind.ConfigMap, WriterNames(observed.stream.name, name).control) not in seen.objects:
            memory = memory.model_copy(update={"failures": failures.get(name, 0)})
        plan = wanted.plans.get(name) if wanted else None
        if plan and memory.rejected != plan.fingerprint:
            memory = memory.model_copy(update={"rejected": None})
        writers[name] = replace(seen, memory=memory)
    return replace(observed, writers=writers)


def _read(observed: Observed) -> tuple[Wanted | None, str]:
    """The spec, or else what is wrong with it."""
    if observed.contested:
        return None, observed.contested
    try:
        return wanted_of(observed.stream), ""
    except InvalidDocumentError as error:
        return None, " ".join(f"{one}." for one in error.problems)


def _goals(observed: Observed, wanted: Wanted | None) -> dict[str, Goal]:
    """Of the writers that the spec has, and of those that there are objects of."""
    names = dict.fromkeys([*(wanted.plans if wanted else ()), *observed.writers])
    goals = {name: _goal(observed, wanted, name) for name in names}
    return {name: goal for name, goal in goals.items() if goal is not None}


def _goal(observed: Observed, wanted: Wanted | None, name: str) -> Goal | None:
    """None: nobody knows, nor did anybody before."""
    stream, seen, goal = observed.stream, observed.seen(name), partial(Goal, observed.stream.namespace)
    names = WriterNames(stream.name, name)
    if stream.deleting:
        refusal = observed.refusals.get(name)
        return goal(names, None, Stop.DELETED, unheard=refusal is not None and refusal.lasts)
    if wanted is not None and name not in wanted.plans:
        return goal(names, None, Stop.REMOVED)
    if observed.stream.suspended:
        return goal(names, None, Stop.SUSPENDED)
    if wanted is None:
        # With a spec that says nothing sensible, what was wanted before goes on.
        before = _known(seen.document)
        return goal(names, before) if before and (seen.has_driver or _is_free(before, observed)) else None
    plan, good = wanted.plans[name], _known(seen.good) if wanted.stream.spec.rollback else None
    if good is not None and not _is_free(good, observed):
        good = None
    rejected = good is not None and seen.memory.rejected == plan.fingerprint
    return goal(names, good if rejected else plan, rollback=good, went_back=rejected)


def _is_free(plan: Plan, observed: Observed) -> bool:
    """Whether nobody else has what a driver with that plan would write."""
    return observed.taken.isdisjoint(place.folder for place in places_of(plan.stream))


def _known(document: str | None) -> Plan | None:
    """The plan of a document that was written earlier, if this operator can still read it."""
    try:
        return plan_of(document) if document else None
    except InvalidDocumentError:
        return None


def _decide_writer(
    observed: Observed,
    wanted: Wanted | None,
    goal: Goal,
    job: JobSettings,
    remembered: Remembered,
    now: datetime,
) -> WriterDecision:
    """What becomes of one writer, and of its executors; of the first one also: of the stream's shards."""
    name, plan, seen = goal.names.writer, goal.plan, observed.seen(goal.names.writer)
    outcome = decide_writer(goal, seen, now)
    services = (*_failing(observed.refusals.get(name), seen, outcome), *_edited(goal, seen, outcome))
    bound_at = remembered.bound.get(name)
    rebound = bound_at is not None and abs(now - bound_at) < timings.REBINDING
    decision = WriterDecision(goal, seen, outcome, failing=services, rebound=rebound)
    if plan is None:
        return decision
    image = plan.stream.spec.kubernetes.image or job.image
    decision = replace(decision, wanted_image=image, wanted_settings=settings_hash(plan, job))
    bounds = wanted.stream.spec.scaling if wanted else scaling_of(observed.stream)
    if bounds is None:
        return decision
    beside = len(observed.writers) if wanted is None else asking(wanted.plans.values())
    consumers = max(1, beside) if asking([plan]) else 0
    scaled = scale(bounds, plan, consumers, seen, remembered.scaling.get(name), now)
    short = observed.quotas and is_short(seen)
    why = in_the_way(quotas_of(observed.quotas), executor_needs(plan)) if short else ""
    decision = replace(decision, scale=kept_away(scaled, seen, why, now))
    if wanted is None or name != wanted.stream.spec.writers[0].name:
        return decision
    return replace(decision, shards=reshard(wanted.stream.spec, seen, remembered.shards, now))


def _allowed(
    observed: Observed, actions: Mapping[str, tuple[Action, ...]], now: datetime
) -> dict[str, tuple[Action, ...]]:
    """Without what was refused a moment ago."""
    asked = observed.stream.asked
    held = {name for name, one in observed.refusals.items() if one.holds(asked, now)}
    return {name: some for name, some in actions.items() if some and name not in held}


def _bound(
    before: Mapping[str, datetime], actions: Mapping[str, tuple[Action, ...]], now: datetime
) -> dict[str, datetime]:
    """When writers were taken from another operator's role last, as they are now."""
    taken = [
        name for name, some in actions.items() if any(isinstance(one, Emit) and one.reason == REPLACED for one in some)
    ]
    return {**before, **dict.fromkeys(taken, now)}


def _wake_at(observed: Observed, writers: Mapping[str, WriterDecision], now: datetime) -> datetime:
    times = [one.outcome.wake_at or now + timings.RESYNC for one in writers.values()]
    times += [one.retry_at for one in observed.refusals.values() if one.retry_at > now]
    return min(times, default=now + timings.IDLE_RESYNC)


def _shown(observed: Observed, writers: Mapping[str, WriterDecision]) -> dict[str, WriterDecision]:
    """Writers as they can be, for what has to be done may have been refused; without those that are gone."""
    shown = {name: one for name, one in writers.items() if not one.is_gone}
    for name, refusal in observed.refusals.items():
        if refusal.told and name in shown and shown[name].outcome.situation in _WAITS_FOR_US:
            stalled = replace(
                shown[name].outcome, situation=Situation.STALLED, reason=refusal.reason, message=refusal.message
            )
            shown[name] = replace(shown[name], outcome=stalled)
    return shown


def _failing(refusal: Refusal | None, seen: WriterSeen, outcome: Outcome) -> tuple[Failing, ...]:
    """What a driver that runs tells of its table, for others' reports are of the past; and what was refused though
    nothing waits for it."""
    services = failing(seen.report) if seen.report and outcome.situation is Situation.RUNNING else ()
    if refusal is None or not refusal.told or outcome.situation in _WAITS_FOR_US:
        return services
    return (*services, Failing(refusal.reason, refusal.message))


def _edited(goal: Goal, seen: WriterSeen, outcome: Outcome) -> tuple[Failing, ...]:
    """That an application was edited, and is left so for now."""
    app = seen.application
    if app is None or app.generation == 1 or app.deleting_since or outcome.situation in _ENDS or goal.plan is None:
        return ()
    message = (
        f"SparkApplication {goal.names.application} was edited, as was the one before it, and is left so for now: one"
        f" is made anew every {format_duration(timings.REMAKING)} at most. Something edits each one (a queue, an"
        " admission policy): have it leave those of LakeStreams alone."
    )
    return (Failing(Stop.DRIFTED.value, message),)


def _poisoned(
    observed: Observed, wanted: Wanted | None, writers: Mapping[str, WriterDecision], before: frozenset[str] | None
) -> dict[str, QuarantineStatus]:
    """What writers keep in quarantine that keep more than is usual; who did so before, by the same spec, keeps less by
    some before that is over."""
    limit, status = wanted.stream.spec.quarantine.warn_fraction if wanted else 1.0, observed.stream.status
    if before is None:
        before = frozenset(writers) if observed.was_said("RecordsUnusable") else frozenset()
    if status is None or status.observed_generation != observed.stream.generation:
        before = frozenset()
    kept = {name: quarantine_of(one.seen.report) for name, one in writers.items()}
    return {name: one for name, one in kept.items() if one.share > limit * (_OVER if name in before else 1)}


def _told(
    before: Mapping[str, datetime], news: Mapping[str, Emit], taken: Iterable[Action], now: datetime
) -> dict[str, datetime]:
    """What was said by now, as long as it is so, and for a while after: what comes and goes is said once."""
    taken = tuple(taken)
    so = [one for one, event in news.items() if one in before or event in taken]
    return {one: at for one, at in before.items() if abs(now - at) < _QUIET} | dict.fromkeys(so, now)


def _news(stream: Stream, findings: Findings) -> dict[str, Emit]:
    """What is said once of the LakeStream as a whole, by what it is about: that this spec is invalid, or that a writer
    keeps much in quarantine."""
    news = {
        f"{_POISONED}/{one[0]}": Emit("Quarantining", tell_of(*one), warning=True) for one in findings.poisoned.items()
    }
    if findings.problems:
        news[f"{_INVALID}/{stream.generation}"] = Emit("SpecInvalid", findings.problems, warning=True)
    return news


def _said_before(observed: Observed, news: Iterable[str]) -> frozenset[str]:
    """What of it another process has said, by the status that it has left."""
    status = observed.stream.status
    seen = status is not None and status.observed_generation == observed.stream.generation
    said = {_INVALID: seen and observed.was_said("Invalid"), _POISONED: observed.was_said("RecordsUnusable")}
    return frozenset(one for one in news if said[one.split("/")[0]])


def _let_go(stream: Stream) -> str:
    """What is said of a LakeStream that is only there for others any more; empty: it is as good as gone."""
    others = ", ".join(stream.manifest["metadata"].get("finalizers", ()))
    if not others:
        return ""
    kept = f"All drivers have ended, and it is kept by the finalizers of others: {others}."
    return f"{kept} See whether who put them there runs."


def _last(observed: Observed) -> tuple[Action, ...]:
    """What is done when nothing runs any more. It is said first: then there is nothing left to say it of."""
    if "" in observed.refusals:
        return (Finalize(present=False),)
    wanted, _ = _read(observed)
    told = "Tables and checkpoints stay where they are."
    if wanted is not None:
        paths = ", ".join(writer.output.path for writer in wanted.stream.spec.writers)
        told = (
            f"The data stays: {paths}; so does the checkpoint, {wanted.stream.spec.checkpoint},"
            " from which a LakeStream of the same name goes on."
        )
    return (Emit("DataKept", f"All drivers have ended. {told}"), Finalize(present=False))
