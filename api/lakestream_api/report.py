"""What a driver says of itself in its progress ConfigMap: the operator's only view of the data plane."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, AwareDatetime, Field

from lakestream_api.base import WireModel
from lakestream_api.bounds import LONG, LONGEST, MUCH, Count, Time, bounded
from lakestream_api.progress import CoreSeconds, Freshness, Progress, ShardProgress, StageSeconds, TableService
from lakestream_api.quantities import Duration
from lakestream_api.recent import Recent

# etcd keeps each version of a ConfigMap, and there is one after every batch of every driver.
MAX_BATCHES = 12
"""As many as an operator may have missed that was restarted: what it knew is written down every two minutes."""
KEPT_BATCHES = 300
"""What a driver keeps of them to add up: those of five minutes, if each takes a second."""
MAX_SHARDS = 10
MAX_MESSAGE = 4096

# Kinesis answers with milliseconds; a slice shorter than this says too little about a rate.
_SHORTEST_SLICE = timedelta(seconds=1)


class DriverState(StrEnum):
    """What a driver is doing."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    DRAINING = "DRAINING"
    DRAINED = "DRAINED"
    FAILED = "FAILED"


class ExecutorsReport(WireModel):
    """The executors of a driver."""

    target: Count
    """How many the driver has asked for."""

    registered: Count
    """How many can be given tasks: those being decommissioned are not counted."""

    decommissioning: Count = 0
    """How many hand over what they hold and then end."""


class BatchSummary(WireModel):
    """A batch without its shards. Fields that `Progress` has too mean the same."""

    batch: Count
    """Number of the batch."""

    finished_at: Time
    """When the batch was committed, by the driver's clock."""

    records: Count
    """Records read."""

    bytes: Count
    """Bytes of record data read."""

    kinesis_records: Count | None = None
    """Records read as Kinesis counts them, before aggregates are unpacked."""

    kinesis_bytes: Count | None = None
    """Bytes read as Kinesis counts them."""

    horizon: Time | None = None
    """Arrival time up to which all shards are read."""

    horizon_age_seconds: float | None = Field(default=None, ge=0, le=LONG)
    """How old the horizon was when the batch was committed."""

    quarantined: Count
    """Records that did not parse, or that the output cannot take."""

    misplaced: Count = 0
    """Records of aggregates that were left out, since they belong to other shards."""

    filtered: Count = 0
    """Records that `spec.filter` left out."""

    losses: Count = 0
    """Ranges of shards that were skipped, since their records were trimmed before they were read."""

    rows_written: Count
    """Rows that went to the sink."""

    seconds: Annotated[StageSeconds, AfterValidator(bounded)]
    """Seconds of each stage."""

    core_seconds: Annotated[CoreSeconds | None, AfterValidator(bounded)] = None
    """What the batch cost; none: Spark did not tell, or the driver is of a release that does not ask."""

    trigger_interval: Duration = Field(gt=timedelta(0), le=LONGEST)
    """The interval in force."""

    executors: Count = Field(ge=1)
    """Executors that ran the batch."""

    cores: Count = Field(ge=1)
    """Cores of each executor."""

    lag_seconds: float = Field(ge=0, le=LONG)
    """Lag of the slowest shard."""

    arrival_rate: float | None = Field(default=None, ge=0, le=MUCH)
    """Records per second at which the batch's records arrived in the stream; none when there is
    no batch before it to tell where its slice of arrival time began."""

    backlog_records: float | None = Field(default=None, ge=0, le=MUCH)
    """Estimate of the records left unread: over the shards, the rate of each times its lag. None
    along with `arrivalRate`."""

    open_shards: Count
    """Shards being read."""

    behind_shards: Count
    """Those of them that have a lag."""

    largest_shard_bytes: Count = 0
    """Bytes, as Kinesis counts them, of the shard that gave most to the batch: how uneven the shards are."""

    largest_shard_kinesis_records: Count = 0
    """Records, as Kinesis counts them, of the shard that gave most of these."""

    file_groups: Count | None = None
    """File groups that the batch wrote to."""

    freshness: Freshness | None = None
    """Freshness of the batch."""

    caught_up: bool
    """Whether every shard's tip was reached."""

    @classmethod
    def of(cls, progress: Progress, previous: Progress | None = None) -> Self:
        """Summarise a batch.

        Args:
            progress: the batch.
            previous: the batch before it, of the same driver; none for a driver's first.
        """
        rates, seconds = _arrival_rates(progress, previous), _slice(progress)
        # What shards gave that are finished has arrived as well; an older driver does not say over what time.
        arrived = progress.records / seconds if seconds is not None else sum(rates or ())
        return cls(
            **{name: getattr(progress, name) for name in _SHARED},
            losses=len(progress.losses),
            arrival_rate=None if rates is None else arrived,
            backlog_records=None
            if rates is None
            else sum(rate * shard.lag_seconds for rate, shard in zip(rates, progress.shards, strict=True)),
            open_shards=len(progress.shards),
            behind_shards=sum(shard.lag_seconds > 0 for shard in progress.shards),
            largest_shard_bytes=max((shard.stored_bytes for shard in progress.shards), default=0),
            largest_shard_kinesis_records=max((shard.stored_records for shard in progress.shards), default=0),
        )


