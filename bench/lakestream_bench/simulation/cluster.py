"""Executors of one driver: asked for, starting, running, waiting for room, leaving."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_MEDIAN_START = 20.0
_START_SPREAD = 0.35
"""Seconds from request to registration: 7 to 24 s were measured on Kubernetes with the image present; log-normal."""
_LATE = 0.02
_LATE_SECONDS = 120.0
"""Share of pods that come much later: an image to be pulled, a node that is slow."""
_PER_SECOND = 10.0
"""Pods that Spark's allocator asks for per second."""
_LEAVING_SECONDS = 5.0
"""3 to 5 s were measured from request to gone."""


def start_delays(seed: int, count: int = 4096) -> NDArray[np.float64]:
    """Start delays of pods, one after the other."""
    rng = np.random.default_rng(seed)
    delays = _MEDIAN_START * np.exp(_START_SPREAD * rng.standard_normal(count))
    return delays + np.where(rng.random(count) < _LATE, _LATE_SECONDS, 0.0)


@dataclass(slots=True)
class Cluster:
    """Counts of executors. What is placed on a node is paid for, from its request to its end."""

    delays: NDArray[np.float64]
    target: int
    running: int
    room: int
    """Executors that the cluster can hold."""
    starting: list[float] = field(default_factory=list)
    """Heap of the times at which they will be ready."""
    pending: int = 0
    pending_since: float | None = None
    warming: list[float] = field(default_factory=list)
    """When those that run, but not yet at their full speed, will be warm."""
    paid: float = 0.0
    """Executor-seconds."""
    _next_delay: int = 0

    @property
    def placed(self) -> int:
        return self.running + len(self.starting)

    def aim(self, now: float, target: int) -> None:
        """Ask for so many. Surplus ones that run leave later, by `leave_surplus`."""
        self.target = target
        surplus = self.placed + self.pending - target
        if surplus > 0:
            dropped = min(surplus, self.pending)
            self.pending -= dropped
            # The youngest of those that start go first.
            keep = len(self.starting) - min(surplus - dropped, len(self.starting))
            self.starting = sorted(self.starting)[:keep]
        self._fill(now)

    def leave_surplus(self) -> None:
        """Between two batches: give up what is more than the target."""
        leaving = self.running - self.target
        if leaving > 0:
            self.running -= leaving
            del self.warming[self.running :]
            self.paid += leaving * _LEAVING_SECONDS

    def lose(self, now: float, count: int) -> None:
        """Executors die, and are replaced."""
        self.running -= min(count, self.running)
        del self.warming[self.running :]
        self._fill(now)

    def make_room(self, now: float, room: int) -> None:
        """The cluster grows, or other work takes it up; what runs stays."""
        self.room = room
        self.pending = 0
        self._fill(now)

    def restart(self, ready_at: float) -> None:
        """All end, and as many as are wanted and fit come up together."""
        self.running, self.pending, self.warming = 0, 0, []
        self.starting = [ready_at] * min(self.target, self.room)

    def vanish(self) -> None:
        """The driver is gone, and its executors with it."""
        self.running, self.pending, self.starting, self.pending_since, self.warming = 0, 0, [], None, []

    def arrive(self, now: float, warm_up: float) -> None:
        """Let those run that are ready, and those be warm that have run for so many seconds."""
        while self.starting and self.starting[0] <= now:
            heapq.heappop(self.starting)
            self.running += 1
            if warm_up:
                self.warming.append(now + warm_up)
        while self.warming and self.warming[0] <= now:
            self.warming.pop(0)

    def _fill(self, now: float) -> None:
        missing = self.target - self.placed - self.pending
        for index in range(max(0, missing)):
            if self.placed >= self.room:
                self.pending += missing - index
                break
            delay = float(self.delays[self._next_delay % len(self.delays)])
            self._next_delay += 1
            heapq.heappush(self.starting, now + delay + index / _PER_SECOND)
        if not self.pending:
            self.pending_since = None
        elif self.pending_since is None:
            self.pending_since = now
