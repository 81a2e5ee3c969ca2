"""What the planner and the reader need of Kinesis, in its own words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from lakestream.model import HashKeys, Position

MAX_RECORDS_PER_CALL = 10_000
"""Limit of GetRecords."""

CLOCK_ERROR = timedelta(seconds=1)
"""How far behind the server's clock ours may be: its answers tell whole seconds."""

Sleep: TypeAlias = Callable[[float], None]
"""Waits for a number of seconds."""
Monotonic: TypeAlias = Callable[[], float]
"""Seconds from an arbitrary start, never going back."""

IteratorStart: TypeAlias = Position | datetime | None
"""Where a shard iterator begins: at or after a sequence number, at a time, or (None) at TRIM_HORIZON."""


Subscribe: TypeAlias = "Callable[[str, Position], Iterator[RecordPage]]"
"""Has Kinesis push a shard's records from a place on, for five minutes at most; behind the last page of a closed shard
there is no next iterator. It raises a KinesisError where nothing is pushed, or no more: that is not tried again."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard as ListShards tells of it."""

    shard_id: str
    parents: tuple[str, ...]
    """ParentShardId and AdjacentParentShardId: none, one (split) or two (merge)."""
    hash_keys: HashKeys
    ending_sequence: int | None
    """EndingSequenceNumber: at or behind the last record of a closed shard; None while the shard is open."""


@dataclass(frozen=True, slots=True)
class StreamSummary:
    """Who a stream is: a stream that was deleted and created again keeps its ARN, but not its creation time."""

    arn: str
    created_at: datetime
    retention: timedelta
    open_shards: int
    is_updating: bool
    """Whether its shards or settings are being changed; no other change is taken meanwhile."""
    places_by_key: bool
    """Whether a record's key decides its shard; else Kinesis does (RecordDistributionStrategy AUTO, on-demand only)."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer of enhanced fan-out, which Kinesis pushes records to."""

    stream_arn: str
    """What it is a consumer of."""
    status: str
    """ACTIVE, or CREATING or DELETING."""


@dataclass(frozen=True, slots=True)
class RecordPage:
    """The answer of one GetRecords call, or what is pushed at a time, as columns of equal length in the order of the
    shard."""

    sequences: Sequence[str]
    """Sequence numbers, decimal."""
    arrivals: Sequence[int]
    """Approximate arrival times, microseconds since 1970 UTC."""
    partition_keys: Sequence[str | None]
    """None: the producer gave none, which only some streams accept."""
    data: Sequence[bytes]
    next_iterator: str | None
    """None: the shard is closed and nothing lies behind this page."""
    millis_behind: int
    """MillisBehindLatest. 0: nothing lay behind this page when Kinesis answered."""

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def at_tip(self) -> bool:
        return self.millis_behind == 0


class KinesisClient(Protocol):
    """One stream of Kinesis. Thread-safe.

    Implementations retry throttling, server errors and broken connections for a while; what they
    raise in the end is a KinesisError.
    """

    def now(self) -> datetime:
        """Kinesis time: never ahead of the server's clock, so AT_TIMESTAMP accepts it, and no further behind than
        `CLOCK_ERROR`. Asks Kinesis if it has to."""

    def describe_stream_summary(self) -> StreamSummary:
        """Raises StreamNotFoundError."""

    def list_shards(self) -> tuple[Shard, ...]:
        """All shards that Kinesis still knows, open and closed, from all pages."""

    def get_shard_iterator(self, shard_id: str, start: IteratorStart) -> str:
        """Raises StreamNotFoundError if the stream, or the shard, is gone."""

    def get_records(self, iterator: str, limit: int) -> RecordPage:
        """At most `limit` records (1 to 10,000), perhaps none although more follow.

        Raises:
            ExpiredIteratorError: the iterator is older than five minutes.
        """
