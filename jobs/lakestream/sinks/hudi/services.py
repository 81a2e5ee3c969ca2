"""Compaction, cleaning and archiving in a second thread, so that no batch pays for them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

logger = logging.getLogger(__name__)

_BACKLOG = 4
"""Rounds' worth of commits that ingestion may be ahead of a round before it waits for it: every delta commit makes
reading and compacting more expensive, and waiting is what slows the producer of the problem down."""


@dataclass(frozen=True, slots=True)
class ServicesStatus:
    """How the work beside ingestion goes."""

    rounds: int = 0
    """Completed rounds."""
    failures: int = 0
    """Rounds that failed; each is tried again after as many commits as another round would take."""
    error: str | None = None
    """Of the last round, if it failed."""
    seconds: float = 0.0
    """That the last completed round took."""
    behind: int = 0
    """Commits since the last completed round began."""


class TableServices:
    """Runs a round of work in a thread of its own, each time that enough commits have come."""

    def __init__(self, work: Callable[[], None], every: int) -> None:
        """Start the thread.

        Args:
            work: one round. If it fails, the error is logged and kept in `status`; ingestion goes on.
            every: commits between two rounds. The first is due at the first commit: a driver that is killed again and
                again before `every` commits must not leave a backlog that nobody works off.
        """
        self._work = work
        self._every = every
        self._changed = threading.Condition()
        self._since = every - 1
        self._status = ServicesStatus()
        self._busy = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="table-services", daemon=True)
        self._thread.start()

    @property
    def status(self) -> ServicesStatus:
        with self._changed:
            return replace(self._status, behind=self._since)

    def committed(self) -> None:
        """Count a commit."""
        with self._changed:
            self._since += 1
            self._changed.notify_all()

    def throttle(self) -> float:
        """Wait while a round runs that ingestion is too far ahead of; returns the seconds waited."""
        began = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: not self._busy or self._closed or self._since < _BACKLOG * self._every)
        return time.monotonic() - began

    def drain(self) -> None:
        """Wait until no round runs or is due."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not (self._busy or self._since >= self._every))

    def close(self) -> None:
        """Wait for the round that runs, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._since >= self._every)
                if self._closed:
                    return
                self._busy, self._since = True, 0
            self._round()
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _round(self) -> None:
        began = time.monotonic()
        try:
            self._work()
        except Exception as error:
            message = str(error).strip().splitlines() or [type(error).__name__]
            logger.warning("compaction or cleaning failed; ingestion goes on: %s", message[0], exc_info=True)
            with self._changed:
                self._status = replace(self._status, failures=self._status.failures + 1, error=message[0])
            return
        seconds = time.monotonic() - began
        with self._changed:
            self._status = replace(self._status, rounds=self._status.rounds + 1, error=None, seconds=seconds)