class FetchedBatch(WireModel):
    """The newest batch that is fetched, though it may not be committed yet: it tells what arrives sooner."""

    batch: Count
    """Number of the batch."""

    fetched_at: Time
    """When all its records were fetched, by the driver's clock."""

    records: Count
    """Records read."""

    bytes: Count
    """Bytes of record data read."""

    slice_seconds: float | None = Field(default=None, ge=0, le=LONG)
    """Seconds of arrival time that the batch covers; none: nobody knows."""

    largest_shard_bytes: Count = 0
    """Bytes of the shard that gave most to the batch."""


_SHARED = sorted((set(BatchSummary.model_fields) & set(Progress.model_fields)) - {"losses"})


def _read_until(shard: ShardProgress, progress: Progress) -> datetime:
    """The arrival time up to which a shard is read."""
    # What arrives at the tip while a batch runs is for the next one: the slice ended where the work began.
    unread = progress.seconds.total if shard.lag_seconds == 0 else shard.lag_seconds
    return progress.finished_at - timedelta(seconds=unread)


def _slice(progress: Progress) -> float | None:
    """Seconds of arrival time that are told of."""
    told = progress.slice_seconds
    return None if told is None else max(told, _SHORTEST_SLICE.total_seconds())


def _arrival_rates(progress: Progress, previous: Progress | None) -> list[float] | None:
    """Records per second of each shard over the slice of arrival time that the batch took from it.

    Over arrival time and not the clock: a driver that works off a backlog reads faster than records come.
    """
    if (seconds := _slice(progress)) is not None:
        return [shard.records / seconds for shard in progress.shards]
    if previous is None:
        return None
    # An older driver does not say.
    began = {shard.shard_id: _read_until(shard, previous) for shard in previous.shards}
    slices = {
        shard.shard_id: max(_read_until(shard, progress) - began[shard.shard_id], _SHORTEST_SLICE)
        for shard in progress.shards
        if shard.shard_id in began
    }
    if progress.shards and not slices:
        return None
    # Of a child shard it is not known where the slice began; a batch takes about the same from all.
    usual = sum(slices.values(), timedelta()) / max(1, len(slices))
    return [shard.records / slices.get(shard.shard_id, usual).total_seconds() for shard in progress.shards]


def _cut(message: str) -> str:
    """A message on one line, of a length that can be shown."""
    text = " ".join(message.split())
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"


class Failure(WireModel):
    """Why a driver ended."""

    exit: int
    """Status that the driver ends with: 1 it may be started again, 2 the document asks for
    something impossible, 3 only a person can help, 4 another driver took over, 5 data was lost,
    6 the storage did not answer."""

    message: str
    """What happened, and what to do, in a sentence."""

    @classmethod
    def of(cls, status: int, message: str) -> Self:
        """A failure whose message is cut to a length that can be shown."""
        return cls(exit=status, message=_cut(message))


class Resharding(WireModel):
    """What became of an order to change the stream's shards."""

    ordered: Count = Field(ge=1)
    """Open shards that were asked for."""

    open_shards: Count | None = None
    """Open shards that the stream had when the driver looked last; none: Kinesis did not say."""

    updating: bool = False
    """Whether Kinesis is at it."""

    problem: str = ""
    """Why Kinesis refuses, in its own words; empty: it does not."""

    @classmethod
    def refused(cls, ordered: int, open_shards: int | None, problem: str) -> Self:
        """A refusal, cut to a length that can be shown."""
        return cls(ordered=ordered, open_shards=open_shards, problem=_cut(problem))


