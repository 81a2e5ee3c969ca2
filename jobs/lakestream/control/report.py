"""From a commit to the progress that is published: the signals of the autoscaler, and no I/O.

Lag is the age of what may be unread. A shard whose tip was reached has none, whatever has arrived
since: that is the next batch's. The stream's lag is that of its slowest shard, never a sum or a mean,
for a reader of the table waits for the slowest.

Ages are told by Kinesis's clock, since arrival times are.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeGuard

from lakestream.model import (
    PAUSE,
    TABLE_SERVICES,
    BatchCommit,
    BatchPlan,
    Cursor,
    Finished,
    Reading,
    ServiceStatus,
    ShardStats,
    Unpinned,
    Upkeep,
    Waiting,
)
from lakestream_api import (
    CoreSeconds,
    FetchedBatch,
    Freshness,
    LossProgress,
    Progress,
    ShardProgress,
    StageSeconds,
    TableService,
)

logger = logging.getLogger(__name__)

_LONGEST_ERROR = 1000
"""Characters of a service's error that are told."""


class ProgressPublisher(Protocol):
    """Where progress goes: a file, Prometheus, the operator."""

    def publish(self, progress: Progress) -> None:
        """Publish one batch. May fail with any error: ingestion goes on without."""
        ...


class Reason(Protocol):
    """What a quarantine says of itself."""

    reason: str
    """Why one of the records is there that were written last."""


@dataclass(frozen=True, slots=True)
class Job:
    """What progress says of the job itself."""

    stream: str
    """Name of the LakeStream."""
    writer: str
    trigger_interval: timedelta
    cores: int
    """Of each executor."""


def progress_of(
    commit: BatchCommit,
    job: Job,
    *,
    executors: int,
    arrivals: Sequence[datetime] = (),
    commit_seconds: float = 0.0,
    previous: Progress | None = None,
    read_from: datetime | None = None,
    ahead: timedelta = timedelta(0),
) -> Progress:
    """The progress of a committed batch.

    Args:
        arrivals: arrival times at evenly spaced quantiles of the batch's records, first to last.
        commit_seconds: what writing the commit down took.
        previous: of the batch before; knows the last arrival of a shard that gave nothing to this one.
        read_from: what arrived earlier was read by earlier batches; None: nobody knows.
        ahead: what Kinesis's clock is ahead of the driver's.
    """
    visible = commit.committed_at + ahead
    shards = _shards(commit, visible, previous)
    return Progress(
        stream=job.stream,
        writer=job.writer,
        batch=commit.batch,
        epoch=commit.epoch,
        finished_at=commit.committed_at,
        records=commit.records,
        bytes=commit.bytes,
        kinesis_records=commit.kinesis_records,
        kinesis_bytes=commit.kinesis_bytes,
        quarantined=commit.quarantined,
        losses=_losses(commit),
        misplaced=commit.misplaced,
        filtered=commit.filtered,
        rows_written=commit.rows_written,
        seconds=_stages(commit, commit_seconds),
        trigger_interval=job.trigger_interval,
        executors=executors,
        cores=job.cores,
        slice_seconds=_slice(commit, read_from),
        horizon=commit.horizon,
        horizon_age_seconds=max(0.0, (visible - commit.horizon).total_seconds()),
        shards=shards,
        lag_seconds=max((shard.lag_seconds for shard in shards), default=0.0),
        freshness=_freshness(arrivals, visible),
        caught_up=commit.caught_up,
        file_groups=commit.sink.file_groups if commit.sink else None,
    )


def _losses(commit: BatchCommit) -> tuple[LossProgress, ...]:
    return tuple(LossProgress(shard_id=loss.shard_id, since=loss.since, until=loss.until) for loss in commit.losses)


def service_of(status: ServiceStatus) -> TableService:
    """How a service goes, as it is published."""
    return TableService(
        name=status.name,
        failed=status.failed,
        failing=status.failing,
        failing_since=status.failing_since,
        error=status.error[:_LONGEST_ERROR],
        seconds=status.seconds,
        behind_commits=status.behind,
    )


def _shards(commit: BatchCommit, visible: datetime, previous: Progress | None) -> tuple[ShardProgress, ...]:
    known = {} if previous is None else {shard.shard_id: shard.last_arrival for shard in previous.shards}
    stats = {shard.shard_id: shard for shard in commit.shards}
    return tuple(
        _shard(cursor, commit, visible, stats.get(cursor.shard_id), known.get(cursor.shard_id))
        for cursor in _unread(commit)
    )


