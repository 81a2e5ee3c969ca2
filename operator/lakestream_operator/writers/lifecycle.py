"""From where a writer is to where it should be: one step per cycle, decided from what is seen alone.

    no application ──create──▶ driver starts ──▶ runs ──(other document, suspend, …)──▶ drains ──▶ application deleted
          ▲                         │             │                                                         │
          │                         └─(ends, or is silent)─▶ waits ──▶ application deleted                  │
          └──────────────────────────── driver's pod is gone ◀──────────────────┴───────────────────────────┘

A SparkApplication is created only when no driver's pod is there, and the pod's name is the same each time: the API
server itself lets no two drivers of a writer be.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from lakestream_api import DriverReport, DriverState, format_duration
from lakestream_operator.model import (
    Application,
    Delete,
    Drain,
    DriverPod,
    Emit,
    Ending,
    Kind,
    Memory,
    PodPhase,
    Reference,
    WriterSeen,
)
from lakestream_operator.render import is_restart
from lakestream_operator.writers import timings
from lakestream_operator.writers.endings import after_end, can_go_back, edited, end_stuck, has_drifted, reject, remaking
from lakestream_operator.writers.failures import Exit
from lakestream_operator.writers.health import deletion_hangs, is_stuck, judge, seen_so
from lakestream_operator.writers.outcome import Goal, Outcome, Situation, Stop


def decide_writer(goal: Goal, seen: WriterSeen, now: datetime) -> Outcome:
    """The next step of one writer."""
    app = seen.application
    if app is None:
        return _without_application(goal, seen, now)
    if app.deleting_since is not None:
        message = "Its SparkApplication and the driver's pod are being deleted."
        if now - app.deleting_since > timings.DELETION:
            message = (
                f"SparkApplication {goal.names.application} was deleted at {app.deleting_since:%F %T} UTC, and is kept"
                f" by its finalizers: {', '.join(app.finalizers) or 'none'}. See whether who put them there runs."
            )
            return Outcome(Situation.STALLED, "DeletionHangs", seen.memory, message)
        return Outcome(Situation.STOPPING, _why(goal, seen), seen.memory, message)
    if _has_ended(app, seen, now):
        return after_end(goal, app, seen, now)
    stop = _stop_reason(goal, app, seen, now)
    if stop is Stop.DRIFTED:
        seen = replace(seen, memory=remaking(seen.memory, app, now))
    if stop is not None:
        return _stop(goal, app, stop, seen, now)
    return _keep(goal, app, seen, now)


def _why(goal: Goal, seen: WriterSeen) -> str:
    if goal.stop is not None:
        return goal.stop.value
    return seen.memory.drain.reason if seen.memory.drain else "Restarting"


def _without_application(goal: Goal, seen: WriterSeen, now: datetime) -> Outcome:
    pod, memory = seen.driver_pod, seen.memory
    if pod is not None:
        if (hangs := deletion_hangs(pod, memory, now)) is not None:
            return hangs
        message = f"Waiting for pod {pod.name} of the last driver to be gone."
        orphan = not pod.deleting and now - pod.created_at > timings.ORPHAN
        actions = (Delete(Reference(Kind.Pod, goal.namespace, pod.name), pod.uid),) if orphan else ()
        return Outcome(Situation.STOPPING, _why(goal, seen), memory, message, actions)
    if goal.plan is None:
        reason = goal.stop.value if goal.stop else "Stopped"
        rest = Memory(rejected=memory.rejected)
        return Outcome(Situation.STOPPED, reason, rest, wake_at=now + timings.IDLE_RESYNC)
    started = memory.model_copy(update={"drain": None, "podless_since": None})
    event = Emit("Starting", f"Starting writer {goal.names.writer} as SparkApplication {goal.names.application}.")
    return Outcome(
        Situation.STARTING, "Starting", started, "Its SparkApplication is being created.", (event,), start=True
    )


def _has_ended(app: Application, seen: WriterSeen, now: datetime) -> bool:
    """Whether there is no driver any more, be it the Spark Operator that says so or the pod itself."""
    pod, since = seen.own_pod, seen.memory.podless_since
    if pod is not None:
        return pod.ended
    return app.terminal or (since is not None and now - since > timings.PODLESS)


def _stop_reason(goal: Goal, app: Application, seen: WriterSeen, now: datetime) -> Stop | None:
    if goal.plan is None:
        return goal.stop
    if app.fingerprint != goal.plan.fingerprint:
        if goal.went_back:
            return Stop.ROLLED_BACK
        return Stop.RESTART if is_restart(seen.document, goal.plan.document) else Stop.CHANGED
    return Stop.DRIFTED if has_drifted(app, seen.memory, now) else None


def _stop(goal: Goal, app: Application, stop: Stop, seen: WriterSeen, now: datetime) -> Outcome:
    """End a driver on purpose: ask it to end after the batch in hand, if it has one, and then delete its
    SparkApplication."""
    pod, report, writer, ended = seen.own_pod, seen.own_report, goal.names.writer, "Its driver is ended."
    memory = _asked(seen.memory, stop, pod, now)
    # A driver that has not taken over has nothing in hand, and SIGTERM ends it in order too.
    is_idle = not seen.unreadable and (report is None or report.epoch is None)
    if pod is None or pod.deleting or pod.phase is PodPhase.PENDING or is_idle:
        event = _said(stop, f"Stopping writer {writer}, which has no batch in hand.")
        return goal.deleting(app, stop.value, memory, ended, event)
    if report is not None and report.state is DriverState.DRAINED:
        event = Emit("Drained", f"Writer {writer} has ended its batch.")
        return goal.deleting(app, stop.value, seen.memory, ended, event)
    if goal.unheard:
        event = Emit(
            "DrainRefused",
            f"The driver of writer {writer} cannot be told to end, since that is refused; its pod is deleted, and"
            " SIGTERM ends it after the batch in hand. One that is cut off is written again, exactly once.",
            warning=True,
        )
        return goal.deleting(app, stop.value, memory, ended, event)
    assert memory.drain is not None  # there is a pod
    limit = timings.drain_limit(report)
    if now - memory.drain.since > limit:
        event = Emit(
            "DrainTimedOut",
            f"The driver of writer {writer} did not end its batch within {format_duration(limit)}; its pod is deleted."
            " The next driver writes the batch again, exactly once.",
            warning=True,
        )
        return goal.deleting(app, stop.value, memory, ended, event)
    event = _said(stop, f"Draining writer {writer}: its driver ends after the batch in hand.")
    message = f"The driver ends the batch in hand; it has {format_duration(limit)} for it."
    actions = (event,) if memory.drain != seen.memory.drain else ()
    wake_at = min(now + timings.RESYNC, memory.drain.since + limit)
    return Outcome(Situation.DRAINING, stop.value, memory, message, actions, wake_at=wake_at)


def _said(stop: Stop, what: str) -> Emit:
    return edited(what) if stop is Stop.DRIFTED else Emit(stop.value, what)


def _asked(memory: Memory, stop: Stop, pod: DriverPod | None, now: datetime) -> Memory:
    """The memory with a request to this driver to drain; one that was made already stays."""
    if pod is None or (memory.drain and memory.drain.pod_uid == pod.uid):
        return memory
    drain = Drain(id=f"{stop.value}-{pod.uid}", pod_uid=pod.uid, since=now, reason=stop.value)
    return memory.model_copy(update={"drain": drain})


def _keep(goal: Goal, app: Application, seen: WriterSeen, now: datetime) -> Outcome:
    """Leave a driver running that should run; restart one that does nothing."""
    pod = seen.own_pod
    if is_stuck(seen, pod, now):
        return end_stuck(goal, app, seen, now)
    pends = pod is not None and pod.phase is PodPhase.PENDING
    if pod and pends and seen_so(seen, pod.created_at, now) > timings.NEVER_STARTED and can_go_back(goal, app):
        return reject(goal, app, seen, f"Its pod never started: {pod.message}")
    report, drain = seen.own_report if pod else None, seen.memory.drain
    # A driver that follows a request will end, even if the request is taken back.
    followed = drain is not None and report is not None and report.drain == drain.id
    update = {"drain": drain if followed else None, "podless_since": _podless_since(app, seen, now)}
    memory = seen.memory.model_copy(update=update)
    outcome = judge(app, pod, seen, memory, now)
    if outcome.situation is Situation.RUNNING and memory.failures and _is_over(memory.ending, app, report):
        event = Emit("Recovered", f"Writer {goal.names.writer} runs well again.")
        forgotten = memory.model_copy(update={"failures": 0, "ending": None})
        return replace(outcome, memory=forgotten, actions=(event,))
    ending = memory.ending
    if outcome.situation is Situation.RUNNING and ending and not ending.over and ending.application_uid != app.uid:
        over = ending.model_copy(update={"over": True})
        return replace(outcome, memory=memory.model_copy(update={"ending": over}))
    return outcome


def _podless_since(app: Application, seen: WriterSeen, now: datetime) -> datetime | None:
    """Since when the pod is missing; a new SparkApplication has some time before anyone counts."""
    if seen.own_pod is not None or app.state == "" or app.held or now - app.created_at < timings.PODLESS:
        return None
    return seen.memory.podless_since or now


def _is_over(ending: Ending | None, app: Application, report: DriverReport | None) -> bool:
    """Whether a driver that commits batches will go on so: what was missing was the storage, what failed had another
    document, or it has for long."""
    if ending is not None and (ending.exit == Exit.STORAGE or ending.fingerprint != app.fingerprint):
        return True
    return report is not None and report.updated_at - report.started_at > timings.GOOD_RUN
