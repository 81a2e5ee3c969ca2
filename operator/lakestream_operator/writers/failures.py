"""Drivers that ended without being asked to: of what kind, and when to start the next one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from lakestream_operator.model import Application, DriverPod, WriterSeen
from lakestream_operator.writers.timings import Timings


class Exit(IntEnum):
    """Exit statuses of a driver: the data plane's wire format towards whoever starts it."""

    ENDED = 0
    FAILED = 1
    SETTINGS = 2
    PERMANENT = 3
    FENCED = 4
    DATA_LOSS = 5
    STORAGE = 6
    STREAM_RECREATED = 7
    CHECKPOINT_GONE = 8
    TABLE_GONE = 9
    KILLED = 137


@dataclass(frozen=True, slots=True)
class Failure:
    """The kind of an ending."""

    reason: str
    """For conditions and events."""
    advice: str
    """What a person can do, as a sentence to follow the driver's own."""
    retry_after: timedelta | None
    """None: only another document helps."""


_TRY_AGAIN = (
    "Change the spec or, to try again as it is, annotate the LakeStream with lakestream.dev/restart=<anything>."
)


_A_PERSON_DECIDES: dict[int, str] = {
    Exit.SETTINGS: "SettingsRefused",
    Exit.DATA_LOSS: "DataLoss",
    Exit.STREAM_RECREATED: "StreamRecreated",
    Exit.CHECKPOINT_GONE: "CheckpointGone",
    Exit.TABLE_GONE: "TableGone",
}
"""Reasons of what another try would not change, or would change for the worse."""


def failure_of(exit_status: int | None, failures: int, timings: Timings) -> Failure:
    """The kind of an ending that was the last of so many in a row; without a status the driver's pod was lost."""
    backoff = _backoff(failures, timings)
    match exit_status:
        case int() if exit_status in _A_PERSON_DECIDES:
            return Failure(_A_PERSON_DECIDES[exit_status], _TRY_AGAIN, None)
        case Exit.PERMANENT:
            return Failure("PermanentError", "It is tried again every 10 minutes.", timings.permanent_retry)
        case Exit.FENCED:
            advice = "Make sure that nothing else writes with the same checkpoint."
            return Failure("Fenced", advice, timings.fenced_retry)
        case Exit.ENDED:
            advice = "Something sent it SIGTERM, as the drain of a node does."
            return Failure("DriverEnded", advice, timings.first_retry)
        case Exit.STORAGE:
            advice = "See whether the storage of the tables and the checkpoint answers, and lets the driver in."
            return Failure("StorageUnavailable", advice, min(backoff, timings.storage_retry))
        case Exit.KILLED:
            advice = "If it ran out of memory, raise resources.driver.memory or kubernetes.driver.memoryOverhead."
            return Failure("DriverKilled", advice, backoff)
        case None:
            return Failure("DriverLost", "See the SparkApplication's events.", backoff)
        case _:
            return Failure("DriverFailed", "See the log of the driver's pod.", backoff)


def deleted_failure(timings: Timings) -> Failure:
    """Somebody wanted the pod to be gone: that its driver was killed in the end says nothing about it."""
    return Failure("DriverPodDeleted", "A person did it, or the drain of its node.", timings.first_retry)


def submission_failure(failures: int, timings: Timings) -> Failure:
    """The Spark Operator could not even create a driver's pod."""
    return Failure("SubmissionFailed", "See the SparkApplication's events.", _backoff(failures, timings))


def stuck_failure(failures: int, timings: Timings) -> Failure:
    """The driver said nothing for too long."""
    return Failure("NoProgress", "See the log of the driver's pod.", _backoff(failures, timings))


def _backoff(failures: int, timings: Timings) -> timedelta:
    doubled = 1 << min(max(failures - 1, 0), 16)
    return min(timings.first_retry * doubled, timings.last_retry)


def own_pod(app: Application, seen: WriterSeen) -> DriverPod | None:
    """The driver's pod, if it is that of this application and not one that was before it."""
    pod = seen.driver_pod
    return pod if pod and pod.application_uid in ("", app.uid) else None
