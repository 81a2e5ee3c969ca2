"""Clocks: the only places that know what time it is."""

from __future__ import annotations

import logging
import time
from typing import Protocol

from lakestream_localkinesis.errors import SettingsError

logger = logging.getLogger(__name__)


class Clock(Protocol):
    """Milliseconds since the epoch, never going backward."""

    def now_ms(self) -> int:
        """The current time."""
        ...


_STILL_MS = 1000
"""For at most so long time stands still: no rate would be given back meanwhile."""


class SystemClock:
    """The machine's clock. A small step backward (NTP) holds it still instead; after a larger one it goes on from where
    it was, until the machine's has come there again."""

    def __init__(self, not_before_ms: int = 0) -> None:
        """`not_before_ms`: a time that has been; where the machine is behind it, the clock goes on from there."""
        self.ahead_ms = max(0, not_before_ms - _machine_ms())
        """Of the machine's clock, when it began."""
        self._last = 0
        self._set_back_ms = 0

    def now_ms(self) -> int:
        """The current time."""
        machine = _machine_ms() + self.ahead_ms
        earliest = self._last - _STILL_MS
        if machine >= earliest:
            self._set_back_ms = 0
        elif machine + self._set_back_ms < earliest:
            self._set_back_ms = self._last - machine
            seconds = self._set_back_ms / 1000
            logger.warning("this machine's clock was set back by %.0f s: the server's goes on where it was", seconds)
        self._last = max(self._last, machine + self._set_back_ms)
        return self._last


def _machine_ms() -> int:
    return time.time_ns() // 1_000_000


_LATEST_MS = 64_060_588_800_000
"""The year 4000: sequence numbers have room for the seconds of a century more."""


class DrivenClock:
    """A clock that tests drive: it follows a base clock at an offset, or stands still."""

    def __init__(self, base: Clock, *, frozen_at_ms: int | None = None) -> None:
        self._base = base
        self._offset = 0
        self._frozen = frozen_at_ms

    def now_ms(self) -> int:
        """The current time."""
        return self._base.now_ms() + self._offset if self._frozen is None else self._frozen

    def advance(self, milliseconds: int) -> None:
        """Move forward at once."""
        if milliseconds < 0:
            raise SettingsError(f"the clock only goes forward: advance by {milliseconds} ms refused")
        if self.now_ms() + milliseconds > _LATEST_MS:
            raise SettingsError(f"the clock goes to the year 4000 at most: advance by {milliseconds} ms refused")
        if self._frozen is None:
            self._offset += milliseconds
        else:
            self._frozen += milliseconds

    def set(self, now_ms: int) -> None:
        """Move forward to an instant."""
        self.advance(now_ms - self.now_ms())

    def freeze(self) -> None:
        """Stand still until `resume`."""
        self._frozen = self.now_ms()

    def resume(self) -> None:
        """Run on from where the clock stands."""
        self._offset = self.now_ms() - self._base.now_ms()
        self._frozen = None
