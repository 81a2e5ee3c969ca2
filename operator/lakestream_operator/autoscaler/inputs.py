"""What a decision is based on: the window of one writer, from its driver's report and its pods. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class BatchObservation:
    """One committed batch."""

    batch: int
    """Its number; counts up without gaps."""
    finished_at: datetime
    """When it was committed, by the driver's clock."""
    records: int
    bytes: int
    """Of record data."""
    prepare_seconds: float
    """Planning and fetching; runs beside the writing of the batch before."""
    finish_seconds: float
    """Writing, committing, and waiting for table services."""
    executors: int
    """That ran it."""
    lag_seconds: float
    """Of the slowest shard when the batch was committed; 0 at the tip."""
    open_shards: int
    """Shards being read."""
    arrival_rate: float | None = None
    """Records per second at which its records arrived in the stream; None: not known."""
    backlog_records: float = 0.0
    """Estimate of the records left unread."""
    fetch_seconds: float = 0.0
    """The part of `prepare_seconds` in which records were read."""
    largest_shard_bytes: int = 0
    """Of the shard that gave most; 0: not known."""
    file_groups: int = 0
    """That it was written to, each by one task; 0: the sink knows no such bound."""
    horizon: datetime | None = None
    """All that arrived earlier is in the table; None: not known."""
    fetch_work: float | None = None
    """Core-seconds of tasks; None: the driver is of a release that does not tell."""
    write_work: float | None = None


@dataclass(frozen=True, slots=True)
class FetchedObservation:
    """The newest batch that is fetched: it tells what arrives before it is committed."""

    batch: int
    at: datetime
    """When it was fetched."""
    records: int
    bytes: int
    span: float
    """Seconds of arrival time that it covers."""
    largest_shard_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ExecutorsObservation:
    """The executors as driver and cluster report them."""

    target: int
    """How many the driver has asked for."""
    registered: int
    """Running and known to the driver, those being decommissioned excluded."""
    pending_since: datetime | None = None
    """Since when the oldest executor pod has waited for a node; None: none waits."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What bounds a batch: `spec.trigger` and `spec.resources.executor.cores`."""

    interval: float
    """Seconds between the beginnings of two batches at the tip."""
    max_records: int
    max_bytes: int
    cores: int
    """Of each executor."""


@dataclass(frozen=True, slots=True)
class ScalingWindow:
    """All that is known of one writer at one evaluation."""

    limits: BatchLimits
    batches: tuple[BatchObservation, ...] = ()
    """Newest last, as many as the driver still reports. Those seen before are known by their numbers."""
    executors: ExecutorsObservation | None = None
    """None: the driver has not reported yet."""
    reported_at: datetime | None = None
    """When the driver last reported anything; None: never."""
    caught_up_at: datetime | None = None
    """When the driver last looked at the stream, found nothing to read, and was at the tip."""
    consumers: int = 1
    """Writers that read this stream; they share the read limit of each shard."""
    fetched: FetchedObservation | None = None
    """None: no batch is fetched yet, or the driver is of a release that does not tell."""
    fullest_shard: str = ""
    """That gave most bytes to the last batch; empty: not known."""
