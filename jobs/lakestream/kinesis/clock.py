"""The time of a service, told from the `Date` of its answers, and of Kinesis from the arrival times in them, too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Lock

_EPOCH = datetime.fromtimestamp(0, UTC)
_WINDOW = 60.0
_DATE_STEP = timedelta(seconds=1)


class ServiceClock:
    """The tightest lower bound of the server's time that its answers allow.

    `Date` has whole seconds: the server's time was at least that when the answer left. Added to
    the local monotonic time since, it stays a lower bound, and the best of many answers is exact to
    a few milliseconds, unless all come at the same part of a second, as those of a batch every
    second do. So a record's arrival counts as well, which has milliseconds. Bounds older than one to
    two minutes are forgotten, so that two clocks that run at different speeds do not drift apart by
    more than milliseconds.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._window_start = float("-inf")
        self._current: float | None = None
        self._previous: float | None = None

    def observe(self, date: datetime, received: float) -> None:
        """Take note of an answer: its `Date`, and the local monotonic time at which it came."""
        offset = (date - _EPOCH).total_seconds() - received
        with self._lock:
            if received - self._window_start > _WINDOW:
                self._previous, self._current, self._window_start = self._current, None, received
            self._current = offset if self._current is None else max(offset, self._current)

    def observe_arrival(self, arrival: datetime, received: float) -> None:
        """Take note of the last arrival time of an answer whose `Date` has been observed.

        One that the `Date` puts into the future is of a clock that is wrong, and tells nothing.
        """
        known = self.now(received)
        if known is not None and known < arrival < known + _DATE_STEP:
            self.observe(arrival, received)

    def now(self, monotonic: float) -> datetime | None:
        """The bound at a local monotonic time, in whole milliseconds; None before the first answer."""
        with self._lock:
            offsets = [offset for offset in (self._previous, self._current) if offset is not None]
        if not offsets:
            return None
        return _EPOCH + timedelta(milliseconds=int((max(offsets) + monotonic) * 1000))