class DriverReport(WireModel):
    """One driver: what it does, its last batches, and how far the slowest shards are.

    As it is published it stays below 16 KiB with any number of shards.
    """

    stream: str
    """Name of the LakeStream."""

    writer: str
    """Name of the writer."""

    pod: str
    """Name of the driver's pod."""

    pod_uid: str
    """Uid of that pod; tells a report of the running driver from one that it found."""

    epoch: Count | None = None
    """Number of the driver's start; none before it has taken one."""

    started_at: AwareDatetime
    """When the driver's process began."""

    updated_at: AwareDatetime
    """When this was written, by the driver's clock."""

    caught_up_at: Time | None = None
    """When the driver last looked, found nothing to read, and was at every shard's tip: an idle
    stream has few batches."""

    caught_up_to: Time | None = None
    """What had arrived before this was read by then, by Kinesis's clock; none: the driver is of a release that does not
    tell."""

    state: DriverState
    """What the driver is doing."""

    drain: str | None = None
    """Name of the request to stop that is being followed."""

    executors: ExecutorsReport
    """Its executors at `updatedAt`."""

    batches: tuple[BatchSummary, ...] = ()
    """The last batches, the newest last: a driver keeps 300, and publishes 12."""

    recent: Recent | None = None
    """All batches of the last five minutes together; none before the first, or where a driver is of a release that
    publishes all of them."""

    fetched: FetchedBatch | None = None
    """The newest batch that is fetched; none before the first."""

    shards: tuple[ShardProgress, ...] = ()
    """The slowest shards after the last batch, at most 10, the slowest first."""

    fullest_shard: str = ""
    """Shard that gave most bytes to the last batch; empty: none gave any."""

    shard_count: Count = 0
    """All shards being read."""

    table_services: tuple[TableService, ...] = ()
    """How the work on the table beside its batches goes, as of the last batch."""

    largest_file: Count = 0
    """Bytes of the largest file that later batches add to; 0: none is known."""

    quarantine_reason: str = ""
    """Why one of the records that were last kept in quarantine is there."""

    resharding: Resharding | None = None
    """What became of the order to change the stream's shards; none without an order."""

    failure: Failure | None = None
    """Why the driver ended, in state `FAILED`; in state `STARTING`, what it waits for."""

    @property
    def has_worked(self) -> bool:
        """Whether the driver has committed a batch, or has looked and found nothing to read."""
        return bool(self.batches) or self.caught_up_at is not None

    @property
    def lately(self) -> Recent | None:
        """All batches of the last five minutes together; none before the first."""
        if self.recent is not None or not self.batches:
            return self.recent
        # Of a look before the last batch that tells; behind a restore it is of what is to be read again.
        is_newer = self.caught_up_at is not None and self.caught_up_at >= self.batches[-1].finished_at
        return Recent.of(self.batches, (self.caught_up_to or self.caught_up_at) if is_newer else None)

    def after(self, progress: Progress, previous: Progress | None = None) -> Self:
        """The report with one more batch, in state `RUNNING` unless the driver is stopping.

        Args:
            progress: the batch.
            previous: the batch before it, of the same driver; none for a driver's first.
        """
        stopping = self.state in (DriverState.DRAINING, DriverState.DRAINED)
        return self.model_copy(
            update={
                "epoch": progress.epoch,
                "updated_at": progress.finished_at,
                "state": self.state if stopping else DriverState.RUNNING,
                "batches": (*self.batches, BatchSummary.of(progress, previous))[-KEPT_BATCHES:],
                "shards": slowest(progress.shards),
                "fullest_shard": _fullest(progress.shards),
                "shard_count": len(progress.shards),
                "table_services": progress.table_services,
                "largest_file": progress.largest_file,
                "quarantine_reason": _cut(progress.quarantine_reason),
            }
        )

    def published(self) -> Self:
        """The report as it is written: with the last batches, and what those of some minutes add up to."""
        return self.model_copy(update={"batches": self.batches[-MAX_BATCHES:], "recent": self.lately})


def slowest(shards: Iterable[ShardProgress]) -> tuple[ShardProgress, ...]:
    """The shards with the highest lag, the highest first, at most 10."""
    return tuple(sorted(shards, key=lambda shard: (-shard.lag_seconds, shard.shard_id))[:MAX_SHARDS])


def _fullest(shards: Iterable[ShardProgress]) -> str:
    gave = [shard for shard in shards if shard.bytes]
    return max(gave, key=lambda shard: shard.stored_bytes).shard_id if gave else ""
