"""Restores that somebody has asked for: the writer's driver carries them out while no batch is written.

1. It is decided that it is carried out: from here on nobody can cancel it. It is made sure that the table can be taken
   back, and that what is to be read again is there. Else: the outcome.
2. The restore's plan is put into the log, behind those of all batches. From here on it is carried out for certain.
3. The table is taken back.
4. The restore's commit is put. Its cursors, as the plan's, are those of the batch that the table stands at.
5. The outcome is kept, before anything else is planned.

So a batch behind a restore reads from where the table stands, whoever makes it. The plan of a restore is never followed
by another one before its commit is there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from lakestream.errors import FencedError, RestoreError, RetryLaterError
from lakestream.faults import reach
from lakestream.kinesis.lineage import out_of_reach, unread_since
from lakestream.log import Back, Outcome, ServiceRequest, Work
from lakestream.model import BatchCommit, BatchPlan, Definition, Restore, Trim, in_a_line
from lakestream.stopping import StopSignal

logger = logging.getLogger(__name__)

_AGAIN = 60.0
"""Seconds after which a restore that could not be decided on is tried again: each try closes the sink and opens it."""


class Table(Protocol):
    """What is needed of the table, while no sink has it open."""

    def require(self, instant: str, batch: int, checkpoint: str, comment: str) -> None: ...
    def restore(self, instant: str) -> None: ...
    def release(self, instant: str, comment: str) -> None: ...


class Requests(Protocol):
    """Where requests come from, and their outcomes go."""

    def next(self) -> ServiceRequest | None: ...
    def decide(self, request: ServiceRequest) -> bool: ...
    def done(self, outcome: Outcome) -> bool: ...
    def has_outcome(self, number: int) -> bool: ...


class Log(Protocol):
    """What is needed of the checkpoint log."""

    @property
    def epoch(self) -> int: ...
    @property
    def checkpoint(self) -> object: ...
    @property
    def services(self) -> Requests: ...
    def last_commit(self) -> BatchCommit | None: ...
    def pending_plans(self) -> tuple[BatchPlan, ...]: ...
    def put_plan(self, plan: BatchPlan) -> None: ...
    def put_commit(self, commit: BatchCommit) -> None: ...
    def check_fence(self) -> None: ...
    def expire(self) -> None: ...
    def rejects_behind(self, batch: int) -> tuple[str, ...]: ...


class Restorer:
    """Carries out the restores of one writer. A request that cannot be fulfilled fails no batch."""

    def __init__(
        self,
        log: Log,
        table: Table,
        definition: Definition,
        trim: Callable[[Trim | None], Trim],
        stop: StopSignal,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make one.

        Args:
            log: taken over.
            table: of the writer.
            definition: by which the driver makes rows.
            trim: what the stream may have trimmed by now, behind what was known before.
            stop: ends the run; a restore that is not planned yet is left to the next one.
            now: the driver's clock.
            monotonic: seconds, by a clock that nobody sets.
        """
        self._log = log
        self._table = table
        self._definition = definition
        self._trim = trim
        self._stop = stop
        self._now = now
        self._monotonic = monotonic
        self._wanted = threading.Event()
        self._left = 0
        self._put_off = (0, 0.0)
        """Number of a request that could not be decided on, and when that is tried again."""

    def take(self, request: ServiceRequest) -> None:
        """Have a restore carried out as soon as no batch is written, unless a driver with another document is to.

        Raises:
            RestoreError: this driver took over since, and has the document from before the edit still. Left to the next
                one, it would keep all other work waiting if that edit never comes.
        """
        if self._is_ours(request):
            self._want(request)
        elif request.back is not None and self._log.epoch > request.back.document.epoch:
            raise RestoreError(
                "the writer's driver was started anew before the edited document reached it, by which the restore was "
                "asked for: ask again, once that is applied"
            )
        elif self._left != request.number:
            logger.info("request %d: a restore, left to the driver of the edited document", request.number)
            self._left = request.number

    def _is_ours(self, request: ServiceRequest) -> bool:
        return request.is_for(self._definition.digest, self._log.epoch)

    def _want(self, request: ServiceRequest) -> None:
        put_off, until = self._put_off
        if request.number == put_off and self._monotonic() < until:
            return
        if not self._wanted.is_set():
            logger.info("request %d: a restore, once the batches in hand are written", request.number)
            self._wanted.set()

    def look(self) -> None:
        """Look whether somebody has asked for a restore."""
        request = self._log.services.next()
        if request is not None and request.work is Work.RESTORE and self._is_ours(request):
            self._want(request)

    def is_wanted(self) -> bool:
        """Whether a restore is to be carried out. From any thread."""
        return self._wanted.is_set() and not self._stop.is_set()

    def carry_out(self) -> int:
        """Carry out the restore that was begun, or is wanted, if there is one; how many batches it was.

        All other plans are committed, and no sink is open.

        Raises:
            FencedError: another driver has taken over.
            RetryLaterError: the outcome cannot be kept.
            LakeStreamError: of log and table, behind the plan; another start goes on with it. Also if nobody can tell
                whether the restore that was committed last has its outcome.
        """
        pending = self._log.pending_plans()
        last = self._log.last_commit()
        if pending and pending[0].restore is not None:
            self._undo(pending[0], pending[0].restore)
            self._tell(pending[0].restore)
            return 1
        request = self._log.services.next()
        if last is not None and last.restore is not None and self._is_untold(last.restore, request):
            self._tell(last.restore)
            return 0
        if request is None or request.back is None or not self._is_ours(request):
            self._wanted.clear()  # it was cancelled; what is asked for instead is no restore, or left to another driver
        if pending or last is None or request is None or request.back is None or not self.is_wanted():
            return 0
        if not self._log.services.decide(request):
            self._wanted.clear()
            self._put_off = request.number, self._monotonic() + _AGAIN
            return 0
        if (plan := self._planned(request, request.back, last)) is None:
            return 0
        assert plan.restore is not None
        self._log.put_plan(plan)
        reach("planned")
        self._undo(plan, plan.restore)
        self._tell(plan.restore)
        return 1

    def _is_untold(self, restore: Restore, request: ServiceRequest | None) -> bool:
        """Whether the restore that was committed last has no outcome yet. `request`: that has none, as far as is known;
        if nobody could look, a batch behind the restore would have it carried out once more."""
        if request is not None:
            return request.number == restore.request
        return not self._log.services.has_outcome(restore.request)

    def _planned(self, request: ServiceRequest, back: Back, last: BatchCommit) -> BatchPlan | None:
        """The restore's plan; None: it cannot be, and the outcome says why."""
        try:
            self._require_readable(back, last)
            checkpoint = str(self._log.checkpoint)
            self._table.require(request.instant, back.standing.batch, checkpoint, _comment(request.number))
        except FencedError:
            raise
        except Exception as error:
            logger.warning("request %d, a restore, failed: %s", request.number, error, exc_info=error)
            self._table.release(request.instant, _comment(request.number))
            self._end(Outcome(request.number, self._now(), in_a_line(error)))
            return None
        standing = back.standing
        return BatchPlan(
            batch=last.batch + 1,
            epoch=self._log.epoch,
            planned_at=self._now(),
            base=None,
            horizon=standing.horizon if back.rereads else last.horizon,
            caught_up=False,
            ranges=(),
            cursors=standing.cursors if back.rereads else last.cursors,
            trim=last.trim,
            definition=self._definition,
            taken=standing.taken if back.rereads else last.taken,
            read_from=last.read_from,
            restore=Restore(request.number, request.instant, standing.batch, back.rereads),
        )

    def _require_readable(self, back: Back, last: BatchCommit) -> None:
        if not back.rereads:
            return
        if (lost := out_of_reach(back.standing.cursors, trim := self._trim(last.trim))) is not None:
            raise RestoreError(
                f"{lost.shard_id} has to be read again from {unread_since(lost):%Y-%m-%d %H:%M:%S} UTC on, and the "
                f"stream retains {trim.retention}"
            )

    def _undo(self, plan: BatchPlan, restore: Restore) -> None:
        # Before the lake changes, as before each batch.
        self._log.check_fence()
        logger.info("restoring the table to %s, of batch %d", restore.instant, restore.batch)
        self._table.restore(restore.instant)
        reach("sink_committed")
        commit = BatchCommit.of(plan, epoch=self._log.epoch, committed_at=self._now())
        if restore.rereads:
            commit = replace(commit, readmits=self._log.rejects_behind(restore.batch))
        self._log.put_commit(commit)
        reach("committed")
        logger.info("batch %d: the table is as batch %d has left it", plan.batch, restore.batch)
        self._log.expire()

    def _tell(self, restore: Restore) -> None:
        self._table.release(restore.instant, _comment(restore.request))
        self._end(Outcome(restore.request, self._now()))

    def _end(self, outcome: Outcome) -> None:
        if not self._log.services.done(outcome):
            # A plan behind it would make the restore look as if it had never been carried out.
            raise RetryLaterError(f"the outcome of request {outcome.number} cannot be kept; the next start does it")
        self._wanted.clear()


def _comment(request: int) -> str:
    """Of the savepoint that a restore makes for itself."""
    return f"for the restore of request {request}"
