"""The micro-batch loop of one writer: plan → read → write → commit.

The steps of a batch, and what a kill between two of them leaves for the next driver:

1. the plan is put down, if absent      → it is replayed, range by range
2. its records are fetched              → they are fetched again, the same ones
3. unusable records are quarantined     → their objects are written again, in place of all earlier ones
4. the sink makes the rows visible      → the sink finds the batch, or writes it again as the same one
5. the commit is put down, if absent    → the next batch begins

A replay looks first whether the batch is visible: then step 3 was done by the same attempt, and stays as it is.

While a batch is in steps 3 to 5, the next one goes through steps 1 and 2 in a second thread: at once if there is a
backlog, and else so late that it is ready when the sink is (`pacing`). So there may be two plans without a commit; they
are replayed in their order.

A batch may also take files, as somebody has asked for (of the quarantine, to replay its records, or others, for a
backfill), or part of the stream once more: it goes through the same steps, but for where its records come from, and
leaves all cursors of the stream where they are.
It takes turns with the batches of the stream.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Generic

from lakestream.errors import QuarantineLimitError
from lakestream.faults import reach
from lakestream.model import BatchCommit, BatchPlan, Definition, FileEntry, SinkCommit, SpanDue
from lakestream.pacing import Pace
from lakestream.ports import Fetched, Fetcher, Log, Observer, Output, Planner, Rows
from lakestream.stopping import StopSignal

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """When batches begin, what becomes of their records, and what fails one."""

    interval: timedelta
    """Between the beginnings of two batches; a backlog does not wait for it."""
    definition: Definition
    """What fetcher and output go by; new plans bear it."""
    max_rejected: float = 1.0
    """Fraction of a batch's records that may be unusable before the job fails instead."""
    max_requested: int = 50_000
    """Records of a request that a batch takes, but for the first part, so that the stream does not wait long."""


class Until(Enum):
    """When a run ends by itself."""

    STOPPED = "stopped"
    """Never: SIGTERM or a drain request ends it."""
    CAUGHT_UP = "caught up"
    """Once all is committed that had arrived when the run began."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as the engine sees it. Tests drive it."""

    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    """What plans and commits are dated by. It may be set, also back."""
    wait: Callable[[threading.Event, float], object] = field(default=threading.Event.wait)
    """For an event, so many seconds at most."""
    monotonic: Callable[[], float] = field(default=time.monotonic)
    """Seconds: what is waited for and measured by."""


@dataclass(slots=True)
class _Prepared(Generic[Rows]):
    """A batch after step 2."""

    plan: BatchPlan
    fetched: Fetched[Rows] | None
    """None for a heartbeat."""
    replay: bool
    seconds: dict[str, float]


_LULL = 1.0
"""Seconds between two calls of `between_batches` while there is no batch to write."""
_LOOK = 10.0
"""Seconds between two looks for what somebody has asked for, while the stream rests: a trigger may be an hour apart."""


