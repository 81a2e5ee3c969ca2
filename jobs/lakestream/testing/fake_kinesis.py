"""One Kinesis stream in memory, with a clock that only the test moves: for tests of planner and reader without I/O."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from lakestream.errors import (
    ExpiredIteratorError,
    KinesisRejectedError,
    KinesisUnavailableError,
    StreamNotFoundError,
)
from lakestream.kinesis.pages import arrival_micros
from lakestream.kinesis.port import IteratorStart, RecordPage, Shard, StreamSummary
from lakestream.model import HashKeys, Position, at

START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
"""Time at which a fake's stream was created."""

HASH_KEYS = 2**128
"""From 0 to the one below."""
_ITERATOR_LIFE = timedelta(minutes=5)
_SILENCE = timedelta(seconds=5)
"""From one push without records to the next."""


@dataclass(frozen=True, slots=True)
class FakeRecord:
    """A record as the stream keeps it."""

    shard_id: str
    sequence: int
    arrival: datetime
    partition_key: str
    data: bytes


@dataclass(slots=True)
class FakeShard:
    """A shard with everything that was ever put into it."""

    shard_id: str
    parents: tuple[str, ...]
    hash_keys: HashKeys
    records: list[FakeRecord] = field(default_factory=list)
    trimmed: int = 0
    """So many of the oldest records are gone."""
    ending_sequence: int | None = None
    closed_at: datetime | None = None
    is_listed: bool = True

    @property
    def is_open(self) -> bool:
        return self.ending_sequence is None


@dataclass(frozen=True, slots=True)
class _Iterator:
    shard_id: str
    start: IteratorStart
    issued_at: datetime
    emptied: int
    """Empty pages given since the last record."""


