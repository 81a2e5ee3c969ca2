"""Work on the table that somebody has asked for: the writer's driver does it, as it does the same work by itself.

A table has one writer, which needs no lock that others could take as well: a compaction, a cleaning or a savepoint by a
second process would be a second writer. So whoever wants one puts a request into the checkpoint.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Protocol

from lakestream.log import Outcome, ServiceRequest, Work
from lakestream.model import BatchCommit, in_a_line

logger = logging.getLogger(__name__)


class Requests(Protocol):
    """Where requests come from, and their outcomes go."""

    def next(self) -> ServiceRequest | None: ...
    def decide(self, request: ServiceRequest) -> bool: ...
    def done(self, outcome: Outcome) -> bool: ...


class Worker(Protocol):
    """Who does the work: a sink with a table that has it."""

    def begin(self, request: ServiceRequest) -> Future[None] | None:
        """Begin what was asked for; None: not now. While no batch is being written, by the thread that writes them."""
        ...


class Restores(Protocol):
    """Who takes the table back, once no sink has it open."""

    def take(self, request: ServiceRequest) -> None: ...


class Sink(Worker, Protocol):
    """A sink with a table that has such work."""

    def newest_batch(self, checkpoint: str) -> tuple[str, int] | None: ...


class Standings(Protocol):
    """What is needed of the checkpoint log."""

    @property
    def checkpoint(self) -> object: ...
    def last_commit(self) -> BatchCommit | None: ...
    def keep_standing(self, instant: str) -> None: ...
    def forget_standing(self, instant: str) -> None: ...


class Tended:
    """A writer's table: a sink, and what the log has to know of the work on its table."""

    def __init__(self, sink: Sink, log: Standings, restores: Restores) -> None:
        self._sink = sink
        self._log = log
        self._restores = restores

    def begin(self, request: ServiceRequest) -> Future[None] | None:
        """As `Worker.begin`."""
        match request.work:
            case Work.RESTORE:
                self._restores.take(request)
                return None
            case Work.SAVEPOINT:
                newest, last = self._sink.newest_batch(str(self._log.checkpoint)), self._log.last_commit()
                if newest is not None and last is not None:
                    instant, batch = newest
                    if batch > last.batch:
                        return None  # its commit, which says where the stream stands, is yet to come
                    self._log.keep_standing(instant)
        begun = self._sink.begin(request)
        if request.work is Work.SAVEPOINT_DELETION:
            self._log.forget_standing(request.instant)
        return begun


class ByHand:
    """Takes requests, one at a time, and keeps what comes of them. Fails no batch."""

    def __init__(
        self, requests: Requests, worker: Worker, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._requests = requests
        self._worker = worker
        self._now = now
        self._taken: ServiceRequest | None = None
        self._running: Future[None] | None = None
        self._outcome: Outcome | None = None

    def between_batches(self) -> None:
        """Begin what is asked for, if nothing is in hand, and tell what has ended."""
        if self._running is None:
            self._taken = self._requests.next()
            if self._taken is not None and self._is_to_begin(self._taken):
                self._running = self._begin(self._taken)
        self.settle()

    def _is_to_begin(self, request: ServiceRequest) -> bool:
        # A restore, which may wait for another driver, is decided on by who carries it out.
        return request.work is Work.RESTORE or self._requests.decide(request)

    def settle(self) -> None:
        """Keep the outcome of what has ended; also once the worker is closed."""
        if self._taken is None or self._running is None or not self._running.done():
            return
        if self._outcome is None:
            self._outcome = self._outcome_of(self._taken, self._running.exception())
        if self._requests.done(self._outcome):
            self._taken = self._running = self._outcome = None

    def _begin(self, request: ServiceRequest) -> Future[None] | None:
        try:
            begun = self._worker.begin(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, the stream goes on
            begun = Future()
            begun.set_exception(error)
        if begun is not None:
            logger.info("request %d: %s", request.number, request.work)
        return begun

    def _outcome_of(self, request: ServiceRequest, error: BaseException | None) -> Outcome:
        if error is None:
            logger.info("request %d is done: %s", request.number, request.work)
            return Outcome(request.number, self._now())
        logger.warning("request %d, a %s, failed: %s", request.number, request.work, error, exc_info=error)
        return Outcome(request.number, self._now(), in_a_line(error))
