"""Compaction, cleaning and archiving in a second thread, so that no batch pays for them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from lakestream.model import ServiceStatus, in_a_line

logger = logging.getLogger(__name__)

_BACKLOG = 4
"""Rounds' worth of commits that ingestion may be ahead of a round before it waits for it: every delta commit makes
reading and compacting more expensive, and waiting is what slows the producer of the problem down."""
_LONGEST_PAUSE = 30.0
"""Seconds. Batches grow while they wait, and each leaves one log file per bucket, however large it is. More would only
add to the lag: a stream goes on, whatever becomes of its compaction."""
_FIRST_RETRY = timedelta(seconds=30)
_LAST_RETRY = timedelta(minutes=10)
_LOOK_SECONDS = 1.0
"""Between two looks whether a round that is waited for goes on."""


@dataclass(frozen=True, slots=True)
class Service:
    """One kind of work on the table."""

    name: str
    """As in `ServiceStatus`."""
    run: Callable[[], None]
    plan: Callable[[], object] | None = None
    """What has to be done before, between two batches: by the thread that commits them."""
    slows: bool = False
    """Whether batches wait for it: what it leaves undone makes each later batch and query more expensive."""


def pause_of(behind: int, every: int) -> float:
    """Seconds that a batch waits when the compaction fails that it should wait for: from `_BACKLOG` rounds on one
    second, twice as long with each further one, and never longer than `_LONGEST_PAUSE`.

    Args:
        behind: commits that are not compacted.
        every: commits between two rounds.
    """
    overdue = behind // every - _BACKLOG
    return 0.0 if overdue < 0 else min(2.0 ** min(overdue, 10), _LONGEST_PAUSE)


def retry_after(failures: int) -> timedelta:
    """How long a service that failed so often in a row waits for a round of its own, from the last failure on: an
    outage of the storage is over before it counts as two failures, and what goes on costs little.
    """
    return min(_FIRST_RETRY * 2.0 ** min(failures - 1, 10), _LAST_RETRY)


class TableServices:
    """Runs a round of services in a thread of its own, each time that enough commits have come.

    Services fail apart: one that does keeps none of the others from running. It is tried again in the next round, and
    by itself before, once `retry_after` has passed: a stream that rests has no next round.
    """

    def __init__(
        self,
        services: Sequence[Service],
        every: int,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """Start the thread.

        Args:
            services: one round, in this order. If one fails, the error is logged and kept in `status`; ingestion goes
                on.
            every: commits between two rounds. The first is due at the first commit: a driver that is killed again and
                again before `every` commits must not leave a backlog that nobody works off.
            now: the driver's clock: when a service failed.
            monotonic: seconds, by a clock that nobody sets: when it is tried again.
            goes_on: whether anything can come of a round that runs. In the middle of one Hudi waits, for hours perhaps,
                until a clock that was set back has come to its last instant again; nobody waits for that.
        """
        self._services = tuple(services)
        self._every = every
        self._now = now
        self._monotonic = monotonic
        self._goes_on = goes_on
        self._changed = threading.Condition()
        self._since = every - 1
        self._status = {service.name: ServiceStatus(service.name) for service in services}
        self._retry_at: dict[str, float] = {}
        self._round: tuple[Service, ...] | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="table-services", daemon=True)
        self._thread.start()

    @property
    def status(self) -> tuple[ServiceStatus, ...]:
        """Of each service, in the order of a round."""
        with self._changed:
            return tuple(self._status.values())

    def committed(self) -> None:
        """Count a commit, and begin a round if one is due and none runs."""
        with self._changed:
            self._since += 1
            self._status = {name: replace(one, behind=one.behind + 1) for name, one in self._status.items()}
            if self._round is not None or self._since < self._every:
                return
            self._since = 0
        self._begin(self._services)

    def tend(self) -> None:
        """Begin a round of the services whose time to be tried again has come, if no round runs.

        To be called between two batches, as `committed`; also while there are none to write.
        """
        now = self._monotonic()
        with self._changed:
            due = [service for service in self._services if self._retry_at.get(service.name, now) < now]
            if self._round is not None or not due:
                return
        self._begin(due)

    def begin(self, service: Service) -> Future[None] | None:
        """Begin a round of this one service, which somebody has asked for; None: a round runs.

        To be called between two batches, as `committed`. The future is done with the round, or fails with it.
        """
        with self._changed:
            if self._round is not None:
                return None
        done: Future[None] = Future()
        asked = replace(service, run=_telling(done, service.run), plan=service.plan and _failing(done, service.plan))
        self._begin((asked,))
        return done

    def throttle(self) -> float:
        """Wait while a round runs that ingestion is too far ahead of; returns the seconds waited."""
        began = time.monotonic()
        with self._changed:
            self._wait_for(lambda: self._round is None or self._closed or self._since < _BACKLOG * self._every)
        return time.monotonic() - began

    def pause(self) -> float:
        """Wait a while because a service fails that batches wait for; returns the seconds waited."""
        began = time.monotonic()
        with self._changed:
            slow = [self._status[service.name] for service in self._services if service.slows]
            behind = max((one.behind for one in slow if one.failing), default=0)
            if (seconds := pause_of(behind, self._every)) > 0:
                self._changed.wait_for(lambda: self._closed, timeout=seconds)
        return time.monotonic() - began

    def drain(self) -> None:
        """Wait until no round runs."""
        with self._changed:
            self._wait_for(lambda: self._closed or self._round is None)

    def close(self) -> bool:
        """Wait for the round that runs, and end; whether it has ended. What is left of it is for the next driver."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            if not self._wait_for(lambda: self._round is None):
                logger.warning("the table services that run are left as they are: nothing comes of them any more")
                return False
        self._thread.join()
        return True

    def _wait_for(self, is_so: Callable[[], bool]) -> bool:
        """Wait for what the round's thread brings about, as long as it goes on; whether it is so."""
        while not self._changed.wait_for(is_so, _LOOK_SECONDS):
            if not self._goes_on():
                return False
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._round is not None)
                if self._round is None:
                    return
                services = self._round
            for service in services:
                self._attempt(service)
            with self._changed:
                self._round = None
                self._changed.notify_all()

    def _begin(self, services: Iterable[Service]) -> None:
        planned = tuple(service for service in services if self._planned(service))
        with self._changed:
            self._round = planned
            self._changed.notify_all()

    def _planned(self, service: Service) -> bool:
        if service.plan is None:
            return True
        try:
            service.plan()
        except Exception as error:  # noqa: BLE001
            self._tell_failure(service, error)
            return False
        return True

    def _attempt(self, service: Service) -> None:
        began, seen = time.monotonic(), self._status[service.name]
        try:
            service.run()
        except Exception as error:  # noqa: BLE001
            self._tell_failure(service, error)
            return
        seconds = time.monotonic() - began
        with self._changed:
            one = self._status[service.name]
            self._status[service.name] = one.completed_again(seconds, one.behind - seen.behind)
            self._retry_at.pop(service.name, None)

    def _tell_failure(self, service: Service, error: Exception) -> None:
        logger.warning("%s failed; ingestion goes on: %s", service.name, in_a_line(error), exc_info=error)
        with self._changed:
            failed = self._status[service.name] = self._status[service.name].failed_again(error, self._now())
            self._retry_at[service.name] = self._monotonic() + retry_after(failed.failing).total_seconds()


def _failing(done: Future[None], work: Callable[[], object]) -> Callable[[], None]:
    """Work that tells if it fails."""

    def run() -> None:
        try:
            work()
        except Exception as error:
            done.set_exception(error)
            raise

    return run


def _telling(done: Future[None], work: Callable[[], object]) -> Callable[[], None]:
    """Work that tells how it ends."""
    failing = _failing(done, work)

    def run() -> None:
        failing()
        done.set_result(None)

    return run
