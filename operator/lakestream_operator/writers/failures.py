"""Drivers that ended without being asked to: of what kind, and when to start the next one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from lakestream_operator.model import Application, DriverPod
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

_BY_SIGNALS = (None, Exit.ENDED, Exit.KILLED, 143)
"""Statuses of a driver whose pod is deleted: it has ended in order, or has not come to it."""


def failure_of(
    app: Application, pod: DriverPod | None, failures: int, timings: Timings, *, stuck: bool = False
) -> Failure:
    """The kind of an ending that was the last of so many in a row.

    Args:
        app: the SparkApplication.
        pod: its driver's; None: it is lost.
        failures: see above.
        timings: limits of patience.
        stuck: whether the driver said nothing for too long.
    """
    doubled = 1 << min(max(failures - 1, 0), 16)
    backoff = min(timings.first_retry * doubled, timings.last_retry)
    if stuck:
        return Failure("NoProgress", "See the log of the driver's pod.", backoff)
    if pod is None and not app.submitted:
        return Failure("SubmissionFailed", "See the SparkApplication's events.", backoff)
    if pod is not None and pod.deleting and pod.exit in _BY_SIGNALS:
        # Somebody wanted the pod to be gone: that its driver was killed in the end says nothing about it.
        return Failure("DriverPodDeleted", "A person did it, or the drain of its node.", timings.first_retry)
    return _by_status(pod.exit if pod else None, backoff, timings)


def _by_status(exit_status: int | None, backoff: timedelta, timings: Timings) -> Failure:
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
