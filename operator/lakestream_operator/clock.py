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
_STEADY = timedelta(seconds=30)
"""For how long answers agree on another time before that one counts: of several API servers each has its own."""


def system_clock() -> datetime:
    """The machine's time, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Doubt:
    """Another difference than is gone by, which answers tell without one that disagrees."""

    ahead: timedelta
    since: datetime
    """By the node's clock."""


@dataclass(slots=True)
class ServerClock:
    """The API server's time: all that decisions look at is dated by it, and the clock of this node may be wrong by
    minutes. That one counts until an answer tells, and is what goes on between two answers. The first answer counts at
    once, another time only when all have told it for a while.

    As that of any machine it may be put back. It does not stand still for it: who is waited for would be for as long.
    """

    own: Clock = system_clock
    """Of this node."""
    ahead: timedelta = timedelta()
    """How far that one is."""
    _heard: bool = False
    """Whether an answer has told the time."""
    _doubt: _Doubt | None = None

    def __call__(self) -> datetime:
        return self.own() - self.ahead

    def hear(self, told: datetime, asked_at: datetime) -> None:
        """Take in what time an answer tells.

        Args:
            told: the time of the answer.
            asked_at: when it was asked for, by this clock.
        """
        if not timedelta() <= self() - asked_at <= _PROMPT:
            return
        now = self.own()
        ahead = now - told
        first, self._heard = not self._heard, True
        if abs(ahead - self.ahead) <= _SKEW:
            self._doubt = None
        elif first:
            self._go_by(ahead)
        elif self._doubt is None or abs(ahead - self._doubt.ahead) > _SKEW:
            self._doubt = _Doubt(ahead, now)
        elif now - self._doubt.since >= _STEADY:
            self._go_by(ahead)

    def _go_by(self, ahead: timedelta) -> None:
        self._doubt = None
        if abs(ahead) <= _SKEW:
            self.ahead = timedelta()
            logger.info("this node's clock agrees with the API server's again")
            return
        self.ahead = ahead
        side = "ahead of" if ahead > timedelta() else "behind"
        by = format_duration(timedelta(seconds=round(abs(ahead).total_seconds())))
        logger.warning("this node's clock is %s %s the API server's, which is gone by from now on", by, side)
