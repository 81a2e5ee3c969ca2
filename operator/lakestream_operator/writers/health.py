"""Whether a driver that runs does what it should: told by its progress, not by its pod."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakestream_api import DriverState, format_duration
from lakestream_operator.autoscaler import LimitReason
from lakestream_operator.model import Application, DriverPod, Memory, PodPhase, WriterSeen
from lakestream_operator.writers import timings
from lakestream_operator.writers.failures import Exit
from lakestream_operator.writers.outcome import Outcome, Situation

_SECOND = timedelta(seconds=1)
_AWAY = ("StorageUnavailable", "It goes on when the storage answers.")
_DENIED = ("AccessDenied", "It is tried again for five minutes, and goes on when it is allowed.")
"""Reason and prospect of a driver that waits before it starts."""


def heard_at(seen: WriterSeen, pod: DriverPod) -> datetime:
    """When the driver was heard of last; its start counts, by the clock that is later."""
    started = max(pod.started_at or pod.created_at, pod.created_at)
    report = seen.own_report
    return max(started, seen.reported_at or report.updated_at) if report else started


def seen_so(seen: WriterSeen, since: datetime, now: datetime) -> timedelta:
    """For how long nothing has changed about a driver, by what this process has seen itself: a clock may be wrong, and
    what is ended for it does not come back.

    Args:
        seen: the writer.
        since: the last change by times that others wrote down, for where nobody listens.
        now: the time.
    """
    return seen.heard.silent if seen.heard else now - since


def _silence(seen: WriterSeen, pod: DriverPod, now: datetime) -> timedelta:
    """For how long a driver has said nothing, to tell a person; others' times count where this process has not heard of
    it yet."""
    heard, by_times = seen.heard, now - heard_at(seen, pod)
    if heard is None:
        return by_times
    return heard.silent if heard.changed else max(heard.silent, by_times)


def is_stuck(seen: WriterSeen, pod: DriverPod | None, now: datetime) -> bool:
    """Whether a running driver has been silent for so long that only a restart helps."""
    if pod is None or pod.deleting or pod.phase is not PodPhase.RUNNING:
        return False
    return seen_so(seen, heard_at(seen, pod), now) > timings.stuck_limit(seen.own_report)


def judge(app: Application, pod: DriverPod | None, seen: WriterSeen, memory: Memory, now: datetime) -> Outcome:
    """Say how a driver is that should run, and is not stuck."""
    if pod is None:
        return _without_pod(app, memory, now)
    if (hangs := deletion_hangs(pod, memory, now)) is not None:
        return hangs
    if pod.deleting:
        message = "The driver's pod is being deleted; it is started again when it is gone."
        return Outcome(Situation.STALLED, "DriverPodDeleted", memory, message)
    if pod.phase is PodPhase.PENDING:
        return _pending(pod, memory, now)
    if pod.phase is PodPhase.UNKNOWN:
        message = f"The node of pod {pod.name} does not answer; if it is lost for good, delete the node."
        return Outcome(Situation.STALLED, "NodeLost", memory, message)
    return _alone(seen, memory, now) or _by_its_word(pod, seen, memory, now)


def _by_its_word(pod: DriverPod, seen: WriterSeen, memory: Memory, now: datetime) -> Outcome:
    """What is said of a driver whose process runs."""
    report = seen.own_report
    silence = _silence(seen, pod, now)
    if silence > timings.late_limit(report):
        message = (
            f"The driver has said nothing for {format_duration(silence - silence % _SECOND)};"
            f" it is restarted after {format_duration(timings.stuck_limit(report))}. See the log of pod {pod.name}."
        )
        return Outcome(Situation.STALLED, "NoProgress", memory, message)
    if report is not None and report.failure is not None and report.state is DriverState.STARTING:
        reason, prospect = _DENIED if report.failure.exit == Exit.PERMANENT else _AWAY
        return Outcome(Situation.STALLED, reason, memory, f"{report.failure.message.rstrip('.')}. {prospect}")
    if seen.unreadable:
        message = (
            f"What the driver says of itself cannot be read ({seen.unreadable}), and it is left as it is. Its next"
            " report takes the place of one that was changed by hand; else operator and image are of releases too far"
            " apart."
        )
        return Outcome(Situation.STALLED, "ReportUnreadable", memory, message)
    if report is None or not report.has_worked:
        since = pod.started_at or pod.created_at
        message = f"The driver has run since {since:%T} UTC and has not committed a batch yet."
        return Outcome(Situation.STARTING, "DriverStarting", memory, message)
    return Outcome(Situation.RUNNING, "Running", memory, ran=True)


def _alone(seen: WriterSeen, memory: Memory, now: datetime) -> Outcome | None:
    """What is said of a driver none of whose executors starts; none: there are some, or they may be on their way. If it
    says nothing any more, that is why."""
    report, since = seen.own_report, seen.pending_since
    if report is None or report.failure is not None or report.executors.registered:
        return None
    if since is None or now - since <= timings.START:
        return None
    why = seen.pending_for or "the events of their pods say why"
    message = f"The driver has no executor. Their pods have waited since {since:%T} UTC: {why}."
    return Outcome(Situation.STALLED, LimitReason.RESOURCE_STARVED.value, memory, message)


def deletion_hangs(pod: DriverPod, memory: Memory, now: datetime) -> Outcome | None:
    """What is said of a pod that should have been gone for long; none: it may still be on its way."""
    if pod.deleting_since is None or now - pod.deleting_since <= timings.DELETION:
        return None
    if pod.ended and pod.finalizers:
        message = (
            f"Pod {pod.name} has ended, should have been gone at {pod.deleting_since:%F %T} UTC, and is kept by its"
            f" finalizers: {', '.join(pod.finalizers)}. See whether who put them there runs."
        )
        return Outcome(Situation.STALLED, "DeletionHangs", memory, message)
    message = (
        f"Pod {pod.name} should have been gone at {pod.deleting_since:%F %T} UTC; until it is, its driver may"
        " still write, and no other is started. If its node is lost for good, delete the node."
    )
    return Outcome(Situation.STALLED, "DeletionHangs", memory, message)


def _without_pod(app: Application, memory: Memory, now: datetime) -> Outcome:
    if app.state == "" and now - app.created_at > timings.SUBMISSION:
        message = (
            "The Spark Operator has not submitted the SparkApplication yet; see whether it runs, and has the CPU for"
            " that, and whether its spark.jobNamespaces include this namespace."
        )
        return Outcome(Situation.STALLED, "SparkOperatorSilent", memory, message)
    if app.held:
        message = (
            "Its SparkApplication is suspended (spec.suspend), and was as it was made: something suspends each one (a"
            " queue, an admission policy); have it leave those of LakeStreams alone, and delete this one."
        )
        return Outcome(Situation.STALLED, "SparkApplicationSuspended", memory, message)
    message = "The driver's pod is being created."
    return Outcome(Situation.STARTING, "Submitting", memory, message)


def _pending(pod: DriverPod, memory: Memory, now: datetime) -> Outcome:
    if now - pod.created_at <= timings.START:
        return Outcome(Situation.STARTING, "DriverPending", memory, "The driver's pod starts.")
    why = pod.message or "its events say why, as of a volume's Secret or ConfigMap that is missing"
    return Outcome(Situation.STALLED, "DriverPending", memory, f"Pod {pod.name} does not start: {why}")
