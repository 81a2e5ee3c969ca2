"""One shard: its place in the key space, its records, its rates."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from lakestream_localkinesis.core.hashing import HashRange
from lakestream_localkinesis.core.limits import CallRate, Limits, ReadRate, WriteRate
from lakestream_localkinesis.core.sequence import (
    arrival_s_of,
    first_sequence,
    last_sequence,
    record_index_of,
    record_sequence,
    sequence_base,
)

PAGE_BYTES = 10 * 1024 * 1024
PAGE_RECORDS = 10_000

SCAN_SPAN_MS = 15 * 60 * 1000
"""Shard time that one GetRecords call looks through.

Kinesis answers with empty pages while a reader crosses a stretch without records; the documentation promises
no length for it. A day of silence is 96 empty pages here.
"""

_RECORD_START = '{"SequenceNumber":"'
_NUMBER = slice(len(_RECORD_START), len(_RECORD_START) + 56)
"""Where a record has its sequence number."""

# Expired records are dropped in bulk: removing the head of a list costs a move of all the rest.
_DROP_AT_LEAST = 1024
_DROP_FRACTION = 8


class Arrival:
    """The time of a request that puts records, taken apart once for all of them."""

    __slots__ = ("ms", "second", "text")

    def __init__(self, now_ms: int) -> None:
        self.ms = now_ms
        self.second, millis = divmod(now_ms, 1000)
        self.text = f"{self.second}.{millis:03d}"


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a shard iterator stands."""

    position: int
    """The lowest sequence number that may still be returned."""
    scanned_ms: int
    """Shard time looked through so far: nothing unread has arrived before it."""


@dataclass(frozen=True, slots=True)
class Page:
    """One answer of GetRecords."""

    records: list[bytes]
    """Each record as the JSON object that goes into the answer."""
    size: int
    """Bytes of data and partition keys."""
    behind_ms: int
    """From the page's end to now; 0 when nothing is left."""
    following: Cursor | None
    """None at the end of a closed shard."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that arrived in a shard one after the other, at one time."""

    before: int
    """How many the shard had been given before."""
    arrival_ms: int
    sizes_before: Sequence[int]
    """Bytes that the shard had been given before each record, and after the last."""
    records: list[bytes]
    """As in a page."""


@dataclass(slots=True)
class ShardCounters:
    """What has passed through a shard since it was created."""

    incoming_records: int = 0
    incoming_bytes: int = 0
    write_throttles: int = 0
    outgoing_records: int = 0
    outgoing_bytes: int = 0
    read_throttles: int = 0
    iterator_age_ms: int = 0
    """MillisBehindLatest of the latest GetRecords."""


