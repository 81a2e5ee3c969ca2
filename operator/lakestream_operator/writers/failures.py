"""Drivers that ended without being asked to: of what kind, and when to start the next one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from lakestream_operator.model import Application, DriverPod
from lakestream_operator.writers import timings


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


_TRY_AGAIN = (
    "Change the spec or, to try again as it is, annotate the LakeStream with lakestream.dev/restart=<anything>."
)
_SEE_EVENTS, _SEE_LOG = "See the SparkApplication's events.", "See the log of the driver's pod."


@dataclass(frozen=True, slots=True)
class Failure:
    """The kind of an ending."""

    reason: str
    """For conditions and events."""
    advice: str
    """What a person can do, as a sentence to follow the driver's own."""
    first: timedelta | None = timings.FIRST_RETRY
    """Until the next start; None: only another document helps."""
    last: timedelta = timings.LAST_RETRY
    """The longest that doubling it with each failure leads to."""
    by_document: bool = True
    """Whether what the driver was given may be why."""

    def retry_after(self, failures: int) -> timedelta | None:
        """Until the next start after so many in a row."""
        return None if self.first is None else min(self.first * (1 << min(max(failures - 1, 0), 16)), self.last)


_BY_STATUS: dict[int | None, Failure] = {
    # What another try would not change, or would change for the worse.
    Exit.SETTINGS: Failure("SettingsRefused", _TRY_AGAIN, None),
    Exit.DATA_LOSS: Failure("DataLoss", _TRY_AGAIN, None),
    Exit.STREAM_RECREATED: Failure("StreamRecreated", _TRY_AGAIN, None),
    Exit.CHECKPOINT_GONE: Failure("CheckpointGone", _TRY_AGAIN, None),
    Exit.TABLE_GONE: Failure("TableGone", _TRY_AGAIN, None),
    Exit.PERMANENT: Failure(
        "PermanentError", "It is tried again every 10 minutes.", timings.PERMANENT_RETRY, timings.PERMANENT_RETRY
    ),
    Exit.FENCED: Failure(
        "Fenced",
        "Make sure that nothing else writes with the same checkpoint.",
        timings.FENCED_RETRY,
        timings.FENCED_RETRY,
    ),
    Exit.ENDED: Failure(
        "DriverEnded",
        "Something sent it SIGTERM, as the drain of a node does.",
        last=timings.FIRST_RETRY,
        by_document=False,
    ),
    Exit.STORAGE: Failure(
        "StorageUnavailable",
        "See whether the storage of the tables and the checkpoint answers, and lets the driver in.",
        last=timings.STORAGE_RETRY,
        by_document=False,
    ),
    Exit.KILLED: Failure(
        "DriverKilled",
        "If it ran out of memory, raise resources.driver.memory or kubernetes.driver.memoryOverhead.",
    ),
    None: Failure("DriverLost", _SEE_EVENTS, by_document=False),
}
_OTHERWISE = Failure("DriverFailed", _SEE_LOG)
_DELETED = Failure(
    "DriverPodDeleted", "A person did it, or the drain of its node.", last=timings.FIRST_RETRY, by_document=False
)
_EVICTED = Failure(
    "DriverEvicted", "Its node has ended the pod: if that lacks something, give it more, or another node."
)

_BY_SIGNALS = (None, Exit.ENDED, Exit.KILLED, 143)
"""Statuses of a driver whose pod is deleted: it has ended in order, or has not come to it."""


def failure_of(app: Application, pod: DriverPod | None, *, stuck: bool = False) -> Failure:
    """The kind of an ending.

    Args:
        app: the SparkApplication.
        pod: its driver's; None: it is lost.
        stuck: whether the driver said nothing for too long.
    """
    if stuck:
        return Failure("NoProgress", _SEE_LOG)
    if pod is None and not app.submitted:
        return Failure("SubmissionFailed", _SEE_EVENTS)
    if pod is None:
        return _BY_STATUS[None]
    if pod.deleting and pod.exit in _BY_SIGNALS:
        # Somebody wanted the pod to be gone: that its driver was killed in the end says nothing about it.
        return _DELETED
    if pod.ended_for and pod.exit in _BY_SIGNALS:
        return _EVICTED
    return _OTHERWISE if pod.exit is None else _BY_STATUS.get(pod.exit, _OTHERWISE)
