"""What follows when a driver has ended, or has to be ended, without being asked to."""

from __future__ import annotations

from datetime import datetime

from lakestream_api import format_duration
from lakestream_operator.model import Application, Emit, Ending, Memory, Remade, WriterSeen
from lakestream_operator.render import is_restart
from lakestream_operator.writers import timings
from lakestream_operator.writers.failures import Exit, Failure, failure_of
from lakestream_operator.writers.outcome import Goal, Outcome, Situation, Stop


def after_end(goal: Goal, app: Application, seen: WriterSeen, now: datetime) -> Outcome:
    """Count the end of a driver once, wait, and clear the way for the next.

    The SparkApplication and the driver's pod with its log stay until then.
    """
    memory, ending = seen.memory, seen.memory.ending
    wanted = goal.plan is not None and goal.plan.fingerprint == app.fingerprint
    if wanted and has_drifted(app, memory, now):
        told = memory.remade is not None and memory.remade.application_uid == app.uid
        event = edited(f"The driver of writer {goal.names.writer} has ended.")
        reason, remade = Stop.DRIFTED.value, remaking(memory, app, now)
        return goal.deleting(app, reason, remade, "Its driver has ended.", *(() if told else (event,)))
    if not wanted or _was_asked(seen):
        reason = goal.stop.value if goal.stop else "SpecChanged"
        return goal.deleting(app, reason, memory, "Its driver has ended.")
    if ending is None or ending.application_uid != app.uid:
        return _count(goal, app, seen, now)
    if _is_given_up(goal, app, ending):
        # To go back was not asked for when it was counted, or could not be.
        return reject(goal, app, seen, ending.message)
    if ending.retry_at is not None and now >= ending.retry_at:
        return _restart(goal, app, memory, ending)
    return _wait(memory, ending, now)


def end_stuck(goal: Goal, app: Application, seen: WriterSeen, now: datetime) -> Outcome:
    """Count a driver that is silent like one that failed, wait as long, and then end it."""
    memory, ending = seen.memory, seen.memory.ending
    if ending is None or ending.application_uid != app.uid:
        return _count(goal, app, seen, now, stuck=True)
    if ending.retry_at is None or now >= ending.retry_at:
        return _restart(goal, app, memory, ending)
    return _wait(memory, ending, now)


def _restart(goal: Goal, app: Application, memory: Memory, ending: Ending) -> Outcome:
    """Make room for the next driver."""
    return goal.deleting(app, ending.reason, memory, f"The next driver is started. {ending.message}")


def _wait(memory: Memory, ending: Ending, now: datetime, *events: Emit) -> Outcome:
    """For the next start, or for another document."""
    situation = Situation.BLOCKED if ending.retry_at is None else Situation.BACKING_OFF
    wake_at = ending.retry_at or now + timings.IDLE_RESYNC
    return Outcome(situation, ending.reason, memory, ending.message, events, wake_at=wake_at)


def reject(goal: Goal, app: Application, seen: WriterSeen, why: str) -> Outcome:
    """Give a document up that never got to run, for the one before it that did."""
    event = Emit("RolledBack", f"Writer {goal.names.writer} goes back to the last spec that ran. {why}", warning=True)
    memory = seen.memory.model_copy(update={"rejected": app.fingerprint, "failures": 0, "ending": None})
    return Outcome(Situation.STOPPING, "RolledBack", memory, event.message, (event,))


def has_drifted(app: Application, memory: Memory, now: datetime) -> bool:
    """Whether an application is to be made anew since somebody has edited it: not, if another one just was."""
    last = memory.remade
    fresh = last is not None and last.application_uid != app.uid and now - last.at < timings.REMAKING
    return app.generation > 1 and not fresh


def remaking(memory: Memory, app: Application, now: datetime) -> Memory:
    """The memory, with an application that is made anew for that."""
    if memory.remade is not None and memory.remade.application_uid == app.uid:
        return memory
    return memory.model_copy(update={"remade": Remade(application_uid=app.uid, at=now)})


def edited(what: str) -> Emit:
    """Tells of it."""
    return Emit(
        Stop.DRIFTED.value,
        f"{what} Its SparkApplication was edited, and is made anew. If this is said again, something edits each one (a"
        " queue, an admission policy): have it leave those of LakeStreams alone.",
        warning=True,
    )


def can_go_back(goal: Goal, app: Application) -> bool:
    """Whether there is another document that did run, and that says something else: a restart alone changes nothing."""
    good, plan = goal.rollback, goal.plan
    if good is None or plan is None or good.fingerprint == app.fingerprint:
        return False
    return not is_restart(good.document, plan.document)


def _was_asked(seen: WriterSeen) -> bool:
    """Whether a request to drain was followed, though by now the driver would be wanted again: its own word counts
    where the request was taken back as it was read."""
    pod, drain, report = seen.driver_pod, seen.memory.drain, seen.own_report
    asked = (drain is not None and pod is not None and drain.pod_uid == pod.uid) or bool(report and report.drain)
    return asked and pod is not None and pod.exit == Exit.ENDED


def _count(goal: Goal, app: Application, seen: WriterSeen, now: datetime, *, stuck: bool = False) -> Outcome:
    pod, last = seen.own_pod, seen.memory.ending
    report = seen.own_report if pod else None
    # Without an ending the memory was lost, but for the number.
    same = last is None or last.fingerprint == app.fingerprint
    failures = seen.memory.failures + 1 if same else 1
    failure = failure_of(app, pod, stuck=stuck)
    pause = failure.retry_after(failures)
    before = last if same else None
    ran = bool(report and report.has_worked) or bool(before and before.ran)
    ending = Ending(
        application_uid=app.uid,
        fingerprint=app.fingerprint,
        at=now,
        exit=pod.exit if pod else None,
        reason=failure.reason,
        message=_explain(app, seen, failure),
        ran=ran,
        by_document=failure.by_document + (before.by_document if before else 0),
        retry_at=None if pause is None else now + pause,
    )
    if _is_given_up(goal, app, ending):
        return reject(goal, app, seen, ending.message)
    memory = seen.memory.model_copy(update={"failures": failures, "ending": ending, "drain": None})
    event = Emit(failure.reason, f"Writer {goal.names.writer}: {ending.message}", warning=True)
    return _wait(memory, ending, now, event)


def _is_given_up(goal: Goal, app: Application, ending: Ending) -> bool:
    """Whether a document has not run yet and never will, and there is another one that did."""
    hopeless = ending.exit in (Exit.SETTINGS, Exit.PERMANENT) or ending.by_document >= timings.REJECTIONS
    return hopeless and not ending.ran and can_go_back(goal, app)


def _explain(app: Application, seen: WriterSeen, failure: Failure) -> str:
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
