"""One stream: its shards and what becomes of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from lakestream_localkinesis.core.changes import Change
from lakestream_localkinesis.core.consumer import Consumer
from lakestream_localkinesis.core.hashing import HashRange, even_ranges, key_bytes
from lakestream_localkinesis.core.limits import KIB, CallRate, Limits
from lakestream_localkinesis.core.ondemand import Demand
from lakestream_localkinesis.core.shard import Shard

HOUR_MS = 3600 * 1000
DEFAULT_RETENTION_HOURS = 24
SWEEP_MS = 1000
REMEMBERED_MS = 24 * HOUR_MS
"""For so long it is known which shards there were."""
LEAST_RECORD_KIB = 1024
MOST_RECORD_KIB = 10 * 1024


class StreamStatus(StrEnum):
    """The StreamStatus of the API."""

    CREATING = "CREATING"
    DELETING = "DELETING"
    ACTIVE = "ACTIVE"
    UPDATING = "UPDATING"


class StreamMode(StrEnum):
    """The StreamMode of the API."""

    PROVISIONED = "PROVISIONED"
    ON_DEMAND = "ON_DEMAND"


class RecordDistribution(StrEnum):
    """The RecordDistributionStrategy of the API."""

    AUTO = "AUTO"
    USER_PARTITION_KEY = "USER_PARTITION_KEY"


@dataclass(frozen=True, slots=True)
class Transition:
    """A change under way; the stream shows `status` until it takes effect."""

    status: StreamStatus
    due_ms: int
    change: Change


@dataclass(eq=False, slots=True)
class Stream:
    """A stream with all shards that are open or retained, by index."""

    name: str
    arn: str
    id: str
    created_ms: int
    mode: StreamMode
    limits: Limits
    shards: dict[int, Shard] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    retention_hours: int = DEFAULT_RETENTION_HOURS
    max_record_bytes: int = LEAST_RECORD_KIB * KIB
    """Of data and partition key."""
    distribution: RecordDistribution = RecordDistribution.USER_PARTITION_KEY
    """Provisioned streams go by partition keys."""
    reshardings_ms: list[int] = field(default_factory=list)
    """When UpdateShardCount was called, for its quota of ten a day."""
    mode_changes_ms: list[int] = field(default_factory=list)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    """By name."""
    rates: dict[str, CallRate] = field(default_factory=dict)
    """Of the operations that are limited per stream."""
    transition: Transition | None = None
    demand: Demand = field(default_factory=Demand)
    next_index: int = 0
    expired: list[tuple[int, Shard]] = field(default_factory=list)
    """Shards that are remembered, without their records, and when they were gone."""
    trimmed_ms: int = 0
    """The horizon when retention last changed: what was gone then stays gone, however long retention is now."""
    deleted: bool = False
    settled: int = 0
    """How often shards were opened, or `settle` has changed more than what retention and time alone say."""
    _swept_ms: int = 0
    _turn: int = 0
    _route_starts: list[bytes] = field(default_factory=list)
    _route_shards: list[Shard] = field(default_factory=list)

    @property
    def status(self) -> StreamStatus:
        """The status as of the last `settle`."""
        return self.transition.status if self.transition else StreamStatus.ACTIVE

    def begin(self, transition: Transition, now_ms: int) -> None:
        """Start a change; one that is due takes effect at once."""
        self.transition = transition
        self.settle(now_ms)

    def settle(self, now_ms: int) -> None:
        """Bring the stream up to date: changes that are due; once a second, retention and on-demand growth."""
        transition = self.transition
        if transition and transition.due_ms <= now_ms:
            self.transition = None
            transition.change.apply(self, transition.due_ms)
            self.settled += 1
            if self.deleted:
                # One that never had shards cannot grow.
                return
        gone = [consumer for consumer in self.consumers.values() if consumer.is_gone(now_ms)]
        for consumer in gone:
            del self.consumers[consumer.name]
            self.settled += 1
        if now_ms - self._swept_ms >= SWEEP_MS:
            self._swept_ms = now_ms
            self._sweep(now_ms)

    def horizon_ms(self, now_ms: int) -> int:
        """The arrival time before which records are gone."""
        return now_ms - self.retention_hours * HOUR_MS

    def retain(self, hours: int, now_ms: int) -> None:
        """Change the retention period; what is older than either period is gone at once and for good."""
        shorter = min(self.retention_hours, hours)
        self.trimmed_ms = max(self.trimmed_ms, now_ms - shorter * HOUR_MS)
        self.retention_hours = hours
        for shard in self.shards.values():
            shard.trim(self.trimmed_ms)

    def set_mode(self, mode: StreamMode) -> None:
        """Provisioned or on demand; a provisioned stream goes by partition keys."""
        self.mode = mode
        if mode is StreamMode.PROVISIONED:
            self.distribution = RecordDistribution.USER_PARTITION_KEY

    def shards_at(self, moment_ms: int) -> list[Shard]:
        """The shards as they were, at most `REMEMBERED_MS` ago; before there were any, the first ones."""
        present = list(self.shards.values())
        at_ms = max(moment_ms, first_opened_ms([*present, *(shard for _, shard in self.expired)]))
        present += [shard for gone_ms, shard in self.expired if gone_ms > at_ms]
        return [
            # A copy, without an end and without the records.
            replace(shard, closed_ms=None) if shard.closed_ms is not None and shard.closed_ms > at_ms else shard
            for shard in sorted(present, key=lambda shard: shard.index)
            if shard.created_ms <= at_ms
        ]

    def open_shards(self) -> list[Shard]:
        """The shards that take records, by hash key."""
        return self._route_shards

    def open_evenly(self, count: int, now_ms: int) -> None:
        """Open the first shards of a new stream."""
        self._reroute(0, 0, [self._open(part, now_ms) for part in even_ranges(count)])

    def adopt(self, shards: list[Shard]) -> None:
        """Take shards over, open and closed, as they were left."""
        self.shards = {shard.index: shard for shard in shards}
        for shard in shards:
            shard.trim(self.trimmed_ms)
        opened = sorted((shard for shard in shards if shard.is_open), key=lambda shard: shard.hash_range.start)
        self._reroute(0, 0, opened)

    def shard_for(self, digest: bytes) -> Shard:
        """The open shard that takes a hash key, given as 16 bytes."""
        return self._route_shards[bisect_right(self._route_starts, digest) - 1]

    def next_shard(self) -> Shard:
        """The open shard that takes a record of a stream that distributes by itself: each in its turn."""
        self._turn += 1
        return self._route_shards[self._turn % len(self._route_shards)]

    def split(self, shard: Shard, new_start: int, now_ms: int) -> None:
        """Close a shard and open two children, the second from `new_start`."""
        shard.close(now_ms)
        whole = shard.hash_range
        parts = (HashRange(whole.start, new_start - 1), HashRange(new_start, whole.end))
        self._reroute(self._route(whole.start), 1, [self._open(part, now_ms, (shard,)) for part in parts])

    def merge(self, lower: Shard, upper: Shard, now_ms: int) -> None:
        """Close two adjacent shards and open their child."""
        lower.close(now_ms)
        upper.close(now_ms)
        whole = HashRange(lower.hash_range.start, upper.hash_range.end)
        self._reroute(self._route(whole.start), 2, [self._open(whole, now_ms, (lower, upper))])

    def scale_evenly(self, count: int, now_ms: int) -> None:
        """Reshard to `count` equal ranges by splits, then merges: a child has two parents at most.

        Shards that exist only between the two steps stay behind, closed and empty, as in Kinesis.
        """
        wanted = {part.start for part in even_ranges(count)}
        present = {shard.hash_range.start for shard in self._route_shards}
        for start in sorted(wanted - present):
            self.split(self._route_shards[self._route(start)], start, now_ms)
        for start in sorted(present - wanted):
            upper = self._route(start)
            self.merge(self._route_shards[upper - 1], self._route_shards[upper], now_ms)

    def children(self, parent: Shard) -> list[Shard]:
        """The shards that go on where a closed one ended."""
        return [shard for shard in self.shards.values() if parent.id in shard.parents]

    def _open(self, hash_range: HashRange, now_ms: int, parents: tuple[Shard, ...] = ()) -> Shard:
        created_s = max([now_ms // 1000, *(parent.created_s + 1 for parent in parents)])
        names = tuple(parent.id for parent in parents)
        shard = Shard(self.next_index, hash_range, now_ms, created_s, self.limits, names)
        self.shards[shard.index] = shard
        self.next_index += 1
        return shard

    def _route(self, key: int) -> int:
        return bisect_right(self._route_starts, key_bytes(key)) - 1

    def _reroute(self, at: int, closed: int, opened: list[Shard]) -> None:
        self._route_shards[at : at + closed] = opened
        self._route_starts[at : at + closed] = [key_bytes(shard.hash_range.start) for shard in opened]
        self.settled += 1

    def _sweep(self, now_ms: int) -> None:
        horizon_ms = self.horizon_ms(now_ms)
        for shard in list(self.shards.values()):
            shard.trim(horizon_ms)
            if shard.closed_ms is not None and shard.closed_ms < horizon_ms:
                del self.shards[shard.index]
                self.expired.append((now_ms, shard))
                self.settled += 1
        self.expired = [(gone_ms, shard) for gone_ms, shard in self.expired if now_ms - gone_ms <= REMEMBERED_MS]
        if self.mode is StreamMode.ON_DEMAND and self.status is StreamStatus.ACTIVE:
            self._grow(now_ms)

    def _grow(self, now_ms: int) -> None:
        before = self.demand
        self.demand, hot = before.observe(
            now_ms,
            # Once a minute alone: it is asked at each request.
            (
                (shard.index, shard.counters.incoming_records, shard.counters.incoming_bytes)
                for shard in self._route_shards
            ),
        )
        self.settled += self.demand is not before
        for shard in [self.shards[index] for index in hot]:
            start, end = shard.hash_range.start, shard.hash_range.end
            # SplitShard leaves no shard with less than two hash keys, either.
            if end - start >= 3:
                self.split(shard, (start + end + 1) // 2, now_ms)


def first_opened_ms(shards: Iterable[Shard]) -> int:
    """When the oldest of these was opened; 0 if there are none."""
    return min((shard.created_ms for shard in shards), default=0)
