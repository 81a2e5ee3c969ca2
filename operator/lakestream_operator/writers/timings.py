"""How long things may take: limits of patience. Not settings: each follows from what it waits for."""

from __future__ import annotations

from datetime import timedelta

from lakestream_api import DriverReport

DRAIN = timedelta(minutes=5)
"""For the batch in hand, at least; then the driver's pod is deleted. A batch cut off is written again."""
STUCK = timedelta(minutes=10)
"""Without a report, at least; then the driver is restarted. Longer than a Hudi compaction that blocks a batch."""
LATE = timedelta(seconds=90)
"""Without a report, at least, until it is said that something is wrong."""
UNCHANGED = timedelta(seconds=45)
"""Between two reports of a driver that has nothing new to say, and some."""
START = timedelta(minutes=2)
"""From a pod's creation until it is said why it does not run."""
NEVER_STARTED = timedelta(minutes=10)
"""From a pod's creation until a new document counts as one that cannot run. Nodes are added in a few minutes."""
SUBMISSION = timedelta(minutes=1)
"""For the Spark Operator to take notice of a SparkApplication."""
PODLESS = timedelta(minutes=1)
"""For a driver's pod to appear, and for its loss to be the Spark Operator's business."""
ORPHAN = timedelta(seconds=30)
"""Age from which a driver's pod without SparkApplication is one that lost it: a younger one's SparkApplication
may not have been seen yet."""
DELETION = timedelta(minutes=5)
"""For a deleted object to be gone, until it is said what keeps it."""
GOOD_RUN = timedelta(minutes=10)
"""After which earlier failures are forgotten."""
FIRST_RETRY = timedelta(seconds=10)
"""After the first failure; doubled with each further one."""
LAST_RETRY = timedelta(minutes=5)
"""The longest that doubling leads to."""
PERMANENT_RETRY = timedelta(minutes=10)
"""After an error that a person has to mend, perhaps elsewhere than in the LakeStream (a right, a stream)."""
STORAGE_RETRY = timedelta(minutes=1)
"""The longest after an outage of the storage: it is over when it is over."""
FENCED_RETRY = timedelta(minutes=2)
"""After another driver took over: more than a replaced driver needs to notice and end."""
REJECTIONS = 3
"""Starts of a new document that fail, maybe by its fault, before it counts as one that cannot run."""
REBINDING = timedelta(minutes=10)
"""Between two times that a driver is taken from another operator's role: two of them would do so without end."""
REMAKING = REBINDING
"""Between two times that a SparkApplication is made anew since somebody has edited it: something may edit each one."""
RESYNC = timedelta(seconds=15)
"""Between two looks at a writer that runs, if nothing is heard of it."""
IDLE_RESYNC = timedelta(minutes=1)
"""Between two looks at one that does not."""


def drain_limit(report: DriverReport | None) -> timedelta:
    """How long a drain may take."""
    return max(DRAIN, 3 * _pace(report))


def stuck_limit(report: DriverReport | None) -> timedelta:
    """How old a report may be before its driver is restarted."""
    return max(STUCK, 3 * _pace(report))


def late_limit(report: DriverReport | None) -> timedelta:
    """How old a report may be before something is said about it."""
    return max(LATE, 3 * _pace(report))


def quiet(report: DriverReport, interval: timedelta) -> timedelta:
    """How long ago a driver may have finished a batch, or found nothing to read, and still know its lag.

    Args:
        report: the last one.
        interval: of its trigger, where no batch tells it yet.
    """
    return UNCHANGED + 2 * (_pace(report) or interval)


def _pace(report: DriverReport | None) -> timedelta:
    """The larger of trigger interval and batch time: how often a driver that is well says something."""
    if report is None or not report.batches:
        return timedelta()
    last = report.batches[-1]
    return max(last.trigger_interval, timedelta(seconds=last.seconds.total))