def _unread(commit: BatchCommit) -> list[Reading | Unpinned | Waiting]:
    """The shards that may have something to read."""
    left = [cursor for cursor in commit.cursors if not isinstance(cursor, Finished)]
    known = [cursor for cursor in left if not isinstance(cursor, Waiting) or _is_next(cursor, commit)]
    are_behind = any(
        isinstance(cursor, Waiting) or (isinstance(cursor, Reading) and not cursor.tip_seen) for cursor in known
    )
    # What a batch has left, and none of these has, others have that wait.
    return known if commit.caught_up or are_behind else left


def _is_next(cursor: Cursor, commit: BatchCommit) -> TypeGuard[Waiting]:
    """Whether a shard waits for nothing any more: the batch has read its parents to their end.

    Without it a stream that is far behind would seem to have caught up where all its shards were split. A parent that
    is still being read was unread before this batch began, and so its children. (Those of one that had nothing left
    have been started.)
    """
    return isinstance(cursor, Waiting) and commit.base is not None and cursor.unread_since >= commit.base


def _slice(batch: BatchPlan | BatchCommit, read_from: datetime | None) -> float | None:
    """Seconds of arrival time that a batch covers: all shards are cut at one horizon.

    What leaves records behind began with its first record: a rest before it says nothing of how many come now.
    """
    begins = [begin for begin in (read_from, batch.base) if begin is not None]
    if not begins:
        return None
    begin = begins[0] if batch.caught_up else max(begins)
    return max(0.0, (batch.horizon - begin).total_seconds())


def _shard(
    cursor: Reading | Unpinned | Waiting,
    commit: BatchCommit,
    visible: datetime,
    stats: ShardStats | None,
    known: datetime | None,
) -> ShardProgress:
    # A caught-up batch left nothing unread in any shard, although busy ones stand before a record by now.
    tip = commit.caught_up or isinstance(cursor, Unpinned) or (isinstance(cursor, Reading) and cursor.tip_seen)
    # A child's bound is the beginning of its parents' last batch; what it gives next may have arrived a bit before
    # the horizon, but most has not.
    since = visible if tip else cursor.unread_since
    if isinstance(cursor, Waiting):
        since = max(since, commit.horizon)
    return ShardProgress(
        shard_id=cursor.shard_id,
        last_arrival=_last_arrival(cursor, stats, known),
        tip_reached=bool(tip),
        # Kinesis's clock is known to some milliseconds.
        lag_seconds=max(0.0, (visible - since).total_seconds()),
        records=stats.records if stats else 0,
        bytes=stats.bytes if stats else 0,
        kinesis_records=stats.kinesis_records if stats else None,
        kinesis_bytes=stats.stored_bytes if stats else None,
    )


def _last_arrival(cursor: Cursor, stats: ShardStats | None, known: datetime | None) -> datetime | None:
    if stats is not None:
        return stats.last_arrival
    if isinstance(cursor, Reading) and cursor.position.after:
        return cursor.arrival
    return known


def _stages(commit: BatchCommit, commit_seconds: float) -> StageSeconds:
    services, pause = (commit.sink.seconds.get(stage, 0.0) if commit.sink else 0.0 for stage in (TABLE_SERVICES, PAUSE))
    return StageSeconds(
        plan=commit.seconds.get("plan", 0.0),
        fetch=commit.seconds.get("fetch", 0.0),
        write=max(0.0, commit.seconds.get("write", 0.0) - services - pause),
        commit=max(0.0, commit_seconds),
        table_services=services,
        pause=pause,
    )


def _freshness(arrivals: Sequence[datetime], visible: datetime) -> Freshness | None:
    if not arrivals:
        return None
    # The later a record arrived, the fresher it is: 99 of 100 are fresher than the one at quantile 0.01.
    return Freshness(p50_seconds=_age(arrivals, 0.5, visible), p99_seconds=_age(arrivals, 0.01, visible))


def _age(arrivals: Sequence[datetime], quantile: float, visible: datetime) -> float:
    place = quantile * (len(arrivals) - 1)
    below = int(place)
    above = min(below + 1, len(arrivals) - 1)
    arrival = arrivals[below] + (place - below) * (arrivals[above] - arrivals[below])
    return max(0.0, (visible - arrival).total_seconds())


def _upkeep(table: Upkeep) -> dict[str, Any]:
    return {
        "table_services": tuple(map(service_of, table.services)),
        "remembered_deletes": table.remembered_deletes,
        "largest_file": table.largest_file,
    }


_LOOKS = 100
"""Of which the times are kept: as many as there may be while one batch is written."""


