"""Whether this machine's clock is fit to write to a table: Hudi orders commits, and what they replace, by their times.

A commit with a time before that of the newest one is completed, and its rows are hidden behind what that one wrote:
lost to every reader, with nothing to tell of it. So a driver whose clock is behind (it has moved to another node, or
its time was set back) waits, or says so and ends, before it writes anything.

In tables of version 6 the store's clock takes part. What a compaction has compacted is told from what came after it by
the time at which its commit was completed, and that is the time of its object. A compaction that was completed before
it began, for the machine that planned it is ahead of the store, has all that comes after it hidden: lost, again with
nothing to tell of it. S3 tells whole seconds, so it is enough to be quick. So a compaction is not completed before the
store has come to the time that it was planned at.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from lakestream.errors import RetryLaterError, SinkError

logger = logging.getLogger(__name__)

PATIENCE = timedelta(seconds=10)
"""More than clocks that are kept right differ by; they are waited for."""


_TIME = re.compile(r"(?<!\d)2\d{13}(?:\d{3})?(?!\d)")


class ClockBehindError(RetryLaterError):
    """The table has a commit of a time that this machine's clock has not reached."""


def newest_time(instants: str, zone: tzinfo | None) -> datetime | None:
    """The last time in a text, as instants are begun and completed at; None if there is none.

    Args:
        instants: of a timeline, as Hudi prints them: their times have milliseconds, or in old tables seconds.
        zone: of the times; None: that of this machine.
    """
    found = _TIME.findall(instants)
    if not found:
        return None
    time = datetime.strptime(max(found).ljust(17, "0"), "%Y%m%d%H%M%S%f")  # noqa: DTZ007
    return time.astimezone(UTC) if zone is None else time.replace(tzinfo=zone).astimezone(UTC)


def require_seen(path: str, early: Sequence[str]) -> None:
    """Whether readers see what was written after compactions.

    Args:
        path: of the table.
        early: instants of compactions that were completed before they began, by the store's clock.

    Raises:
        SinkError: they do not.
    """
    if early:
        raise SinkError(
            f"by the clock of its store, compactions of the table at {path} were completed before they began: "
            f"{', '.join(f'.hoodie/{instant}.commit' for instant in early)}. The machine of whoever planned them is "
            "ahead. What was written after them is hidden from readers, and the next compaction would leave it out. "
            "Copy each of these objects onto itself (aws s3 cp URI URI --metadata-directive REPLACE), or touch the "
            "file, so that it has a later time. Then check the table, and read what it lacks (lakestream backfill)."
        )


class ClockAheadError(RetryLaterError):
    """This machine's clock has reached a time that the store's has not."""


class CommitClock:
    """The clock that commits of one table get their times from."""

    def __init__(
        self,
        path: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path = path
        self._now = now
        self._sleep = sleep

    def require_after(self, newest: datetime | None) -> None:
        """Return when the time is later than that of the table's newest commit, if it has one.

        Raises:
            ClockBehindError: that would take longer than `PATIENCE`.
        """
        if newest is None or (behind := newest - self._now()) < timedelta(0):
            return
        if self.is_behind(newest):
            raise ClockBehindError(
                f"the newest commit of the table at {self._path} is of {newest:%Y-%m-%dT%H:%M:%SZ}, and the clock of "
                f"this machine is {round(behind.total_seconds())} s behind that. Hudi orders commits by time: what is "
                "written now would never be seen. Set the clock right; if it is right, the commit was made by a clock "
                "that was ahead, and the writer goes on when that time has come."
            )
        seconds = behind.total_seconds()
        logger.warning(
            "the table at %s has a commit %.1f s ahead of this machine's clock; waiting", self._path, seconds
        )
        self._sleep(seconds + 0.001)

    def is_behind(self, newest: datetime | None) -> bool:
        """Whether `require_after` would raise."""
        return newest is not None and newest - self._now() > PATIENCE

    def require_stored_after(self, planned: datetime, store: Callable[[], datetime]) -> None:
        """Return when what is stored now gets a time that is not before that of a plan.

        Args:
            planned: when, by the clock of the machine that did.
            store: stores something; returns the time that it has got.

        Raises:
            ClockAheadError: that would take longer than `PATIENCE`.
        """
        patience = PATIENCE
        while (ahead := planned - store()) > timedelta(0):
            if ahead > patience:
                raise ClockAheadError(
                    f"a compaction of the table at {self._path} was planned at {planned:%Y-%m-%dT%H:%M:%SZ}, and by "
                    f"the clock of its store it is {round(ahead.total_seconds())} s before that. Completed now, it "
                    "would hide what is written after it. Set the clock of this machine right; the compaction is tried "
                    "again, and done when that time has come in the store as well."
                )
            self._sleep(ahead.total_seconds() + 0.001)
            patience -= ahead
