"""Plans what is to be read once more: a span of the stream, apart from where the stream itself is read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from lakestream.kinesis.lineage import ended
from lakestream.kinesis.planner import Planner
from lakestream.kinesis.port import KinesisClient, Sleep
from lakestream.kinesis.settings import PlannerSettings
from lakestream.model import BatchCommit, Finished, Loss, Portion, Span, SpanDue, SpanProgress, Taken, Trim

logger = logging.getLogger(__name__)

_BYTES = 32 * 1024 * 1024
"""That a batch aims at, so that the stream does not wait long."""
_LATE = timedelta(seconds=1)
"""So long after a time a shard may still get records that arrived before it. A span can wait for them."""


@dataclass(frozen=True, slots=True)
class _At:
    """A request, with its planner."""

    request: int
    planner: Planner


class SpanPlanner:
    """Plans the portions of spans that are asked for, one behind the other, with a planner of the stream and cursors
    of their own. It remembers only what saves calls, and what commits tell it.

    A span is taken once it has passed. Each of its portions goes on where the one before ended; a shard is finished
    once it gives a record from behind the span, or nothing at a later time, or it is closed and read to its end. Its
    children come after it, also those that appear meanwhile.

    What was trimmed before it was read never stops the stream: it is skipped and told, or ends the request.
    """

    def __init__(
        self,
        client: KinesisClient,
        settings: PlannerSettings,
        *,
        slots: Callable[[], int],
        sleep: Sleep = time.sleep,
    ) -> None:
        """`settings` are those of the stream's planner; `slots` as there."""
        self._client = client
        self._settings = replace(
            settings,
            max_bytes=min(settings.max_bytes, _BYTES),
            skip_losses=True,
            # Nothing that is seen of a shard may be forgotten for being small: it may be that the shard is finished.
            heartbeat=timedelta(0),
        )
        self._may_lose = settings.skip_losses
        self._slots = slots
        self._sleep = sleep
        self._at: _At | None = None
        self._last: BatchCommit | None = None

    def close(self) -> None:
        self._forget()

    def observe(self, commit: BatchCommit) -> None:
        """Learn from a batch of any kind. By the thread that writes."""
        self._last = commit
        if (current := self._at) is not None and (learned := _as_streamed(commit)) is not None:
            current.planner.observe(learned)

    def portion(self, due: SpanDue, trim: Trim | None, records: int) -> Portion | None:
        """What the next batch takes of a request; None: nothing for now.

        Args:
            due: the request, and how far the batch before is with it.
            trim: what the stream was known to have trimmed at the batch before.
            records: that the batch aims at.

        Raises:
            StreamRecreatedError, StreamNotFoundError, KinesisError: as the stream's planner.
        """
        until = due.span.until
        if self._client.now() < until + _LATE:
            return None
        progress = due.progress or SpanProgress(trim=trim)
        while True:
            planner = self._planner_of(due, records)
            plan = planner.plan(batch=0, epoch=0, cursors=progress.cursors, trim=progress.trim)
            if plan is None:
                return None
            before = progress
            progress = SpanProgress(
                cursors=ended(plan.cursors, until, _LATE, planner.shards),
                trim=plan.trim,
                reached=plan.horizon,
                lost=progress.lost + tuple(_within(plan.losses, due.span)),
            )
            if self._lost(due, progress) and not self._may_lose:
                reached = due.progress.reached if due.progress else None  # of this plan nothing is taken
                return self._end(due, replace(progress, failed=True, reached=reached), Taken(due.request, 0, 0))
            if all(isinstance(cursor, Finished) for cursor in progress.cursors):
                done = self._end(due, replace(progress, reached=until), Taken(due.request, 1, 1))
                return replace(done, tasks=plan.tasks)
            # What was seen without a record to be read needs no batch of its own: it can be seen again.
            if plan.ranges:
                return Portion(plan.tasks, Taken(due.request, 0, 1, progress))
            if progress.cursors == before.cursors:
                return None  # a closed shard is lost whose children ListShards does not show yet

    def _planner_of(self, due: SpanDue, records: int) -> Planner:
        if self._at is None or self._at.request != due.request:
            self._forget()
            settings = replace(self._settings, span=due.span, max_records=records)
            planner = Planner(self._client, settings, slots=self._slots, sleep=self._sleep)
            if self._last is not None and (learned := _as_streamed(self._last)) is not None:
                planner.observe(learned)
            self._at = _At(due.request, planner)
        return self._at.planner

    def _lost(self, due: SpanDue, progress: SpanProgress) -> tuple[Loss, ...]:
        """Also what readers have found."""
        last = self._last.taken if self._last else None
        found = last.span.lost if last and last.span and last.request == due.request else ()
        return progress.lost + found

    def _end(self, due: SpanDue, progress: SpanProgress, taken: Taken) -> Portion:
        self._forget()
        if progress.failed:
            lost = "; ".join(map(str, self._lost(due, progress)))
            logger.warning("backfill %d ends here: records may have been trimmed before: %s", due.request, lost)
        return Portion((), replace(taken, span=replace(progress, cursors=())))

    def _forget(self) -> None:
        if self._at is not None:
            self._at.planner.close()
            self._at = None


def _as_streamed(commit: BatchCommit) -> BatchCommit | None:
    """A batch of a span as a planner learns from one of the stream; None: it is none."""
    span = commit.taken.span if commit.taken else None
    if not commit.of_span or span is None or span.reached is None:
        return None
    base = min((shard.first_arrival for shard in commit.shards), default=span.reached)
    return replace(commit, base=base, horizon=max(base, span.reached))


def _within(losses: Iterable[Loss], span: Span) -> Iterator[Loss]:
    """What else may have been trimmed is not asked for, as of a child whose parents were read beyond the span."""
    for loss in losses:
        if loss.since < span.until and loss.until >= span.since:
            since = max(loss.since, span.since)
            yield replace(loss, since=since, until=max(since, min(loss.until, span.until)))
