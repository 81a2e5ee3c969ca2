"""The time, as something that is passed on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakestream_api import format_duration

logger = logging.getLogger(__name__)

Clock = Callable[[], datetime]

_PROMPT = timedelta(seconds=2)
"""What an answer that took longer says of the time may be old."""
_SKEW = timedelta(seconds=5)
"""Between two clocks, from which on it counts: an answer tells whole seconds, and was on its way."""


def system_clock() -> datetime:
    """The machine's time, in UTC."""
    return datetime.now(UTC)


@dataclass(slots=True)
class ServerClock:
    """The API server's time: all that decisions look at is dated by it, and the clock of this node may be wrong by
    minutes. That one counts until an answer tells, and is what goes on between two answers.

    As that of any machine it may be put back. It does not stand still for it: who is waited for would be for as long.
    """

    own: Clock = system_clock
    """Of this node."""
    ahead: timedelta = timedelta()
    """How far that one is."""

    def __call__(self) -> datetime:
        return self.own() - self.ahead

    def hear(self, told: datetime, asked_at: datetime) -> None:
        """Take in what time an answer tells.

        Args:
            told: the time of the answer.
            asked_at: when it was asked for, by this clock.
        """
        now = self()
        if not timedelta() <= now - asked_at <= _PROMPT or abs(now - told) <= _SKEW:
            return
        self.ahead += now - told
        side = "ahead of" if self.ahead > timedelta() else "behind"
        by = format_duration(timedelta(seconds=round(abs(self.ahead).total_seconds())))
        logger.warning("this node's clock is %s %s the API server's, which is gone by from now on", by, side)
