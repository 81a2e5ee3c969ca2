"""Records of a shard as Arrow. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lakestream.kinesis.kpl import MAGIC, deaggregate, placed
from lakestream.kinesis.port import RecordPage
from lakestream.model import HashKeys

SCHEMA = pa.schema(
    [
        pa.field("data", pa.binary(), nullable=False),
        pa.field("partition_key", pa.string()),
        pa.field("sequence_number", pa.string(), nullable=False),
        pa.field("sub_sequence", pa.int64(), nullable=False),
        pa.field("shard_id", pa.string(), nullable=False),
        pa.field("arrival", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
"""What the reader gives, one row per user record:

data             the bytes that the producer put
partition_key    of the user record; null if its producer gave none
sequence_number  of the Kinesis record, decimal; order it as a number, not as text
sub_sequence     0, or the user record's index within a KPL aggregate; `objects.parted` adds to it
shard_id         of the shard that it was read from
arrival          approximate arrival time of the Kinesis record, to the millisecond
"""

REASON = "_lakestream_reason"
"""Another column of some batches: why a record cannot be used, null if nothing is known against it."""

_STORED = b"stored"
"""In the metadata of a batch with aggregates: `stored_bytes`."""

_ROWS = 10_000
"""Of a batch of aggregates, about, as many as a page without any has at most: a megabyte of one may be 170,000 user
records, each of which gets its key, of up to a kilobyte."""


def record_batches(
    shard_id: str, page: RecordPage, end: int, hash_keys: HashKeys | None = None
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The first `end` records of a page, KPL aggregates unpacked, and how many user records were left out as misplaced:
    since the batch before, if it takes several.

    Args:
        hash_keys: of the shard; a user record of an aggregate that does not belong there is left out. None: all stay.
    """
    data = page.data[:end]
    if any(value.startswith(MAGIC) for value in data):
        yield from _unpack(shard_id, page, end, hash_keys)
    else:
        zeros = [0] * end
        yield _batch(shard_id, data, page.partition_keys[:end], page.sequences[:end], zeros, page.arrivals[:end]), 0


def stored_bytes(records: pa.RecordBatch) -> int:
    """What Kinesis counts of a batch of `record_batches`: data and partition keys, aggregates as a whole.

    The limits of a shard go by it (Amazon Kinesis Data Streams, "Quotas and limits").
    """
    if records.schema.metadata:
        return int(records.schema.metadata[_STORED])
    sizes = (pc.sum(pc.binary_length(records.column(name))).as_py() for name in ("data", "partition_key"))
    return sum(filter(None, sizes))


def _unpack(
    shard_id: str, page: RecordPage, end: int, hash_keys: HashKeys | None
) -> Iterator[tuple[pa.RecordBatch, int]]:
    columns, misplaced, stored = _Columns(), 0, 0
    for index in range(end):
        stored += len(page.data[index]) + len((page.partition_keys[index] or "").encode())
        records = deaggregate(page.data[index])
        if records is None:
            columns.add(page, index, (0,), (page.data[index],), (page.partition_keys[index],))
            continue
        kept = placed(records, hash_keys)
        misplaced += len(records) - len(kept)
        for start in range(0, len(kept), _ROWS):
            if len(columns.subs) >= _ROWS:
                yield columns.batch(shard_id, stored), misplaced
                columns, misplaced, stored = _Columns(), 0, 0
            subs = kept[start : start + _ROWS]
            some = [records[sub] for sub in subs]
            columns.add(page, index, subs, [one.data for one in some], [one.partition_key for one in some])
    yield columns.batch(shard_id, stored), misplaced


@dataclass(frozen=True, slots=True)
class _Columns:
    """Those of a batch so far."""

    data: list[bytes] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    sequences: list[str] = field(default_factory=list)
    subs: list[int] = field(default_factory=list)
    arrivals: list[int] = field(default_factory=list)

    def add(
        self, page: RecordPage, index: int, subs: Sequence[int], data: Sequence[bytes], keys: Sequence[str | None]
    ) -> None:
        """Add user records of one record."""
        self.data.extend(data)
        self.keys.extend(keys)
        self.subs.extend(subs)
        self.sequences.extend([page.sequences[index]] * len(subs))
        self.arrivals.extend([page.arrivals[index]] * len(subs))

    def batch(self, shard_id: str, stored: int) -> pa.RecordBatch:
        batch = _batch(shard_id, self.data, self.keys, self.sequences, self.subs, self.arrivals)
        return batch.replace_schema_metadata({_STORED: str(stored)})


def _batch(
    shard_id: str, data: object, keys: object, sequences: object, subs: object, arrivals: object
) -> pa.RecordBatch:
    columns = [
        pa.array(data, pa.binary()),
        pa.array(keys, pa.string()),
        pa.array(sequences, pa.string()),
        pa.array(subs, pa.int64()),
    ]
    shard = pa.repeat(pa.scalar(shard_id, pa.string()), len(columns[0]))
    return pa.RecordBatch.from_arrays(
        [*columns, shard, pa.array(arrivals, pa.timestamp("us", tz="UTC"))], schema=SCHEMA
    )