class ProgressReporter:
    """The engine's observer: makes the progress of each batch and hands it to every publisher."""

    def __init__(
        self,
        job: Job,
        publishers: Sequence[ProgressPublisher],
        *,
        executors: Callable[[], int],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        kinesis_now: Callable[[], datetime] | None = None,
        table: Upkeep | None = None,
        quarantine: Reason | None = None,
        core_seconds: Callable[[int], CoreSeconds | None] = lambda batch: None,
    ) -> None:
        """Make a reporter.

        Args:
            job: the job.
            publishers: asked in this order.
            executors: how many there are now; asked once a batch.
            now: the driver's clock, by which the commit was timed too.
            kinesis_now: Kinesis's clock; None: the two are the same.
            table: what is written to; asked once a batch.
            quarantine: asked likewise.
            core_seconds: what the tasks of a batch took; asked once, when it is committed.
        """
        self._job = job
        self._publishers = tuple(publishers)
        self._executors = executors
        self._now = now
        self._kinesis_now = kinesis_now or now
        self._table = table
        self._quarantine = quarantine
        self._core_seconds = core_seconds
        self._previous: Progress | None = None
        self._read_until: deque[datetime] = deque(maxlen=_LOOKS)

    def committed(self, commit: BatchCommit, arrivals: tuple[datetime, ...]) -> None:
        """Publish a batch, as soon as its commit is written down.

        One of a replay or a backfill is told in the log alone: lag, freshness and throughput are the stream's.
        """
        if commit.is_requested:
            self._core_seconds(commit.batch)  # or they would count as the next batch's
            logger.info("%s", _requested(commit))
            _tell_losses(commit)
            return
        now = self._now()
        progress = progress_of(
            commit,
            self._job,
            executors=self._executors(),
            arrivals=arrivals,
            commit_seconds=(now - commit.committed_at).total_seconds(),
            previous=self._previous,
            read_from=self._read_before(commit.horizon),
            ahead=self._kinesis_now() - now,
        )
        if self._table is not None:
            progress = progress.model_copy(update=_upkeep(self._table))
        if self._quarantine is not None:
            progress = progress.model_copy(update={"quarantine_reason": self._quarantine.reason})
        progress = progress.model_copy(update={"core_seconds": self._core_seconds(commit.batch)})
        self._previous = progress
        self._read_until.append(commit.horizon)
        logger.info(
            "batch %d: %d records%s, %d rows, %d in quarantine, %.1f s of work, lag %.1f s",
            progress.batch,
            progress.records,
            f", {progress.filtered} left out by the filter" if progress.filtered else "",
            progress.rows_written,
            progress.quarantined,
            progress.seconds.total,
            progress.lag_seconds,
        )
        _tell_losses(commit)
        for publisher in self._publishers:
            try:
                publisher.publish(progress)
            except Exception:
                # The batch is committed. Progress that is missing makes the autoscaler hold, and nothing worse.
                logger.exception("the progress of batch %d could not be published", progress.batch)

    def fetched(self, plan: BatchPlan, shards: Sequence[ShardStats]) -> FetchedBatch:
        """What a batch has that is fetched, and not written yet. By the thread that prepares batches."""
        read_from = self._read_before(plan.horizon)
        self._read_until.append(plan.horizon)
        return FetchedBatch(
            batch=plan.batch,
            fetched_at=self._now(),
            records=sum(shard.records for shard in shards),
            bytes=sum(shard.bytes for shard in shards),
            slice_seconds=_slice(plan, read_from),
            largest_shard_bytes=max((shard.stored_bytes for shard in shards), default=0),
        )

    def _read_before(self, horizon: datetime) -> datetime | None:
        # There may be some of later batches among them, which are prepared while this one is written.
        return max((until for until in tuple(self._read_until) if until < horizon), default=None)

    def idle(self, caught_up_to: datetime) -> None:
        """All that arrived before this is read: the next batch covers what comes after it. From any thread."""
        self._read_until.append(caught_up_to)


def _tell_losses(commit: BatchCommit) -> None:
    for loss in commit.losses:
        logger.warning("batch %d: records were trimmed before they were read, and skipped: %s", commit.batch, loss)


def _requested(commit: BatchCommit) -> str:
    """What a batch of a replay or a backfill was."""
    taken = commit.taken
    assert taken is not None  # the plan's type sees to it
    if commit.ends_request:
        return f"batch {commit.batch}: request {taken.request} has ended"
    if commit.of_span and taken.span is not None:
        return (
            f"batch {commit.batch}: {commit.records} records of the stream read once more, {commit.rows_written} rows, "
            f"{commit.quarantined} in quarantine; backfill {taken.request} has come to "
            f"{taken.span.reached:%Y-%m-%d %H:%M:%S} UTC with {taken.span.records} records"
        )
    request, parts, of = taken.request, taken.parts, taken.of
    counts = f"batch {commit.batch}: {commit.records} records of the quarantine read once more"
    if commit.backfills:
        counts = f"batch {commit.batch}: {commit.records} records of files"
    what = "backfill" if commit.backfills else "replay"
    return (
        f"{counts}, {commit.rows_written} rows, {commit.quarantined} in quarantine; {what} {request} has come to part "
        f"{parts} of {of}"
    )
