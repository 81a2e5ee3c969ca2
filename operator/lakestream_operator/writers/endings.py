"""What follows when a driver has ended, or has to be ended, without being asked to."""

from __future__ import annotations

from datetime import datetime

from lakestream_api import format_duration
from lakestream_operator.model import Application, Delete, Emit, Ending, WriterSeen
from lakestream_operator.writers.failures import Exit, Failure, failure_of
from lakestream_operator.writers.outcome import Goal, Outcome, Situation
from lakestream_operator.writers.timings import Timings


def after_end(goal: Goal, app: Application, seen: WriterSeen, now: datetime, timings: Timings) -> Outcome:
    """Count the end of a driver once, wait, and clear the way for the next.

    The SparkApplication and the driver's pod with its log stay until then.
    """
    memory = seen.memory
    wanted = goal.plan is not None and goal.plan.fingerprint == app.fingerprint and app.generation == 1
    if not wanted or _was_asked(seen):
        reason = goal.stop.value if goal.stop else "SpecChanged"
        delete = (Delete(goal.application, app.uid),)
        return Outcome(Situation.STOPPING, reason, memory, "Its driver has ended.", delete)
    if memory.ending is None or memory.ending.application_uid != app.uid:
        return _count(goal, app, seen, now, timings)
    ending = memory.ending
    if ending.retry_at is None:
        return Outcome(Situation.BLOCKED, ending.reason, memory, ending.message, wake_at=now + timings.idle_resync)
    if now >= ending.retry_at:
        return _restart(goal, app, seen)
    return Outcome(Situation.BACKING_OFF, ending.reason, memory, ending.message, wake_at=ending.retry_at)


def _restart(goal: Goal, app: Application, seen: WriterSeen) -> Outcome:
    """Make room for the next driver."""
    ending = seen.memory.ending
    reason, message = (ending.reason, ending.message) if ending else ("Restarting", "")
    message = f"The next driver is started. {message}".rstrip()
    delete = (Delete(goal.application, app.uid),)
    return Outcome(Situation.STOPPING, reason, seen.memory, message, delete)


def end_stuck(goal: Goal, app: Application, seen: WriterSeen, now: datetime, timings: Timings) -> Outcome:
    """Count a driver that is silent like one that failed, and then end it."""
    ending = seen.memory.ending
    if ending is None or ending.application_uid != app.uid:
        return _count(goal, app, seen, now, timings, stuck=True)
    return _restart(goal, app, seen)


def reject(goal: Goal, app: Application, seen: WriterSeen, why: str, now: datetime) -> Outcome:
    """Give a document up that never got to run, for the one before it that did."""
    event = Emit("RolledBack", f"Writer {goal.names.writer} goes back to the last spec that ran. {why}", warning=True)
    memory = seen.memory.model_copy(update={"rejected": app.fingerprint, "failures": 0, "ending": None})
    return Outcome(Situation.STOPPING, "RolledBack", memory, event.message, (event,), wake_at=now)


def can_go_back(goal: Goal, app: Application) -> bool:
    """Whether there is another document that did run."""
    return goal.rollback is not None and goal.rollback.fingerprint != app.fingerprint


def _was_asked(seen: WriterSeen) -> bool:
    """Whether a request to drain was followed, though by now the driver would be wanted again."""
    pod, drain = seen.driver_pod, seen.memory.drain
    return bool(drain and pod and drain.pod_uid == pod.uid and pod.exit == Exit.ENDED)


def _count(
    goal: Goal, app: Application, seen: WriterSeen, now: datetime, timings: Timings, *, stuck: bool = False
) -> Outcome:
    pod, last = seen.own_pod, seen.memory.ending
    report = seen.own_report if pod else None
    # Without an ending the memory was lost, but for the number.
    same = last is None or last.fingerprint == app.fingerprint
    failures = seen.memory.failures + 1 if same else 1
    failure = failure_of(app, pod, failures, timings, stuck=stuck)
    ran = bool(report and report.has_worked) or bool(same and last and last.ran)
    ending = Ending(
        application_uid=app.uid,
        fingerprint=app.fingerprint,
        at=now,
        exit=pod.exit if pod else None,
        reason=failure.reason,
        message=_explain(app, seen, failure, timings),
        ran=ran,
        retry_at=None if failure.retry_after is None else now + failure.retry_after,
    )
    if can_go_back(goal, app) and not ran and _is_hopeless(ending, failures, timings):
        return reject(goal, app, seen, ending.message, now)
    memory = seen.memory.model_copy(update={"failures": failures, "ending": ending, "drain": None})
    event = Emit(failure.reason, f"Writer {goal.names.writer}: {ending.message}", warning=True)
    situation = Situation.BLOCKED if ending.retry_at is None else Situation.BACKING_OFF
    wake_at = ending.retry_at or now + timings.idle_resync
    return Outcome(situation, failure.reason, memory, ending.message, (event,), wake_at=wake_at)


def _is_hopeless(ending: Ending, failures: int, timings: Timings) -> bool:
    """Whether a document that has not run yet never will."""
    return ending.exit in (Exit.SETTINGS, Exit.PERMANENT) or failures >= timings.rejections


def _explain(app: Application, seen: WriterSeen, failure: Failure, timings: Timings) -> str:
    pod, report = seen.own_pod, seen.own_report
    said = pod.message if pod else ""
    if not said and pod and report and report.failure:
        said = report.failure.message
    if failure.reason == "NoProgress":
        said = f"The driver was silent for {format_duration(timings.stuck_limit(seen.report))}, and is restarted"
    if not said:
        said = app.message or ("The driver's pod is gone" if pod is None else "The driver ended without a word")
    if pod and pod.exit is not None:
        said = f"{said.rstrip('.')} (exit status {pod.exit})"
    return f"{said.rstrip('.')}. {failure.advice}"
