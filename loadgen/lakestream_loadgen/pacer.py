"""Hands the tokens of a TokenMeter to waiting users."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable

import gevent
from gevent.event import Event

from lakestream_loadgen.pacing import Part, TokenMeter, portion
from lakestream_loadgen.shapes import Shape

logger = logging.getLogger(__name__)

_TICK = 0.01
"""Seconds."""
_REPORT = 10.0
"""Seconds between warnings."""
_BACKLOG = 2500
"""Records that may wait to be sent: five full requests, which at one tick allows 250,000 records/s."""


class _Waiter:
    __slots__ = ("gone", "most", "ready", "tokens")

    def __init__(self, most: int) -> None:
        self.most = most
        self.tokens = 0
        self.gone = False
        self.ready = Event()


class Pacer:
    """One per process and run.

    Args:
        part: This process's part of the load, asked at every tick; None as long as it is not known.
        backlog: Records that wait to be sent, likewise. While it is long, no more tokens are handed out:
            records made too early would only be cold in the CPU's caches when their turn comes.
        on_failure: Called with the reason if there are no tokens any more: users would wait for ever, and nobody know.
    """

    def __init__(
        self,
        shape: Shape,
        part: Callable[[], Part | None],
        backlog: Callable[[], int],
        on_failure: Callable[[str], object],
    ) -> None:
        self._shape = shape
        self._part = part
        self._backlog = backlog
        self._waiting: deque[_Waiter] = deque()
        self._woken = 0
        self._greenlet = gevent.spawn(self._run)
        self._greenlet.link_exception(lambda ended: on_failure(f"the load's shape has no rate: {ended.exception!r}"))

    def take(self, most: int) -> int:
        """Wait for tokens, in turn; returns how many, at most ``most``."""
        waiter = _Waiter(most)
        self._waiting.append(waiter)
        try:
            waiter.ready.wait()
        finally:
            # A user that Locust has stopped in its wait must not be given any.
            waiter.gone = True
            if waiter.ready.is_set():
                self._woken -= 1
        return waiter.tokens

    def stop(self) -> None:
        """No more tokens; who waits goes on waiting, and who was given some has them when this returns."""
        self._greenlet.kill()
        while self._woken:
            gevent.sleep(0)

    def _run(self) -> None:
        meter: TokenMeter | None = None
        reported = time.monotonic()
        dropped = 0.0
        while True:
            now, part = time.monotonic(), self._part()
            if part is not None:
                meter = meter or TokenMeter(self._shape, joined=max(now - part.began, 0.0))
                meter.advance(now - part.began, 1.0 / part.workers)
                self._hand_out(meter)
            if meter is not None and now - reported >= _REPORT:
                if meter.dropped > dropped:
                    logger.warning(
                        "the load is %.0f events/s short of its shape: all users wait for acknowledgements, or "
                        "more cannot be sent (more users, connections, workers or shards?)",
                        (meter.dropped - dropped) / (now - reported),
                    )
                reported, dropped = now, meter.dropped
            gevent.sleep(_TICK)

    def _hand_out(self, meter: TokenMeter) -> None:
        due = left = min(meter.due(), _BACKLOG - self._backlog())
        waiting = len(self._waiting)
        while self._waiting and left > 0:
            waiter = self._waiting.popleft()
            if not waiter.gone:
                waiter.tokens = meter.take(min(portion(due, waiting, waiter.most), left))
                left -= waiter.tokens
                self._woken += 1
                waiter.ready.set()