class FakeKinesis:
    """Implements KinesisClient. Not a model of limits or latency; the local server has those."""

    def __init__(self, shards: int = 1, *, retention: timedelta = timedelta(hours=24)) -> None:
        self.time = START
        self.created_at = START
        self.retention = retention
        self.places_by_key = True
        self.shards: dict[str, FakeShard] = {}
        self.calls: Counter[str] = Counter()
        """Calls by operation."""
        self.page_size = 10_000
        """Most records of a page, whatever the limit of the call is."""
        self.empty_pages = 0
        """Empty pages that precede every page with records."""
        self.latency = timedelta(0)
        """What goes by before each GetRecords answers."""
        self.failures: deque[Exception | None] = deque()
        """What the next calls of get_records raise, one each; None: nothing."""
        self.pushes: deque[int] = deque()
        """Pages that the next subscriptions give until their five minutes are over; of a negative number, until they
        break off. Without any left, they are refused."""
        self.stale_listings: deque[tuple[Shard, ...]] = deque()
        """What the next calls of list_shards answer, one each, in place of what there is."""
        self.listed_stale = False
        """Whether the last of them did."""
        self._sequence = 49_590_338_271_490_256_608_559_692_538_361_571_095
        self._iterators: list[_Iterator] = []
        for number in range(shards):
            self._open((), HashKeys(HASH_KEYS * number // shards, HASH_KEYS * (number + 1) // shards - 1))

    # What a test does to the stream

    def advance(self, by: timedelta) -> None:
        """Let time go by; what exceeds the retention is trimmed, and closed shards without records are dropped."""
        self.time += by
        floor = self.time - self.retention
        for shard in self.shards.values():
            while shard.trimmed < len(shard.records) and shard.records[shard.trimmed].arrival < floor:
                shard.trimmed += 1
            if shard.closed_at is not None and shard.closed_at < floor:
                shard.is_listed = False

    def sleep(self, seconds: float) -> None:
        """To be injected where the code under test sleeps."""
        self.advance(timedelta(seconds=seconds))

    def monotonic(self) -> float:
        return (self.time - START).total_seconds()

    def put(self, shard_id: str, data: bytes, *, key: str = "k", late: timedelta = timedelta(0)) -> FakeRecord:
        """Put a record into an open shard; `late` makes its arrival time older than now."""
        shard = self.shards[shard_id]
        assert shard.is_open, f"{shard_id} is closed"
        record = FakeRecord(shard_id, self._next_sequence(), self.time - late, key, data)
        shard.records.append(record)
        return record

    def split(self, shard_id: str) -> tuple[str, str]:
        """Close a shard; returns its two children."""
        self._close(shard_id)
        keys = self.shards[shard_id].hash_keys
        middle = (keys.first + keys.last) // 2
        low, high = HashKeys(keys.first, middle), HashKeys(middle + 1, keys.last)
        return self._open((shard_id,), low), self._open((shard_id,), high)

    def merge(self, one: str, other: str) -> str:
        """Close two shards; returns their child."""
        self._close(one)
        self._close(other)
        keys = [self.shards[shard_id].hash_keys for shard_id in (one, other)]
        return self._open((one, other), HashKeys(min(k.first for k in keys), max(k.last for k in keys)))

    def open_shards(self) -> list[str]:
        return [shard.shard_id for shard in self.shards.values() if shard.is_open]

    def listed(self, *, but: str | None = None) -> tuple[Shard, ...]:
        """What list_shards answers unless it is told otherwise; without one of the shards."""
        shards = (shard for shard in self.shards.values() if shard.is_listed and shard.shard_id != but)
        return tuple(Shard(s.shard_id, s.parents, s.hash_keys, s.ending_sequence) for s in shards)

    def history(self) -> list[FakeRecord]:
        """Every record that was ever put, shard by shard."""
        return [record for shard in self.shards.values() for record in shard.records]

    # KinesisClient

    def now(self) -> datetime:
        return self.time

    def describe_stream_summary(self) -> StreamSummary:
        self.calls["DescribeStreamSummary"] += 1
        arn = "arn:aws:kinesis:eu-west-1:123456789012:stream/fake"
        return StreamSummary(
            arn,
            self.created_at,
            self.retention,
            len(self.open_shards()),
            is_updating=False,
            places_by_key=self.places_by_key,
        )

    def list_shards(self) -> tuple[Shard, ...]:
        self.calls["ListShards"] += 1
        listed = self.listed()
        answer = self.stale_listings.popleft() if self.stale_listings else listed
        self.listed_stale = answer != listed
        return answer

    def get_shard_iterator(self, shard_id: str, start: IteratorStart) -> str:
        self.calls["GetShardIterator"] += 1
        shard = self.shards.get(shard_id)
        if shard is None or not shard.is_listed:
            raise StreamNotFoundError(f"ResourceNotFoundException: Shard {shard_id} in stream fake not found")
        if isinstance(start, datetime) and start > self.time:
            raise KinesisRejectedError(f"InvalidArgumentException: {start} is in the future")
        return self._iterator(_Iterator(shard_id, start, self.time, 0))

    def get_records(self, iterator: str, limit: int) -> RecordPage:
        self.calls["GetRecords"] += 1
        if self.failures and (failure := self.failures.popleft()) is not None:
            raise failure
        it = self._iterators[int(iterator)]
        return self._answer(it, limit)

    def subscribe(self, shard_id: str, start: Position) -> Iterator[RecordPage]:
        """What is pushed, as `lakestream.kinesis.port.Subscribe` has it."""
        self.calls["SubscribeToShard"] += 1
        if not self.pushes:
            raise KinesisUnavailableError("ResourceInUseException: subscribed less than 5 seconds ago")
        left = self.pushes.popleft()
        following: str | None = self._iterator(_Iterator(shard_id, start, self.time, 0))
        for _ in range(abs(left)):
            assert following is not None
            page = self._answer(replace(self._iterators[int(following)], issued_at=self.time), self.page_size)
            if not page.sequences:
                self.advance(_SILENCE)
            yield page
            following = page.next_iterator
            if following is None:
                return
        if left < 0:
            raise KinesisUnavailableError("the connection was closed")

    # Inside

    def _answer(self, it: _Iterator, limit: int) -> RecordPage:
        self.advance(self.latency)
        if self.time - it.issued_at > _ITERATOR_LIFE:
            # In place of one that was to: a reader bears so many in a row, and no more.
            if self.failures and isinstance(self.failures[0], ExpiredIteratorError):
                self.failures.popleft()
            raise ExpiredIteratorError("ExpiredIteratorException: Iterator expired")
        shard = self.shards[it.shard_id]
        begin = max(self._index(shard, it.start), shard.trimmed)
        if begin < len(shard.records) and it.emptied < self.empty_pages:
            return self._page(shard, [], begin, _Iterator(it.shard_id, it.start, self.time, it.emptied + 1))
        found = shard.records[begin : begin + min(limit, self.page_size)]
        start = Position(found[-1].sequence, after=True) if found else it.start
        return self._page(shard, found, begin + len(found), _Iterator(it.shard_id, start, self.time, 0))

    def _page(self, shard: FakeShard, found: list[FakeRecord], end: int, following: _Iterator) -> RecordPage:
        is_end = end == len(shard.records)
        behind = 0 if is_end else max(1, (self.time - shard.records[end].arrival) // timedelta(milliseconds=1))
        return RecordPage(
            sequences=[str(r.sequence) for r in found],
            arrivals=[arrival_micros(r.arrival) for r in found],
            partition_keys=[r.partition_key for r in found],
            data=[r.data for r in found],
            next_iterator=None if is_end and not shard.is_open else self._iterator(following),
            millis_behind=behind,
        )

    @staticmethod
    def _index(shard: FakeShard, start: IteratorStart) -> int:
        """Index of the first record at or behind a place."""
        for index, record in enumerate(shard.records):
            match start:
                case None:
                    return 0
                case datetime() if record.arrival >= start:
                    return index
                case Position() if at(record.sequence) >= start:
                    return index
        return len(shard.records)

    def _iterator(self, iterator: _Iterator) -> str:
        self._iterators.append(iterator)
        return str(len(self._iterators) - 1)

    def _next_sequence(self) -> int:
        self._sequence += 7
        return self._sequence

    def _open(self, parents: tuple[str, ...], hash_keys: HashKeys) -> str:
        shard_id = f"shardId-{len(self.shards):012d}"
        self.shards[shard_id] = FakeShard(shard_id, parents, hash_keys)
        return shard_id

    def _close(self, shard_id: str) -> None:
        shard = self.shards[shard_id]
        assert shard.is_open, f"{shard_id} is closed already"
        shard.ending_sequence, shard.closed_at = self._next_sequence(), self.time