@dataclass(eq=False, slots=True)
class Shard:
    """A shard, open or closed."""

    index: int
    hash_range: HashRange
    created_ms: int
    created_s: int
    """The second in its sequence numbers: above that of its parents, even if created in the same second."""
    limits: Limits
    parents: tuple[str, ...] = ()
    closed_ms: int | None = None
    counters: ShardCounters = field(default_factory=ShardCounters)
    id: str = field(init=False)
    start_sequence: int = field(init=False)
    end_sequence: int | None = field(init=False, default=None)
    read_rate: ReadRate = field(init=False)
    iterator_rate: CallRate = field(init=False)
    _write_rate: WriteRate = field(init=False)
    _base: int = field(init=False)
    _appended: int = field(init=False, default=0)
    # Record indices that no record has: see `begin_at`.
    _left_out: int = field(init=False, default=0)
    # Parallel lists, in order of arrival; entries before _head have expired.
    _head: int = field(init=False, default=0)
    _sequences: list[int] = field(init=False, default_factory=list)
    _arrivals: list[int] = field(init=False, default_factory=list)
    _sizes_before: list[int] = field(init=False, default_factory=list)
    _records: list[bytes] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.id = shard_id(self.index)
        self.start_sequence = first_sequence(self.index, self.created_s)
        self.read_rate = ReadRate(self.limits)
        self.iterator_rate = CallRate(self.limits.iterators)
        self._write_rate = WriteRate(self.limits)
        self._base = sequence_base(self.index, self.created_s)

    @property
    def is_open(self) -> bool:
        """Whether the shard takes records."""
        return self.closed_ms is None

    def append(self, data: str, partition_key: str, size: int, arrival: Arrival) -> str | None:
        """Add a record and return its sequence number, or None if the shard's rate is used up.

        `data` is base64, `partition_key` a JSON string with its quotes, empty if the producer gave none; both go into
        answers as they are.
        """
        counters = self.counters
        if not self._write_rate.admit(arrival.ms, size):
            counters.write_throttles += 1
            return None
        self._appended += 1
        number = record_sequence(self._base, self._left_out + self._appended, arrival.second)
        text = "%d" % number  # noqa: UP031 - 30 % faster than str() for numbers of this size
        self._sequences.append(number)
        self._arrivals.append(arrival.ms)
        self._sizes_before.append(counters.incoming_bytes)
        counters.incoming_records += 1
        counters.incoming_bytes += size
        named = f',"PartitionKey":{partition_key}' if partition_key else ""
        self._records.append(
            f'{_RECORD_START}{text}","ApproximateArrivalTimestamp":{arrival.text},"Data":"{data}"{named}}}'.encode()
        )
        return text

    @property
    def appended(self) -> int:
        """How many records it was ever given."""
        return self._appended

    def given(self) -> tuple[int, int]:
        """Records and bytes that it was ever given."""
        return self._appended, self.counters.incoming_bytes

    def newest(self, count: int) -> Batch:
        """The last records that were appended, at one time."""
        sizes_before = [*self._sizes_before[-count:], self.counters.incoming_bytes]
        return Batch(self._appended - count, self._arrivals[-1], sizes_before, self._records[-count:])

    def go_on_after(self, appended: int, incoming_bytes: int) -> None:
        """Go on after records that are missing: their bytes are no part of a page that begins before them."""
        missing = incoming_bytes - self.counters.incoming_bytes
        if missing:
            self._sizes_before = [size + missing for size in self._sizes_before]
        self._count(appended, incoming_bytes)

    def extend(self, batch: Batch) -> None:
        """Append records as another shard of the same name gave them by `newest`: with the same sequence numbers."""
        count = len(batch.records)
        self._sequences += [int(record[_NUMBER]) for record in batch.records]
        self._arrivals += [batch.arrival_ms] * count
        self._sizes_before += batch.sizes_before[:-1]
        self._records += batch.records
        self.skip(batch)

    def skip(self, batch: Batch) -> None:
        """Count records as `extend` does, and keep none."""
        self._left_out = record_index_of(int(batch.records[0][_NUMBER])) - batch.before - 1
        self._count(batch.before + len(batch.records), batch.sizes_before[-1])

    def begin_at(self, now_ms: int) -> None:
        """Give record indices from now on that were never given before, whatever is known of those that were.

        A millisecond has 65,536 of them: more than there can be records.
        """
        self._left_out = max(self._left_out, (now_ms << 16) - self._appended)

    def close(self, now_ms: int) -> None:
        """End the shard: it takes no more records."""
        self.closed_ms = now_ms
        # The second it bears may lie ahead: it was put above that of its parents.
        closed_s = max(now_ms // 1000, self.created_s)
        self.end_sequence = last_sequence(self.index, self.created_s, closed_s)

    def trim(self, horizon_ms: int) -> None:
        """Forget records that arrived before the horizon."""
        arrivals = self._arrivals
        head = self._head
        if head == len(arrivals) or arrivals[head] >= horizon_ms:
            return
        head = bisect_left(arrivals, horizon_ms, lo=head)
        if head == len(arrivals) or head >= max(_DROP_AT_LEAST, len(arrivals) // _DROP_FRACTION):
            for column in (self._sequences, arrivals, self._sizes_before, self._records):
                del column[:head]
            head = 0
        self._head = head

    def at_horizon(self) -> Cursor:
        """The oldest record retained."""
        return Cursor(0, self.created_ms)

    def at_tip(self, now_ms: int) -> Cursor:
        """Behind the newest record."""
        return Cursor(self._tip(), now_ms)

    def at_time(self, timestamp_ms: int) -> Cursor:
        """The first record that arrived at or after a time that is not in the future."""
        found = bisect_left(self._arrivals, timestamp_ms, lo=self._head)
        position = self._sequences[found] if found < len(self._sequences) else self._tip()
        return Cursor(position, max(timestamp_ms, self.created_ms))

    def at_sequence(self, position: int) -> Cursor:
        """The first record with this sequence number or a higher one."""
        found = bisect_left(self._sequences, position, lo=self._head)
        # The scan goes on from the record before: nothing between the two is unread.
        before_ms = self._arrivals[found - 1] if found > self._head else self.created_ms
        # A number of `continuation` tells more.
        return Cursor(position, max(before_ms, (arrival_s_of(position) - 1) * 1000))

    def continuation(self, cursor: Cursor) -> int:
        """A sequence number that `at_sequence` goes on from as from this cursor, as does the number after it.

        It is that of the record before, as if it had arrived a second after what has been looked through: above the
        record's own, and below that of the next one.
        """
        found = bisect_left(self._sequences, cursor.position, lo=self._head)
        # Not counted from the end: some that were given may be missing.
        is_last = found == len(self._sequences)
        before = self._left_out + self._appended if is_last else record_index_of(self._sequences[found]) - 1
        return record_sequence(self._base, before, cursor.scanned_ms // 1000 + 1)

    def read(self, cursor: Cursor, limit: int, now_ms: int, horizon_ms: int, most_bytes: int = PAGE_BYTES) -> Page:
        """The page at a cursor: at most `limit` records, and so many bytes if they are more than one."""
        start = bisect_left(self._sequences, cursor.position, lo=self._head)
        count = len(self._sequences)
        if start == count:
            return self._page_at_end(cursor, now_ms)
        scan_end_ms = max(cursor.scanned_ms, horizon_ms) + SCAN_SPAN_MS
        if self._arrivals[start] > scan_end_ms:
            return Page([], 0, now_ms - scan_end_ms, Cursor(cursor.position, scan_end_ms))
        end = min(self._page_end(start, limit, most_bytes), bisect_right(self._arrivals, scan_end_ms, lo=start))
        size = self._bytes_before(end) - self._bytes_before(start)
        arrived_ms = self._arrivals[end - 1]
        following = Cursor(self._sequences[end - 1] + 1, arrived_ms)
        if end < count:
            # Also when all arrived in one millisecond: 0 would say that nothing is left.
            return Page(self._records[start:end], size, max(1, now_ms - arrived_ms), following)
        return Page(self._records[start:], size, 0, following if self.is_open else None)

    def records(self) -> list[bytes]:
        """All records retained, as in a page."""
        return self._records[self._head :]

    def __len__(self) -> int:
        return len(self._records) - self._head

    def _count(self, appended: int, incoming_bytes: int) -> None:
        self._appended = self.counters.incoming_records = appended
        self.counters.incoming_bytes = incoming_bytes

    def _page_at_end(self, cursor: Cursor, now_ms: int) -> Page:
        if not self.is_open:
            return Page([], 0, 0, None)
        return Page([], 0, 0, Cursor(max(cursor.position, self._tip()), now_ms))

    def _page_end(self, start: int, limit: int, most_bytes: int) -> int:
        through = self._sizes_before[start] + most_bytes
        end = min(start + limit, len(self._records))
        if self._bytes_before(end) <= through:
            return end
        # One record at least, however large: a page that is empty for its size would be so for ever.
        return max(start + 1, bisect_right(self._sizes_before, through, lo=start, hi=end) - 1)

    def _bytes_before(self, index: int) -> int:
        sizes = self._sizes_before
        return sizes[index] if index < len(sizes) else self.counters.incoming_bytes

    def _tip(self) -> int:
        # Not above the next record's number, whenever that arrives.
        return record_sequence(self._base, self._left_out + self._appended + 1, 0)


def shard_id(index: int) -> str:
    """The name Kinesis gives to a stream's shard number `index`."""
    return f"shardId-{index:012d}"
