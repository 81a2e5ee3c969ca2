"""A driver in a pod: takes orders from its control ConfigMap, and tells of itself in its progress ConfigMap.

Neither is needed to ingest. Without the API server, or without these ConfigMaps, a driver goes on with the orders
that it last had.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self

from pydantic import ValidationError

from lakestream.control.driver import DriverReporter
from lakestream.control.executors import ExecutorPool, ExecutorScaler
from lakestream.control.kubernetes import Pod
from lakestream.control.resharding import Resharder, ShardedStream
from lakestream.statuses import Exit
from lakestream.stopping import StopSignal
from lakestream_api import Progress
from lakestream_api.control import Control
from lakestream_api.names import CONTROL_KEY, REPORT_KEY, WriterNames
from lakestream_api.report import DriverReport, DriverState, ExecutorsReport, Failure, FetchedBatch

logger = logging.getLogger(__name__)

_LIFE = 600.0
"""For so long a driver counts as alive after a sign of life: one write to the lake may take long."""
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
"""Seconds before the control ConfigMap is followed again; doubled with each failure."""


class DriverControl(Protocol):
    """Who gives a driver its orders, and hears of it."""

    @property
    def executors(self) -> int | None: ...
    def took_over(self, epoch: int) -> None: ...
    def forget_executors(self) -> None: ...
    def running(self, pool: ExecutorPool, executors: int, stream: ShardedStream) -> None: ...
    def between_batches(self) -> None: ...
    def idle(self, looked_at: datetime, caught_up_to: datetime) -> None: ...
    def fetched(self, batch: FetchedBatch) -> None: ...
    def publish(self, progress: Progress) -> None: ...
    def ended(self) -> None: ...
    def failed(self, status: Exit, message: str) -> None: ...


class NoControl:
    """Outside of Kubernetes there is nobody: a `DriverControl`."""

    executors = None

    def took_over(self, epoch: int) -> None: ...
    def forget_executors(self) -> None: ...
    def running(self, pool: ExecutorPool, executors: int, stream: ShardedStream) -> None: ...
    def between_batches(self) -> None: ...
    def idle(self, looked_at: datetime, caught_up_to: datetime) -> None: ...
    def fetched(self, batch: FetchedBatch) -> None: ...
    def publish(self, progress: Progress) -> None: ...
    def ended(self) -> None: ...
    def failed(self, status: Exit, message: str) -> None: ...


class Maps(Protocol):
    """`ConfigMaps`, or what tests put in its place."""

    def read(self, name: str) -> Mapping[str, str] | None: ...
    def write(self, name: str, key: str, value: str) -> None: ...
    def follow(self, name: str) -> Iterator[Mapping[str, str] | None]: ...
    def remove_pods(self, labels: Mapping[str, str]) -> None: ...


class Orders:
    """The last orders that made sense."""

    def __init__(self) -> None:
        self.control = Control()
        self._complaint: str | None = None

    def take(self, data: Mapping[str, str] | None) -> Control:
        """The orders in a ConfigMap's data; those before if it is gone, lacks the key or holds nonsense, which is
        logged when it begins."""
        complaint = None
        if data is None or CONTROL_KEY not in data:
            complaint = "there are none"
        else:
            try:
                self.control = Control.model_validate_json(data[CONTROL_KEY])
            except ValidationError as error:
                complaint = f"they make no sense: {error.errors()[0]['msg']}"
        if complaint is not None and complaint != self._complaint:
            logger.warning("orders of the operator: %s; going on with the last ones (%r)", complaint, self.control)
        self._complaint = complaint
        return self.control


class PodControl:
    """The control of one driver: a context, within which its orders are followed and its report is kept."""

    def __init__(
        self,
        pod: Pod,
        names: WriterNames,
        maps: Maps,
        stop: StopSignal,
        *,
        awaits: Failure | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make it; entering it as a context begins.

        Args:
            pod: the driver's own.
            names: of the writer's objects.
            maps: where orders and report are.
            stop: is set by an order to drain.
            awaits: what the driver waits for, and how it ends if that does not come.
            now: the driver's clock.
            monotonic: seconds, by a clock that nobody sets.
        """
        self._names = names
        self._maps = maps
        self._stop = stop
        self._orders = Orders()
        self._scaler: ExecutorScaler | None = None
        self._resharder: Resharder | None = None
        self._monotonic = monotonic
        self._drain: str | None = None
        self._caught_up: tuple[datetime | None, datetime | None] = (None, None)
        """When the driver last found nothing to read, and up to which (Kinesis) time."""
        self._alive_at = monotonic()
        first = _first_report(pod, names, now(), awaits)
        self._state = first.state
        self._reporter = DriverReporter(
            first, self._write_report, look=self._look, lives=self._lives, now=now, monotonic=monotonic
        )
        self._ended = threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Take the first orders, then follow them in a thread."""
        try:
            self._obey(self._orders.take(self._maps.read(self._names.control)))
        except Exception as error:  # noqa: BLE001 - no API server is no reason not to ingest
            logger.warning("the operator's orders could not be read: %s", error)
        self._stack.enter_context(self._reporter)
        # A daemon, and not waited for: it may hang in a read for a minute.
        threading.Thread(target=self._follow, name="orders", daemon=True).start()
        self._stack.callback(self._ended.set)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def executors(self) -> int | None:
        """How many are wanted; None: the operator has not said."""
        return self._scaler.target if self._scaler else self._orders.control.executors

    def took_over(self, epoch: int) -> None:
        """The checkpoint is ours."""
        self._reporter.update(epoch=epoch)

    def forget_executors(self) -> None:
        """Remove what there is of the executors of a JVM that is gone: another one gives its own the same names.

        Raises:
            ApiServerError: they are there as they were.
        """
        self._maps.remove_pods({**self._names.labels, "spark-role": "executor"})

    def running(self, pool: ExecutorPool, executors: int, stream: ShardedStream) -> None:
        """Spark is there, asked for so many executors, and batches of the stream begin."""
        self._scaler = ExecutorScaler(pool, executors)
        self._resharder = Resharder(stream, lambda told: self._reporter.update(resharding=told))
        self._stack.callback(self._resharder.close)
        self._obey(self._orders.control)
        self._state = DriverState.RUNNING
        self._reporter.update(state=self._state, failure=None)

    def between_batches(self) -> None:
        """To be called by the thread that writes: now executors may be given up."""
        self._alive_at = self._monotonic()
        if self._scaler is not None:
            self._scaler.between_batches()

    def idle(self, looked_at: datetime, caught_up_to: datetime) -> None:
        """The driver has looked, and there is nothing to read that arrived before this (Kinesis) time."""
        self._alive_at = self._monotonic()
        self._caught_up = looked_at, caught_up_to

    def fetched(self, batch: FetchedBatch) -> None:
        """Say what the batch that is to be written next has, with the next report."""
        self._reporter.fetched(batch)

    def publish(self, progress: Progress) -> None:
        """Add a batch to the report."""
        self._reporter.publish(progress)

    def ended(self) -> None:
        """The driver ends because it was asked to, or has nothing left to do."""
        self._enter(DriverState.DRAINED)

    def failed(self, status: Exit, message: str) -> None:
        """The driver ends by an error."""
        if status is Exit.FENCED:
            # From now on the report is that of the driver that has taken over.
            self._reporter.be_silent()
        self._state = DriverState.FAILED
        self._reporter.update(state=self._state, failure=Failure.of(status, message))

    def _enter(self, state: DriverState) -> None:
        self._state = state
        self._reporter.update(state=state)

    def _write_report(self, report: str) -> None:
        self._maps.write(self._names.progress, REPORT_KEY, report)

    def _look(self) -> dict[str, Any]:
        """What has changed by itself since the last report."""
        # A signal stops a driver as well as an order does.
        if self._stop.is_set() and self._state in (DriverState.STARTING, DriverState.RUNNING):
            self._state = DriverState.DRAINING
        looked_at, caught_up_to = self._caught_up
        seen: dict[str, Any] = {"state": self._state, "caught_up_at": looked_at, "caught_up_to": caught_up_to}
        if self._scaler is not None:
            seen["executors"] = self._scaler.report()
        return seen

    def _lives(self) -> bool:
        """Whether batches have gone on, or Spark has, within some minutes. A driver that starts has as long."""
        if self._scaler is not None and self._scaler.has_worked():
            self._alive_at = self._monotonic()
        return self._monotonic() - self._alive_at < _LIFE

    def _obey(self, control: Control) -> None:
        if control.drain is not None and control.drain != self._drain:
            logger.info("drain %s: ending after the batch in hand", control.drain)
            self._drain = control.drain
            # First: once it is told to stop, a driver may end before this thread goes on.
            self._reporter.update(drain=control.drain)
            self._stop.set()
        if control.executors is not None and self._scaler is not None:
            self._scaler.aim(control.executors)
        if self._resharder is not None:
            self._resharder.order(control.shards)

    def _follow(self) -> None:
        wait = _FIRST_WAIT
        while not self._ended.is_set():
            try:
                for data in self._maps.follow(self._names.control):
                    wait = _FIRST_WAIT
                    if self._ended.is_set():
                        return
                    self._obey(self._orders.take(data))
            except Exception as error:  # noqa: BLE001 - as long as it lasts, the last orders hold
                logger.log(
                    logging.WARNING if wait == _FIRST_WAIT else logging.DEBUG,
                    "the operator's orders cannot be followed: %s",
                    error,
                )
                wait = min(2 * wait, _LONGEST_WAIT)
            self._ended.wait(wait)


def _first_report(pod: Pod, names: WriterNames, began: datetime, awaits: Failure | None) -> DriverReport:
    return DriverReport(
        stream=names.stream,
        writer=names.writer,
        pod=pod.name,
        pod_uid=pod.uid,
        started_at=began,
        updated_at=began,
        state=DriverState.STARTING,
        executors=ExecutorsReport(target=0, registered=0),
        failure=awaits,
    )
