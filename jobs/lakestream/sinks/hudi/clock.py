"""Whether this machine's clock is fit to write to a table: Hudi orders commits, and what they replace, by their times.

A commit with a time before that of the newest one is completed, and its rows are hidden behind what that one wrote:
lost to every reader, with nothing to tell of it. So a driver whose clock is behind (it has moved to another node, or
its time was set back) waits, or says so and ends, before it writes anything.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

from lakestream.errors import RetryLaterError

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
        if behind > PATIENCE:
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