class Engine(Generic[Rows]):
    """Runs the batches of one writer under one definition, one after the other, until it is told to stop.

    Raises what its parts raise. An error ends the run; whoever starts the writer again goes on with
    the batch that failed.
    """

    def __init__(
        self,
        *,
        settings: EngineSettings,
        log: Log,
        planner: Planner,
        fetcher: Fetcher[Rows],
        output: Output[Rows],
        observer: Observer,
        stop: StopSignal,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._log = log
        self._planner = planner
        self._fetcher = fetcher
        self._output = output
        self._observer = observer
        self._stop = stop
        self._yields: Callable[[], bool] = lambda: False
        self._clock = clock or Clock()
        self._replays: deque[BatchPlan] = deque()
        self._behind: BatchPlan | BatchCommit | None = None
        self._may_take = False
        self._due = self._clock.monotonic()
        self._rests = False
        self._pace = Pace()
        self._looked: tuple[datetime, datetime] | None = None
        """When the last look found nothing to read, and `caught_up_to` by then; None: there was something."""
        self._free = threading.Event()
        """Whether no batch is in steps 3 to 5."""
        self._free.set()

    def run(self, until: Until = Until.STOPPED, yields: Callable[[], bool] = lambda: False) -> int:
        """Run batches, those that are pending first; returns how many were committed.

        Args:
            until: when the run ends.
            yields: whether it is to end before another batch is planned, for what has to be done between two.

        A stop ends the run after the batch being written. One that was fetched ahead keeps its plan,
        and is replayed by the next run.
        """
        self._yields = yields
        return self._run(self._log.pending_plans(), until)

    def replay(self, plans: Sequence[BatchPlan]) -> int:
        """Carry out the first of the pending plans, and make none; returns how many were committed."""
        return self._run(plans, None)

    def _run(self, replays: Sequence[BatchPlan], until: Until | None) -> int:
        """With `until` None, only the replays."""
        self._recover(replays)
        done = 0
        with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as ahead:
            coming = ahead.submit(self._prepare, until, 0.0)
            try:
                while (batch := self._await(coming)) is not None:
                    if self._stop.is_set():
                        _release(batch)
                        break
                    self._free.clear()
                    coming = ahead.submit(self._prepare, until, self._pace.spare)
                    self._finish(batch)
                    self._free.set()
                    # Between batches that somebody has asked for, the sink may not be free for long enough to look.
                    self._tell_idle()
                    done += 1
            except BaseException:
                if until is not None:
                    # The other thread must not go on to put a plan that nobody reads.
                    self._stop.fail()
                raise
            finally:
                self._free.set()
                _discard(coming)
        return done

    def _await(self, coming: Future[_Prepared[Rows] | None]) -> _Prepared[Rows] | None:
        while True:
            self._observer.between_batches()
            if wait([coming], timeout=_LULL).done:
                return coming.result()

    def _recover(self, replays: Sequence[BatchPlan]) -> None:
        last = self._log.last_commit()
        self._replays.extend(replays)
        if last is not None:
            self._behind = last
            self._planner.observe(last)
        if self._replays:
            logger.info("replaying %d batches that were planned but not committed", len(self._replays))

    def _prepare(self, until: Until | None, spare: float) -> _Prepared[Rows] | None:
        """Steps 1 and 2 of the next batch, at the tip after so many seconds. None: there will be no next one."""
        began = self._clock.monotonic()
        if replay := bool(self._replays):
            plan: BatchPlan | None = self._replays.popleft()
        elif until is None:
            return None
        else:
            plan, began = self._next_plan(until, spare)
            if plan is not None:
                self._log.put_plan(plan)
                reach("planned")
        if plan is None:
            return None
        self._behind = plan
        planned = self._clock.monotonic()
        fetched = None if plan.is_heartbeat else self._fetch(plan, replay=replay)
        seconds = {"plan": planned - began, "fetch": self._clock.monotonic() - planned}
        return _Prepared(plan, fetched, replay, seconds)

    def _fetch(self, plan: BatchPlan, *, replay: bool) -> Fetched[Rows]:
        self._observer.fetching(plan.batch)
        fetched = self._fetcher.fetch(plan, replay=replay)
        self._observer.fetched(plan, fetched.shards)
        return fetched

    def _next_plan(self, until: Until, spare: float) -> tuple[BatchPlan | None, float]:
        """Wait until a batch is due and there is something to do; the second value is when planning began, by the
        monotonic clock."""
        while True:
            if self._yields():
                return None, self._due
            began = self._clock.monotonic()
            if (plan := self._take(until)) is not None:
                return plan, began
            if self._rests:
                if until is Until.CAUGHT_UP and self._planner.missing == timedelta(0):
                    return None, self._due
                self._clock.wait(self._free, spare)
                left = self._due - self._clock.monotonic()
                self._stop.wait(min(left, _LOOK))
                if left > _LOOK and not self._stop.is_set():
                    continue
            if self._stop.is_set() or self._yields():
                return None, self._due
            began = self._clock.monotonic()
            self._due = began + self._settings.interval.total_seconds()
            plan = self._plan()
            # Behind a backlog's batch the next one begins at once.
            self._rests = plan is None or plan.caught_up
            self._may_take = True
            if until is Until.CAUGHT_UP and (missing := self._planner.missing) is not None:
                self._due = min(self._due, began + missing.total_seconds())
            if plan is not None:
                return plan, began
            self._tell_idle()

    def _tell_idle(self) -> None:
        # While a batch is at the sink, nobody knows whether batches go on.
        if (looked := self._looked) is not None and self._free.is_set():
            self._observer.idle(*looked)

    def _plan(self) -> BatchPlan | None:
        """The next batch of the stream, if there is anything to do."""
        behind = self._behind
        plan = self._planner.plan(
            batch=behind.batch + 1 if behind else 0,
            epoch=self._log.epoch,
            cursors=behind.cursors if behind else (),
            trim=behind.trim if behind else None,
        )
        caught_up_to = self._planner.caught_up_to
        self._looked = (self._clock.now(), caught_up_to) if plan is None and caught_up_to is not None else None
        if plan is None or behind is None:
            return plan and replace(plan, definition=self._settings.definition)
        return replace(plan, definition=self._settings.definition, taken=behind.taken, read_from=behind.read_from)

    def _take(self, until: Until) -> BatchPlan | None:
        """A batch of what somebody has asked for. One after each batch of the stream, which must not wait long; while
        the stream rests, any number."""
        behind = self._behind
        rests = self._rests and (until is Until.CAUGHT_UP or self._clock.monotonic() < self._due)
        if behind is None or self._stop.is_set() or not (self._may_take or rests):
            return None
        self._may_take = False
        definition = self._settings.definition
        most = self._settings.max_requested
        found = self._log.requested(behind.taken, definition.digest, most)
        if isinstance(found, SpanDue):
            found = self._planner.portion(found, behind.trim, most)
        if found is None:
            return None
        return BatchPlan(
            batch=behind.batch + 1,
            epoch=self._log.epoch,
            planned_at=self._clock.now(),
            base=None,
            horizon=behind.horizon,
            caught_up=behind.caught_up,
            ranges=(),
            cursors=behind.cursors,
            trim=behind.trim,
            definition=definition,
            parts=found.tasks,
            taken=found.taken,
            ends_request=not found.tasks,
            read_from=behind.read_from,
        )

    def _finish(self, batch: _Prepared[Rows]) -> None:
        """Steps 3 to 5."""
        began = self._clock.monotonic()
        sink: SinkCommit | None = None
        rejects: tuple[FileEntry, ...] = ()
        rejected_by = ""
        if batch.fetched is not None:
            try:
                rejects, sink, rejected_by = self._write(batch, batch.fetched)
            finally:
                _release(batch)
        seconds = {**batch.seconds, "write": self._clock.monotonic() - began}
        written = self._clock.now()
        shards = batch.fetched.shards if batch.fetched else ()
        reach("sink_committed")
        commit = BatchCommit.of(
            batch.plan,
            epoch=self._log.epoch,
            committed_at=written,
            sink=sink,
            # Of records that a transform takes together, rows are kept: there may be more of them.
            quarantined=min(sum(entry.rows for entry in rejects), sum(stats.taken for stats in shards)),
            rejects=rejects,
            shards=shards,
            seconds=seconds,
        ).finding(batch.fetched.findings() if batch.fetched else ())
        if rejects:
            commit = replace(commit, rejected_by=rejected_by)
        commit = commit.behind(self._log.last_commit())
        self._log.put_commit(commit)
        reach("committed")
        self._planner.observe(commit)
        self._observer.committed(commit, batch.fetched.arrivals if batch.fetched else ())
        self._log.expire()
        if batch.fetched is not None and not batch.plan.is_requested:
            self._pace = self._pace.after(sum(batch.seconds.values()), self._clock.monotonic() - began)

    def _write(self, batch: _Prepared[Rows], fetched: Fetched[Rows]) -> tuple[tuple[FileEntry, ...], SinkCommit, str]:
        """What it rejected and wrote, and by which definition it rejected; empty: nobody knows."""
        present = self._settings.definition
        # The last look before the lake changes: a sink without a lock of its own trusts in it.
        self._log.check_fence()
        self._output.check()
        if batch.replay and (found := self._output.find(batch.plan)) is not None:
            logger.info("batch %d is visible already; only its commit was missing", batch.plan.batch)
            # It may have been its plan's definition, or one that took over.
            own = batch.plan.definition
            by = present.rejects_as if own and own.digest == present.digest else ""
            return self._output.quarantined(batch.plan), found, by
        self._require_few_rejected(batch.plan, fetched)
        rejects: tuple[FileEntry, ...] = ()
        # An earlier attempt, by a definition that could not be kept to, may have rejected what is good now.
        if fetched.rejected_count or batch.replay:
            rejects = self._output.quarantine(batch.plan, fetched.rejected, replay=batch.replay)
        return rejects, self._output.write(batch.plan, fetched.rows, replay=batch.replay), present.rejects_as

    def _require_few_rejected(self, plan: BatchPlan, fetched: Fetched[Rows]) -> None:
        if plan.parts:
            return  # the stream is not to blame
        # Divided as the limit is written: 0.29 times 100 is less than 29.
        if fetched.rejected_count and fetched.rejected_count / fetched.taken > self._settings.max_rejected:
            raise QuarantineLimitError(
                f"batch {plan.batch}: {fetched.rejected_count} of {fetched.taken} records cannot be used, more than "
                f"spec.quarantine.maxFraction {self._settings.max_rejected:g} allows. Nothing of it was written. "
                "Mend the producer and spec.schema, or raise the limit to keep such records in quarantine."
            )


def _release(batch: _Prepared[Rows]) -> None:
    if batch.fetched is not None:
        batch.fetched.release()


def _discard(coming: Future[_Prepared[Rows] | None]) -> None:
    """Wait for the batch that is being prepared, and let go of it; the error that ends the run comes first."""
    try:
        batch = coming.result()
    except Exception:
        logger.debug("the batch being prepared failed as well", exc_info=True)
        return
    if batch is not None:
        _release(batch)
