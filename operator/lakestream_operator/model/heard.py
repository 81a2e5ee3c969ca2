"""For how long nothing new was heard of a driver, as one process has seen it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

_LONGEST_LOOK = timedelta(minutes=1)
"""Between two looks, as far as it counts: after longer the clock was set, or this process was held up, and what came
meanwhile is still to be seen."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The last sign of a driver. No two clocks are compared: each of API server, node and operator may be wrong."""

    sign: tuple[str, ...]
    """What was seen of it."""
    at: datetime
    """When it was looked at last."""
    silent: timedelta = timedelta()
    """For how long it has been the same, since it was seen first."""
    changed: bool = False
    """Whether it was seen to change; else it may be much older than this process."""

    def then(self, sign: tuple[str, ...], now: datetime) -> Self:
        """The same, at the next look."""
        if sign != self.sign:
            return replace(self, sign=sign, at=now, silent=timedelta(), changed=True)
        passed = min(max(now - self.at, timedelta()), _LONGEST_LOOK)
        return replace(self, at=now, silent=self.silent + passed)
