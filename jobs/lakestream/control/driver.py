"""What a driver says of itself: one report, kept here and put where the operator looks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from lakestream_api import Progress
from lakestream_api.report import DriverReport, FetchedBatch

logger = logging.getLogger(__name__)

_INTERVAL = timedelta(seconds=2)
"""Between two reports of an unchanged state: a write to the API server each, for every driver of the cluster."""
_BEAT = timedelta(seconds=30)
"""Between two reports of a driver that lives, although nothing has changed: one that hangs can be told from an idle
one."""
_LAST_WORD = timedelta(seconds=10)
"""How long the end of the process waits for the last report."""


class DriverReporter:
    """Keeps the report of one driver; a `ProgressPublisher`, and a context in which a thread writes it.

    Written at once when the state changes, else at most every two seconds. A report that could not be written is
    tried again with whatever has changed since: only the newest one counts.
    """

    def __init__(
        self,
        report: DriverReport,
        write: Callable[[str], None],
        *,
        look: Callable[[], dict[str, Any]],
        lives: Callable[[], bool],
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        """Make a reporter.

        Args:
            report: the first one.
            write: puts the JSON away; may fail with any error.
            look: fields of the report to be brought up to date before it is written, as of this moment.
            lives: whether there is life in the driver, beyond this thread.
            now: the driver's clock.
            monotonic: seconds, by a clock that nobody sets.
        """
        self._report = report
        self._write = write
        self._look = look
        self._lives = lives
        self._now = now
        self._monotonic = monotonic
        self._previous: Progress | None = None
        self._written: DriverReport | None = None
        self._written_at = monotonic()
        self._failing = False
        self._silent = False
        self._lock = threading.Lock()
        self._urgent = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driver-report", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._urgent.set()
        self._thread.join(_LAST_WORD.total_seconds())

    def publish(self, progress: Progress) -> None:
        """Add a batch."""
        with self._lock:
            self._report = self._report.after(progress, self._previous)
            self._previous = progress

    def fetched(self, batch: FetchedBatch) -> None:
        """Tell of a batch that is fetched. From any thread."""
        with self._lock:
            self._report = self._report.model_copy(update={"fetched": batch})

    def update(self, **changes: Any) -> None:
        """Change fields of the report, and have it written at once."""
        with self._lock:
            self._report = self._report.model_copy(update=changes)
        self._urgent.set()

    def be_silent(self) -> None:
        """Write nothing more: another driver has taken over, and the place is its own now."""
        self._silent = True

    def tick(self) -> None:
        """Write the report if it has changed, or if the last one is old."""
        seen = self._look()
        with self._lock:
            self._report = report = self._report.model_copy(update=seen)
        if self._silent or not self._is_due(report):
            return
        report = report.model_copy(update={"updated_at": self._now()})
        try:
            self._write(report.published().model_dump_json())
        except Exception as error:  # noqa: BLE001 - the operator not knowing is no reason to stop ingesting
            if not self._failing:
                logger.warning("the driver's report could not be written, and is tried again: %s", error)
            self._failing = True
            return
        if self._failing:
            logger.info("the driver's report is written again")
        self._failing = False
        self._written, self._written_at = report, self._monotonic()

    def _is_due(self, report: DriverReport) -> bool:
        is_old = self._monotonic() - self._written_at >= _BEAT.total_seconds()
        if self._written is None or (is_old and self._lives()):
            return True
        return report.model_copy(update={"updated_at": self._written.updated_at}) != self._written

    def _run(self) -> None:
        while not self._ended.is_set():
            self._urgent.wait(_INTERVAL.total_seconds())
            self._urgent.clear()
            self.tick()
        # What was said between the last tick and the end.
        self.tick()
