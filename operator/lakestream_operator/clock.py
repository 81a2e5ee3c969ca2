"""The time, as something that is passed on."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lakestream_api import format_duration

logger = logging.getLogger(__name__)

Clock = Callable[[], datetime]

_PROMPT = timedelta(seconds=2)
"""What an answer that took longer says of the time may be old."""
_SKEW = timedelta(seconds=5)
"""Between two clocks, from which on it counts: an answer tells whole seconds, and was on its way."""
_STEADY, _WINDOW = timedelta(seconds=30), timedelta(seconds=60)
"""For how long answers are known at least until they are gone by, and at most."""
_FEWEST = 3
"""Answers that are known however old they are: an operator that has nothing to do asks seldom."""
_MOST_OF_THEM = 2 / 3
"""Of several API servers each has a clock of its own, and one may be wrong; two that disagree move nothing."""
_EVERY = timedelta(seconds=1)
"""Between two looks at all of them."""


def system_clock() -> datetime:
    """The machine's time, in UTC."""
    return datetime.now(UTC)


def steady_clock(wall: Clock = system_clock, passed: Callable[[], float] = time.monotonic) -> Clock:
    """The machine's time as it is now, and what has passed since: whoever sets it meanwhile moves nothing.

    Args:
        wall: the machine's time.
        passed: seconds since any time.
    """
    began, at = wall(), passed()
    return lambda: began + timedelta(seconds=passed() - at)


@dataclass(slots=True)
class ServerClock:
    """The API server's time: all that decisions look at is dated by it, and the clock of this node may be wrong by
    minutes. That one counts until an answer tells, and is what goes on between two answers. The first answer counts at
    once, another time only when most have told it for a while.

    As that of any machine it may be put back. It does not stand still for it: who is waited for would be for as long.
    """

    own: Clock = field(default_factory=steady_clock)
    """Of this node."""
    ahead: timedelta = timedelta()
    """How far that one is."""
    _told: deque[tuple[datetime, timedelta]] = field(default_factory=deque)
    """When answers came lately, by the node's clock, and how far that was ahead of each."""
    _looked_at: datetime | None = None
    """When all of them were last looked at."""

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
        ahead, first = now - told, not self._told
        self._told.append((now, ahead))
        while len(self._told) > _FEWEST and not timedelta() <= now - self._told[0][0] <= _WINDOW:
            self._told.popleft()
        if abs(ahead - self.ahead) <= _SKEW:
            return
        if first:
            self._go_by(ahead)
        elif self._looked_at is None or abs(now - self._looked_at) >= _EVERY:
            self._looked_at = now
            self._look(now)

    def _look(self, now: datetime) -> None:
        """Go by what most answers tell, if that is another time than is gone by."""
        if len(self._told) < _FEWEST or now - self._told[0][0] < _STEADY:
            return
        tell = sorted(ahead for _, ahead in self._told)
        median = tell[len(tell) // 2]
        agree = sum(abs(one - median) <= _SKEW for one in tell)
        if abs(median - self.ahead) > _SKEW and agree >= _MOST_OF_THEM * len(tell):
            self._go_by(median)

    def _go_by(self, ahead: timedelta) -> None:
        if abs(ahead) <= _SKEW:
            self.ahead = timedelta()
            logger.info("this node's clock agrees with the API server's again")
            return
        self.ahead = ahead
        side = "ahead of" if ahead > timedelta() else "behind"
        by = format_duration(timedelta(seconds=round(abs(ahead).total_seconds())))
        logger.warning("this node's clock is %s %s the API server's, which is gone by from now on", by, side)
